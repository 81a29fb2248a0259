//! Which hooks a replay asks: one file for all events, or for each event those that were in force.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookbus::decide::{Asked, Hook, Hooks, Mode, Surroundings, plan};
use hookbus::event::{BusId, Event, Seq};
use hookbus::log::{Case, HooksDraft, Loaded, LogReader, ReadError};

/// The hooks of a replay.
#[derive(Debug)]
pub enum Policy {
    /// These, whatever was in force: in place of the person's own, or of the project's if they are one's.
    Given(Box<Hooks>),
    /// Those that were in force.
    AsRecorded(Arc<Recorded>),
}

/// Every version that a log knows.
#[derive(Debug)]
pub struct Recorded {
    /// Where each one came into force, by bus; none where the row cannot be read.
    places: HashMap<Option<BusId>, Vec<(Seq, Option<usize>)>>,
    versions: Vec<Version>,
    /// The projects' versions, by file and hash; none where they are left out.
    projects: Option<HashMap<(String, String), Result<Hooks, String>>>,
    /// Where the projects' files really are, as far as they are still there.
    real: HashMap<String, PathBuf>,
    none: Hooks,
}

/// Hooks at the place where they were: a relative script of two buses is not the same.
#[derive(Debug)]
struct Version {
    path: String,
    hash: String,
    hooks: Result<Hooks, String>,
}

impl Policy {
    /// The hooks to ask about `case`; `named` is the hash in its decision. What is not replaced is asked as
    /// it was recorded, as far as `recorded` knows.
    pub(crate) fn asked<'a>(
        &'a self,
        case: &Case,
        named: Option<&str>,
        recorded: Option<&'a Recorded>,
    ) -> Result<Asked<'a>, String> {
        let project = Surroundings::recorded_project(case.context.as_deref().unwrap_or("{}"));
        match self {
            Self::Given(hooks) => match (&hooks.project, recorded) {
                (Some(_), Some(recorded)) => {
                    let then = recorded.hooks_then(case, named)?;
                    let stands_in = self.stands_in_at(case, Some(recorded));
                    Ok(if stands_in { Asked { project: Some(hooks), ..then } } else { then })
                }
                (Some(_), None) => Ok(hooks.as_ref().into()),
                (None, recorded) => {
                    let project = project.zip(recorded).map(|(it, recorded)| recorded.project(&it));
                    Ok(Asked { own: hooks, project: project.transpose()?.flatten() })
                }
            },
            Self::AsRecorded(recorded) => recorded.hooks_then(case, named),
        }
    }

    /// Whether the hooks of the project, or the person's own, are asked about `case` as they were recorded.
    pub(crate) fn is_as_recorded(
        &self,
        of_project: bool,
        case: &Case,
        recorded: Option<&Recorded>,
    ) -> bool {
        match self {
            Self::AsRecorded(_) => true,
            Self::Given(hooks) if hooks.project.is_none() => of_project,
            Self::Given(_) => !(of_project && self.stands_in_at(case, recorded)),
        }
    }

    /// Whether these are the hooks of a project, and `case` happened in it.
    pub(crate) fn stands_in_at(&self, case: &Case, recorded: Option<&Recorded>) -> bool {
        let Some(file) = self.project() else { return false };
        let context = case.context.as_deref().unwrap_or("{}");
        let Some((there, _)) = Surroundings::recorded_project(context) else { return false };
        let real = recorded.and_then(|recorded| recorded.real.get(&there));
        real.map_or(Path::new(&there), PathBuf::as_path) == file
    }

    /// The file of the project whose hooks these are.
    fn project(&self) -> Option<&Path> {
        match self {
            Self::Given(hooks) => hooks.project.as_deref(),
            Self::AsRecorded(_) => None,
        }
    }

    /// What has to be said where they stood in for those of a project at so many events.
    pub fn remark_on(&self, events: u64) -> Option<String> {
        let file = self.project().filter(|_| events == 0)?.display();
        Some(format!(
            "no event here met the hooks of the project of {file}: none of these was asked"
        ))
    }

    /// Whether any hook of it runs outside of this process.
    pub fn has_commands(&self, recorded: Option<&Recorded>) -> bool {
        self.all(recorded).any(|hooks| hooks.hooks.iter().any(decides_outside))
    }

    /// Every version of it, and those of projects.
    fn all<'a>(&'a self, recorded: Option<&'a Recorded>) -> impl Iterator<Item = &'a Hooks> {
        let projects = recorded.and_then(|recorded| recorded.projects.as_ref());
        self.versions().chain(projects.into_iter().flat_map(|projects| projects.values().flatten()))
    }

    /// Whether any hook of it is a plugin, which may remember.
    pub fn has_plugins(&self, recorded: Option<&Recorded>) -> bool {
        let remembers = |hook: &Hook| hook.is_plugin() && hook.mode() == Mode::Decide;
        self.all(recorded).any(|hooks| hooks.hooks.iter().any(remembers))
    }

    fn versions(&self) -> Box<dyn Iterator<Item = &Hooks> + '_> {
        match self {
            Self::Given(hooks) => Box::new(std::iter::once(hooks.as_ref())),
            Self::AsRecorded(recorded) => {
                Box::new(recorded.versions.iter().filter_map(|it| it.hooks.as_ref().ok()))
            }
        }
    }

    /// What has to be said about it.
    pub fn remarks(&self) -> Vec<String> {
        let Self::AsRecorded(recorded) = self else { return Vec::new() };
        let unread = recorded.places.values().flatten().filter(|(_, version)| version.is_none());
        unread.map(|(seq, _)| format!("row {seq} should hold hooks, and cannot be read")).collect()
    }
}

fn decides_outside(hook: &Hook) -> bool {
    hook.runs_outside() && hook.mode() == Mode::Decide
}

impl Recorded {
    /// The versions in this log.
    pub fn read(log: &LogReader) -> Result<Self, ReadError> {
        let mut recorded = Self {
            places: HashMap::new(),
            versions: Vec::new(),
            projects: Some(HashMap::new()),
            real: HashMap::new(),
            none: Hooks::none(Path::new("/")),
        };
        for Loaded { bus, seq, hooks } in log.hooks_loaded()? {
            if let Some(draft) = hooks.as_ref().filter(|draft| draft.of_project) {
                if !recorded.real.contains_key(&draft.path) {
                    recorded.real.insert(draft.path.clone(), real_place(Path::new(&draft.path)));
                }
                let key = (draft.path.clone(), draft.hash.clone());
                let projects = recorded.projects.get_or_insert_default();
                projects.entry(key).or_insert_with(|| read(draft));
                continue;
            }
            let version = hooks.map(|draft| recorded.version(draft));
            recorded.places.entry(bus).or_default().push((seq, version));
        }
        for places in recorded.places.values_mut() {
            places.sort_unstable();
        }
        Ok(recorded)
    }

    fn version(&mut self, draft: HooksDraft) -> usize {
        let same = |it: &Version| it.hash == draft.hash && it.path == draft.path;
        self.versions.iter().position(same).unwrap_or_else(|| {
            let hooks = read(&draft);
            self.versions.push(Version { path: draft.path, hash: draft.hash, hooks });
            self.versions.len() - 1
        })
    }

    /// The same without the hooks of projects.
    #[must_use]
    pub fn without_projects(self) -> Self {
        Self { projects: None, ..self }
    }

    /// Whether the hooks of any project are known.
    pub fn has_projects(&self) -> bool {
        self.projects.as_ref().is_some_and(|projects| !projects.is_empty())
    }

    /// The hooks of a project as they were.
    fn project(&self, of: &(String, String)) -> Result<Option<&Hooks>, String> {
        let Some(projects) = &self.projects else { return Ok(None) };
        let hooks = projects.get(of).ok_or("the project's hooks of then are not in this log")?;
        let hooks = hooks
            .as_ref()
            .map_err(|why| format!("the project's hooks of then cannot be used any more: {why}"))?;
        Ok(Some(hooks))
    }

    /// The person's own hooks that were in force for the event recorded at `home`; `named` is the hash in its
    /// decision.
    pub(crate) fn hooks_for(
        &self,
        (bus, seq): (Option<BusId>, Seq),
        named: Option<&str>,
    ) -> Result<&Hooks, String> {
        let places = self.places.get(&bus).map_or(&[][..], Vec::as_slice);
        let (before, after) = places.split_at(places.partition_point(|(place, _)| *place <= seq));
        let version = match (named, before.last()) {
            (Some(hash), _) => {
                let mut near = before.iter().rev().chain(after);
                let found = near.find_map(|(_, version)| {
                    version.and_then(|at| self.versions.get(at)).filter(|it| it.hash == hash)
                });
                match found {
                    Some(version) => version,
                    None if hash == self.none.hash => return Ok(&self.none),
                    None => return Err("the hooks of then are not in this log".to_owned()),
                }
            }
            (None, None) => return Ok(&self.none),
            (None, Some((_, version))) => version
                .and_then(|at| self.versions.get(at))
                .ok_or("the row with the hooks of then cannot be read")?,
        };
        version
            .hooks
            .as_ref()
            .map_err(|why| format!("the hooks of then cannot be used any more: {why}"))
    }

    /// Whether a command must have been asked about the event recorded at `home`, of which no decision
    /// is known: whoever asked it did not live to write down what it said.
    pub(crate) fn was_cut_short(&self, case: &Case, event: &Event) -> bool {
        self.hooks_then(case, None).is_ok_and(|asked| {
            asked.all().any(decides_outside) && plan(event, asked).outside().any(Hook::is_command)
        })
    }

    fn hooks_then(&self, case: &Case, named: Option<&str>) -> Result<Asked<'_>, String> {
        let project = Surroundings::recorded_project(case.context.as_deref().unwrap_or("{}"));
        let project = project.map(|project| self.project(&project)).transpose()?.flatten();
        Ok(Asked { own: self.hooks_for(case.home(), named)?, project })
    }

    /// Whether the entry of this hook was malformed then.
    pub(crate) fn was_broken(&self, case: &Case, named: Option<&str>, name: &str) -> bool {
        self.hooks_then(case, named)
            .is_ok_and(|asked| asked.all().any(|hook| hook.is_broken() && hook.name() == name))
    }
}

/// Where a hooks file really is, whichever links lead there. A file that is a link itself is where the link is:
/// that is where its scripts are.
pub fn real_place(file: &Path) -> PathBuf {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let real = folder.zip(file.file_name()).map(|(folder, name)| folder.join(name));
    real.unwrap_or_else(|| file.to_owned())
}

/// Whoever asks for a replay is shown what it would run, and agrees to that.
fn read(draft: &HooksDraft) -> Result<Hooks, String> {
    parsed(draft).map(Hooks::taken_at_their_word)
}

fn parsed(draft: &HooksDraft) -> Result<Hooks, String> {
    let because = |problem: hookbus::decide::Problem| problem.to_string();
    if draft.of_project {
        return Hooks::parse_project(&draft.content, Path::new(&draft.path)).map_err(because);
    }
    let base = Path::new(&draft.path).parent().unwrap_or(Path::new("/"));
    if draft.content.is_empty() {
        return Ok(Hooks::none(base));
    }
    Hooks::parse(&draft.content, base).map_err(because)
}
