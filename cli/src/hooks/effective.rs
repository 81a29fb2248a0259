//! The hooks that apply in the current directory: the user's own and those of the project, with what is not approved
//! yet.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Result, bail};
use hookbus::active::{ActiveHooks, HookSets, HooksSource, HooksStatus, Projects};
use hookbus::caller::Caller;
use hookbus::config::{Trust, did_you_mean};
use hookbus::consent::ApprovalItem;
use hookbus::log::LogPath;

use crate::output::{self, sanitize};
use crate::settings::Settings;

/// This process as the caller of hooks, with the variables that agents set for them.
pub(crate) fn current_caller() -> Caller {
    let cwd = std::env::current_dir().unwrap_or_default();
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for name in ["GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"] {
        if env.iter().all(|(known, _)| known != name) {
            env.push((name.into(), cwd.clone().into()));
        }
    }
    Caller { cwd, env, pid: Some(std::process::id()), ..Caller::default() }
}

/// This process as the hooks of `active` get it: with the user's own `PATH` and home directory.
pub(super) fn hook_caller(active: &ActiveHooks) -> Caller {
    active.approvals.store().hook_caller(&current_caller(), &[])
}

/// The hooks that apply in the current directory.
pub(super) struct EffectiveHooks {
    pub(super) own: (HooksSource, Arc<ActiveHooks>),
    pub(super) project: Option<(Arc<HooksSource>, Arc<ActiveHooks>)>,
    /// A project file nearer to the current directory, of which nothing is approved: it does not apply yet.
    pub(super) nearer: Option<(Arc<HooksSource>, Arc<ActiveHooks>)>,
}

impl EffectiveHooks {
    pub(super) fn load(settings: &Settings) -> Self {
        let log = LogPath::in_home(&settings.home);
        let own = HooksSource::new(&settings.home, log.clone());
        let own_hooks = own.active();
        let projects =
            Projects::new(&settings.home, log).with_default_home(settings.default_home.clone());
        let caller = current_caller();
        let load = |source: Arc<HooksSource>| {
            let active = Arc::new(source.to_approve());
            (source, active)
        };
        let project = projects.source(&caller);
        let is_another = |nearest: &Arc<HooksSource>| {
            project.as_ref().is_some_and(|project| project.file() != nearest.file())
        };
        let nearer = projects.nearest(&caller).filter(is_another).map(load);
        Self { own: (own, own_hooks), project: project.map(load), nearer }
    }

    /// Reports files that cannot be parsed. It is an error if the user's own file has no earlier version that is in
    /// force: without any hooks, every other answer would look like an all-clear.
    pub(super) fn ensure_readable(&self) -> Result<()> {
        for (source, active) in self.files() {
            let file = sanitize(&source.file().display().to_string());
            let Some(problem) = active.status.problem() else { continue };
            let error = format!("{file}:{}: {}", problem.line, sanitize(&problem.message));
            let is_void = matches!(active.status, HooksStatus::NothingGood(_));
            if is_void && active.file.project.is_none() {
                bail!("{error}; no hooks are in force until you fix it");
            }
            let what = if is_void { "none of its hooks" } else { "its last good version" };
            let verb = if is_void { "are" } else { "is" };
            output::to_stderr(format!("{error}; {what} {verb} in force until you fix it"));
        }
        Ok(())
    }

    /// The hooks to ask about an event.
    pub(super) fn hook_sets(&self) -> HookSets {
        let project = self.project.as_ref().map(|(_, active)| Arc::clone(active));
        HookSets { own: Arc::clone(&self.own.1), project }
    }

    /// Everything in these files that needs approval.
    pub(super) fn approval_items(&self) -> Vec<ApprovalItem> {
        self.files().flat_map(|(_, active)| approval_items(active)).collect()
    }

    /// Reads an entry and its files again.
    pub(super) fn reread(&self, entry: &ApprovalItem) -> Option<ApprovalItem> {
        let mut files = self.files().map(|(_, active)| active);
        let active = files.find(|active| active.file.project == entry.project)?;
        active.current_item(entry, &current_caller())
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&HooksSource, &ActiveHooks)> {
        let projects = self.project.iter().chain(&self.nearer);
        let projects = projects.map(|(source, active)| (&**source, &**active));
        std::iter::once((&self.own.0, &*self.own.1)).chain(projects)
    }
}

/// What to do about a name that no hook has: use the similar one of `known`, or look.
pub(super) fn unknown_name_hint<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    did_you_mean(name, known).map_or_else(
        || "`hookbus hooks list` shows the hooks".to_owned(),
        |near| format!("did you mean `{}`?", sanitize(near)),
    )
}

/// What needs approval in one file; nothing in the user's own file with `trust: home`.
pub(super) fn approval_items(active: &ActiveHooks) -> Vec<ApprovalItem> {
    let is_trusted = active.file.trust == Trust::Home;
    if is_trusted { Vec::new() } else { active.approval_items(&current_caller()) }
}
