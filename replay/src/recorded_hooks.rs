//! Every version of the hooks that a log holds: which of them was in force for an event.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookbus::active::{ActiveHooks, HookSets};
use hookbus::config::{Hook, HooksFile, Problem};
use hookbus::decide::plan;
use hookbus::dialect::{RecordedProject, recorded_project};
use hookbus::event::{BusId, Event, Seq};
use hookbus::log::{HooksSnapshot, LoadedHooks, LogReader, ReadError, RecordedEvent};

use crate::foreign::ForeignApprovals;

/// The hooks that were in force, by bus and position in its log.
#[derive(Debug)]
pub struct RecordedHooks {
    /// Where each version came into force, by bus; no version where the row cannot be read.
    loaded_at: HashMap<Option<BusId>, Vec<(Seq, Option<usize>)>>,
    versions: Vec<HooksVersion>,
    /// Versions of projects' hooks, by file and hash; none if a replay leaves projects out.
    projects: Option<HashMap<(String, String), ParsedHooks>>,
    /// Canonical location of each project's hooks file.
    canonical: HashMap<String, PathBuf>,
    no_hooks: Arc<ActiveHooks>,
    /// Set if another person may have written the recording: then only approved commands run.
    pub(crate) foreign: Option<ForeignApprovals>,
}

/// A version of the hooks, if it is still valid.
type ParsedHooks = Result<Arc<ActiveHooks>, Problem>;

/// Identified by path and hash: the same text at another path may run other scripts.
#[derive(Debug)]
struct HooksVersion {
    path: String,
    hash: String,
    hooks: ParsedHooks,
}

/// Why the hooks that were in force for an event cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HooksError {
    /// No row holds them.
    #[error("the hooks that were in force are not in this log")]
    NotInLog,
    /// Their row is damaged.
    #[error("the row with the hooks that were in force cannot be read")]
    Unreadable,
    /// This version of hookbus does not accept them.
    #[error("the hooks that were in force are not valid any more: {0}")]
    Invalid(Problem),
    /// No row holds the project's hooks.
    #[error("the project's hooks that were in force are not in this log")]
    ProjectNotInLog,
    /// This version of hookbus does not accept the project's hooks.
    #[error("the project's hooks that were in force are not valid any more: {0}")]
    ProjectInvalid(Problem),
}

impl RecordedHooks {
    /// Reads all versions from `log`.
    pub fn read(log: &LogReader) -> Result<Self, ReadError> {
        let mut recorded = Self {
            loaded_at: HashMap::new(),
            versions: Vec::new(),
            projects: Some(HashMap::new()),
            canonical: HashMap::new(),
            no_hooks: Arc::new(ActiveHooks::for_replay(HooksFile::empty(Path::new("/")))),
            foreign: None,
        };
        for LoadedHooks { bus, seq, hooks } in log.replay().hooks_loaded()? {
            if let Some(draft) = hooks.as_ref().filter(|draft| draft.of_project) {
                if !recorded.canonical.contains_key(&draft.path) {
                    let canonical = canonical_hooks_path(Path::new(&draft.path));
                    recorded.canonical.insert(draft.path.clone(), canonical);
                }
                let key = (draft.path.clone(), draft.hash.clone());
                let projects = recorded.projects.get_or_insert_default();
                projects.entry(key).or_insert_with(|| parse(draft));
                continue;
            }
            let version = hooks.map(|draft| recorded.add_version(draft));
            recorded.loaded_at.entry(bus).or_default().push((seq, version));
        }
        for versions in recorded.loaded_at.values_mut() {
            versions.sort_unstable();
        }
        Ok(recorded)
    }

    fn add_version(&mut self, draft: HooksSnapshot) -> usize {
        let same = |it: &HooksVersion| it.hash == draft.hash && it.path == draft.path;
        self.versions.iter().position(same).unwrap_or_else(|| {
            let hooks = parse(&draft);
            self.versions.push(HooksVersion { path: draft.path, hash: draft.hash, hooks });
            self.versions.len() - 1
        })
    }

    /// The hooks of a recording that another person may have written: none of its commands runs unless it is
    /// approved by name.
    #[must_use]
    pub fn of_foreign_recording(self) -> Self {
        Self { foreign: Some(ForeignApprovals::default()), ..self }
    }

    /// Whether the user's own hooks were all read from this file, so that the log was recorded in its home. A log that
    /// holds the hooks of projects only does not tell its home.
    pub fn were_recorded_at(&self, hooks_file: &Path) -> bool {
        let here = canonical_hooks_path(hooks_file);
        let is_here = |it: &HooksVersion| canonical_hooks_path(Path::new(&it.path)) == here;
        self.versions.iter().all(is_here) && !(self.versions.is_empty() && self.has_projects())
    }

    /// Leaves the hooks of projects out.
    #[must_use]
    pub fn without_projects(self) -> Self {
        Self { projects: None, ..self }
    }

    /// Whether the log holds hooks of any project.
    pub fn has_projects(&self) -> bool {
        self.projects.as_ref().is_some_and(|projects| !projects.is_empty())
    }

    /// Every valid version of the user's own hooks.
    pub(crate) fn own_versions(&self) -> impl Iterator<Item = &ActiveHooks> {
        self.versions.iter().filter_map(|version| version.hooks.as_deref().ok())
    }

    /// Every valid version of projects' hooks.
    pub(crate) fn project_versions(&self) -> impl Iterator<Item = &ActiveHooks> {
        let projects = self.projects.iter().flat_map(HashMap::values);
        projects.filter_map(|hooks| hooks.as_deref().ok())
    }

    /// Rows that should hold hooks and cannot be read.
    pub(crate) fn unreadable_rows(&self) -> impl Iterator<Item = Seq> {
        let unread = self.loaded_at.values().flatten().filter(|(_, version)| version.is_none());
        unread.map(|(seq, _)| *seq)
    }

    /// Canonical location of a project's hooks file.
    pub(crate) fn canonical_path(&self, file: &str) -> Option<&Path> {
        self.canonical.get(file).map(PathBuf::as_path)
    }

    /// All hooks that were in force for an event; `hash` is the one that its decision names.
    pub fn in_force(
        &self,
        row: &RecordedEvent,
        hash: Option<&str>,
    ) -> Result<HookSets, HooksError> {
        let project = self.project_in_force(row)?;
        Ok(HookSets { own: self.own_in_force(row.origin(), hash)?, project })
    }

    /// The hooks of the project that an event happened in.
    pub(crate) fn project_in_force(
        &self,
        row: &RecordedEvent,
    ) -> Result<Option<Arc<ActiveHooks>>, HooksError> {
        let Some(RecordedProject { file, hooks }) = project_of(row) else { return Ok(None) };
        let Some(projects) = &self.projects else { return Ok(None) };
        let hooks = projects.get(&(file, hooks)).ok_or(HooksError::ProjectNotInLog)?;
        hooks.clone().map(Some).map_err(HooksError::ProjectInvalid)
    }

    fn own_in_force(
        &self,
        (bus, seq): (Option<BusId>, Seq),
        hash: Option<&str>,
    ) -> Result<Arc<ActiveHooks>, HooksError> {
        let loaded = self.loaded_at.get(&bus).map_or(&[][..], Vec::as_slice);
        let (before, after) = loaded.split_at(loaded.partition_point(|(at, _)| *at <= seq));
        let version = match (hash, before.last()) {
            (Some(hash), _) => {
                let mut nearest_first = before.iter().rev().chain(after);
                let found = nearest_first.find_map(|(_, version)| {
                    version.and_then(|at| self.versions.get(at)).filter(|it| it.hash == hash)
                });
                match found {
                    Some(version) => version,
                    None if hash == self.no_hooks.file.hash => {
                        return Ok(Arc::clone(&self.no_hooks));
                    }
                    None => return Err(HooksError::NotInLog),
                }
            }
            (None, None) => return Ok(Arc::clone(&self.no_hooks)),
            (None, Some((_, version))) => {
                version.and_then(|at| self.versions.get(at)).ok_or(HooksError::Unreadable)?
            }
        };
        version.hooks.clone().map_err(HooksError::Invalid)
    }

    /// Whether a command was planned for an event without a decision. Then the process ended before it recorded one.
    pub(crate) fn was_interrupted(&self, row: &RecordedEvent, event: &Event) -> bool {
        self.in_force(row, None).is_ok_and(|hooks| {
            hooks.hooks().any(decides_outside)
                && plan(event, &hooks).outside().any(Hook::is_command)
        })
    }

    /// Whether the entry of the hook `name` was malformed.
    pub(crate) fn was_malformed(
        &self,
        row: &RecordedEvent,
        hash: Option<&str>,
        name: &str,
    ) -> bool {
        self.in_force(row, hash)
            .is_ok_and(|hooks| hooks.hooks().any(|hook| hook.is_broken() && hook.name == name))
    }
}

/// File and hash of the project's hooks that were in force for an event.
pub(crate) fn project_of(row: &RecordedEvent) -> Option<RecordedProject> {
    recorded_project(row.context.as_deref().unwrap_or("{}"))
}

/// Whether a hook that is asked runs as a command or plugin, outside of this process.
pub(crate) fn decides_outside(hook: &Hook) -> bool {
    hook.runs_outside() && hook.is_asked()
}

/// Resolves symlinks in the directory of a hooks file, but not the file itself: its scripts are
/// relative to the directory that the link is in.
pub fn canonical_hooks_path(file: &Path) -> PathBuf {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let canonical = folder.zip(file.file_name()).map(|(folder, name)| folder.join(name));
    canonical.unwrap_or_else(|| file.to_owned())
}

/// Approval is not checked here: before a replay runs commands the user confirms the list of them, and approves
/// those of a foreign recording by name.
fn parse(draft: &HooksSnapshot) -> ParsedHooks {
    let base = Path::new(&draft.path).parent().unwrap_or(Path::new("/"));
    let file = if draft.of_project {
        HooksFile::parse_project(&draft.content, Path::new(&draft.path), &|_, _| true)
    } else if draft.content.is_empty() {
        Ok(HooksFile::empty(base))
    } else {
        HooksFile::parse(&draft.content, base)
    };
    file.map(|file| Arc::new(ActiveHooks::for_replay(file)))
}
