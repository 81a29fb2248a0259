//! Which hooks are in force: the file's, if it can be used; else its last good version, from
//! memory or from the log, so that a typo never switches a policy off.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::consent::Consents;
use super::project_file::LARGEST;
use super::regular;
use super::stamp::Stamp;
use super::{Hooks, Problem};
use crate::log::{HooksDraft, LogPath, LogReader, ReadError};

/// The hooks in force and how they came to be.
#[derive(Debug)]
pub struct InForce {
    /// The hooks.
    pub hooks: Hooks,
    /// Their content, for the log.
    pub draft: Arc<HooksDraft>,
    /// Whether they are what the file says.
    pub standing: Standing,
}

/// Where the hooks in force come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The file, as it is.
    Current,
    /// There is no file.
    NoFile,
    /// The file is broken; this is what it was before.
    LastGood(Problem),
    /// The file is broken and no good version is known; no hooks.
    NothingGood(Problem),
}

impl Standing {
    /// A word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::NoFile => "no file",
            Self::LastGood(_) => "last good",
            Self::NothingGood(_) => "none",
        }
    }

    /// What is wrong with the file.
    pub const fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Current | Self::NoFile => None,
            Self::LastGood(problem) | Self::NothingGood(problem) => Some(problem),
        }
    }
}

impl InForce {
    /// The content for the log; none where we only failed to find out what it was.
    pub fn to_record(&self) -> Option<Arc<HooksDraft>> {
        match self.standing {
            Standing::Current | Standing::NoFile | Standing::LastGood(_) => {
                Some(Arc::clone(&self.draft))
            }
            Standing::NothingGood(_) => None,
        }
    }

    /// Whether a project with these has a say: what is recorded of an event there can be found again.
    pub(super) fn has_a_say(&self) -> bool {
        !self.hooks.hooks.is_empty() && self.to_record().is_some()
    }
}

/// Watches one hooks file.
#[derive(Debug)]
pub struct HooksSource {
    file: PathBuf,
    log: LogPath,
    /// What was agreed to of it, if it is a project's.
    project: Option<Arc<Consents>>,
    known: Mutex<Option<(Stamps, Arc<InForce>)>>,
}

/// Of the file, and of what was agreed to of a project's.
type Stamps = (Stamp, Option<Stamp>);

impl HooksSource {
    /// The file `hookbus.yaml` in `home`, with the log there to fall back on.
    pub fn new(home: &Path, log: LogPath) -> Self {
        Self { file: home.join("hookbus.yaml"), log, project: None, known: Mutex::new(None) }
    }

    /// A project's file.
    pub(super) fn of_project(file: &Path, log: LogPath, consents: Arc<Consents>) -> Self {
        Self { file: file.to_owned(), log, project: Some(consents), known: Mutex::new(None) }
    }

    /// The file that is watched.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The hooks in force now. One look at the file's stamp when nothing has changed.
    pub fn in_force(&self) -> Arc<InForce> {
        let stamp = (Stamp::of(&self.file), self.project.as_ref().map(|consents| consents.stamp()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, in_force)) = &*known
            && *then == stamp
        {
            return Arc::clone(in_force);
        }
        let before = known.as_ref().map(|(_, in_force)| in_force.as_ref());
        let Read { mut in_force, certain } = self.read(before);
        // The same words: what their plugins remember stays.
        if let Some(before) = before.filter(|it| it.hooks.hash == in_force.hooks.hash) {
            in_force.hooks.shelf = Arc::clone(&before.hooks.shelf);
        }
        let in_force = Arc::new(in_force);
        if certain {
            *known = Some((stamp, Arc::clone(&in_force)));
        }
        in_force
    }

    /// The hooks of a project with what nobody has agreed to yet, for whoever is about to.
    pub fn to_look_at(&self) -> InForce {
        self.read_as(self.none().read_whole(), None).in_force
    }

    fn read(&self, before: Option<&InForce>) -> Read {
        self.read_as(self.none(), before)
    }

    fn read_as(&self, none: Hooks, before: Option<&InForce>) -> Read {
        let largest = self.project.as_ref().map(|_| LARGEST);
        let text = match read_regular(&self.file, largest) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Read::certain(self.made_of(none, Standing::NoFile));
            }
            Err(error) => {
                let problem = Problem::broken_file(1, format!("cannot read it: {error}"));
                return self.last_good(before, problem);
            }
        };
        match none.read(&text) {
            Ok(hooks) => Read::certain(self.made_of(hooks, Standing::Current)),
            Err(problem) => self.last_good(before, problem),
        }
    }

    fn last_good(&self, before: Option<&InForce>, problem: Problem) -> Read {
        let in_log = match before.map(|before| (&before.standing, &before.hooks)) {
            Some((Standing::Current | Standing::LastGood(_), hooks)) => {
                let hooks = hooks.clone();
                return Read::certain(self.made_of(hooks, Standing::LastGood(problem)));
            }
            Some((Standing::NoFile | Standing::NothingGood(_), _)) | None => self.content_in_log(),
        };
        // The log may only have been busy. A project's broken file is not read with every event for that,
        // once the log has said that it knows of nothing better.
        let certain = self.project.is_some() && in_log.is_ok();
        let good = in_log.ok().flatten().filter(|content| !content.is_empty());
        match good.and_then(|content| self.none().read(&content).ok()) {
            Some(hooks) => Read::certain(self.made_of(hooks, Standing::LastGood(problem))),
            None => {
                let in_force = self.made_of(self.none(), Standing::NothingGood(problem));
                Read { in_force, certain }
            }
        }
    }

    /// What the log says was in force last; nothing of what an archive holds, which was in force elsewhere.
    fn content_in_log(&self) -> Result<Option<String>, ReadError> {
        let log = LogReader::open(&self.log)?;
        if log.is_archive() {
            return Ok(None);
        }
        let file = self.file.to_string_lossy();
        let last = log.last_hooks(self.project.as_ref().map(|_| file.as_ref()))?;
        Ok(last.map(|last| last.content))
    }

    fn made_of(&self, hooks: Hooks, standing: Standing) -> InForce {
        let draft = HooksDraft {
            hash: hooks.hash.clone(),
            path: self.file.to_string_lossy().into_owned(),
            content: hooks.content.clone(),
            of_project: self.project.is_some(),
        };
        InForce { hooks, draft: Arc::new(draft), standing }
    }

    /// No hooks of this file.
    fn none(&self) -> Hooks {
        match &self.project {
            Some(consents) => Hooks::none_of_project(&self.file, Arc::clone(consents)),
            None => Hooks::none(self.file.parent().unwrap_or(Path::new("/"))),
        }
    }
}

/// The hooks in force, and whether that holds until the file changes.
struct Read {
    in_force: InForce,
    certain: bool,
}

impl Read {
    const fn certain(in_force: InForce) -> Self {
        Self { in_force, certain: true }
    }
}

/// The text of a file, not much more of it than `largest`.
fn read_regular(file: &Path, largest: Option<usize>) -> io::Result<String> {
    let opened = regular::open(file)?;
    let Some(largest) = largest else { return io::read_to_string(opened) };
    let mut bytes = Vec::new();
    opened.take(largest as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > largest {
        // Too long, whatever it says: it may have been cut inside of a letter.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}
