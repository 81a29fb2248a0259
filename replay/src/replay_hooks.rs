//! Which hooks a replay runs: one file for all events, or for each event the hooks that were in force.

use std::path::Path;
use std::sync::Arc;

use hookbus::active::{ActiveHooks, HookSets};
use hookbus::config::Hook;
use hookbus::log::RecordedEvent;

use crate::recorded_hooks::{HooksError, RecordedHooks, decides_outside, project_of};

/// The hooks of a replay.
#[derive(Debug)]
pub enum ReplayHooks {
    /// One hooks file for all events. A project's file replaces the hooks of that project only; any other
    /// file replaces the user's own hooks. Everything else is used as recorded.
    Fixed {
        /// The hooks in the file.
        hooks: Arc<ActiveHooks>,
        /// The hooks that were in force; none if the events do not come from a log.
        recorded: Option<RecordedHooks>,
    },
    /// For each event the hooks that were in force.
    AsRecorded(RecordedHooks),
}

impl ReplayHooks {
    /// The hooks to run for an event; `hash` is the one that its decision names.
    pub(crate) fn for_event(
        &self,
        row: &RecordedEvent,
        hash: Option<&str>,
    ) -> Result<HookSets, HooksError> {
        match self {
            Self::AsRecorded(recorded) => recorded.in_force(row, hash),
            Self::Fixed { hooks, recorded: None } => Ok(HookSets::own(Arc::clone(hooks))),
            Self::Fixed { hooks, recorded: Some(recorded) } if hooks.file.project.is_some() => {
                let in_force = recorded.in_force(row, hash)?;
                let is_replaced = self.replaces_project_of(row);
                let project = if is_replaced { Some(Arc::clone(hooks)) } else { in_force.project };
                Ok(HookSets { project, ..in_force })
            }
            Self::Fixed { hooks, recorded: Some(recorded) } => {
                Ok(HookSets { own: Arc::clone(hooks), project: recorded.project_in_force(row)? })
            }
        }
    }

    /// The hooks that were in force, if the events come from a log.
    pub(crate) const fn recorded(&self) -> Option<&RecordedHooks> {
        match self {
            Self::Fixed { recorded, .. } => recorded.as_ref(),
            Self::AsRecorded(recorded) => Some(recorded),
        }
    }

    /// Whether an event gets the project's hooks (`of_project`), or the user's own, as recorded.
    pub(crate) fn are_as_recorded(&self, of_project: bool, row: &RecordedEvent) -> bool {
        match self {
            Self::AsRecorded(_) => true,
            Self::Fixed { hooks, .. } if hooks.file.project.is_none() => of_project,
            Self::Fixed { .. } => !(of_project && self.replaces_project_of(row)),
        }
    }

    /// Whether the fixed hooks are those of the project that the event happened in.
    pub(crate) fn replaces_project_of(&self, row: &RecordedEvent) -> bool {
        let Some(file) = self.project_file() else { return false };
        let Some(project) = project_of(row) else { return false };
        let canonical = self.recorded().and_then(|hooks| hooks.canonical_path(&project.file));
        canonical.unwrap_or(Path::new(&project.file)) == file
    }

    fn project_file(&self) -> Option<&Path> {
        match self {
            Self::Fixed { hooks, .. } => hooks.file.project.as_deref(),
            Self::AsRecorded(_) => None,
        }
    }

    /// Whether any hook is a command or a plugin.
    pub fn has_commands(&self) -> bool {
        self.versions().any(|hooks| hooks.file.hooks.iter().any(decides_outside))
    }

    /// Whether any hook is a plugin, which may keep state between events.
    pub fn has_plugins(&self) -> bool {
        let is_stateful = |hook: &Hook| hook.is_plugin() && hook.is_asked();
        self.versions().any(|hooks| hooks.file.hooks.iter().any(is_stateful))
    }

    fn versions(&self) -> impl Iterator<Item = &ActiveHooks> {
        let (fixed, as_recorded) = match self {
            Self::Fixed { hooks, .. } => (Some(hooks.as_ref()), None),
            Self::AsRecorded(recorded) => (None, Some(recorded.own_versions())),
        };
        let projects = self.recorded().into_iter().flat_map(RecordedHooks::project_versions);
        fixed.into_iter().chain(as_recorded.into_iter().flatten()).chain(projects)
    }

    /// Remarks for the report that are known before the replay.
    pub fn remarks(&self) -> Vec<String> {
        let Self::AsRecorded(recorded) = self else { return Vec::new() };
        let unreadable = recorded.unreadable_rows();
        unreadable.map(|seq| format!("row {seq} should hold hooks, but cannot be read")).collect()
    }

    /// A remark for the report if a project's hooks were used for no event at all.
    pub fn unused_project_remark(&self, events_in_project: u64) -> Option<String> {
        self.recorded()?;
        let file = self.project_file().filter(|_| events_in_project == 0)?.display();
        Some(format!("no event was recorded in the project of {file}: its hooks were not used"))
    }
}
