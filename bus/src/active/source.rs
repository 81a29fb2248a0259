//! Which version of a hooks file is in force: the file on disk if it can be used, else its last good
//! version, from memory or from the log, so that a typo never switches a policy off.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::hooks::{ActiveHooks, HooksStatus};
use crate::config::{EventKey, HooksFile, LARGEST_PROJECT_FILE, Problem};
use crate::consent::ApprovalStore;
use crate::files::{Stamp, open_regular, sha256};
use crate::log::{LogPath, LogReader, ReadError};

/// Watches one hooks file.
#[derive(Debug)]
pub struct HooksSource {
    path: PathBuf,
    is_project: bool,
    log: LogPath,
    approvals: Arc<ApprovalStore>,
    cached: Mutex<Option<(Stamps, Arc<ActiveHooks>)>>,
}

/// The stamp of the file, and for a project's file that of the approvals.
type Stamps = (Stamp, Option<Stamp>);

/// Which entries of a project's file are read in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadEntries {
    /// Only the entries whose text the user approved.
    Approved,
    /// All of them, to ask the user.
    All,
}

/// The hooks in force, and whether they may be cached until the file changes.
struct LoadResult {
    active: ActiveHooks,
    cacheable: bool,
}

impl HooksSource {
    /// The file `hookbus.yaml` in `home`, with the log there to fall back on.
    pub fn new(home: &Path, log: LogPath) -> Self {
        Self {
            path: home.join("hookbus.yaml"),
            is_project: false,
            log,
            approvals: Arc::new(ApprovalStore::beside(home)),
            cached: Mutex::new(None),
        }
    }

    /// A project's file. Its approvals are in the user's own store.
    pub(super) fn of_project(path: &Path, log: LogPath, approvals: Arc<ApprovalStore>) -> Self {
        Self { path: path.to_owned(), is_project: true, log, approvals, cached: Mutex::new(None) }
    }

    /// The file that is watched.
    pub fn file(&self) -> &Path {
        &self.path
    }

    /// The hooks in force now. If nothing has changed, this costs one system call per watched file.
    pub fn active(&self) -> Arc<ActiveHooks> {
        let stamps = (Stamp::of(&self.path), self.is_project.then(|| self.approvals.stamp()));
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((cached_stamps, active)) = &*cached
            && *cached_stamps == stamps
        {
            return Arc::clone(active);
        }
        let before = cached.as_ref().map(|(_, active)| active.as_ref());
        let LoadResult { mut active, cacheable } = self.load(before, ReadEntries::Approved);
        // The text is the same, so its plugins keep their processes and their state.
        if let Some(before) = before.filter(|it| it.file.hash == active.file.hash) {
            active.plugins = Arc::clone(&before.plugins);
        }
        let active = Arc::new(active);
        if cacheable {
            *cached = Some((stamps, Arc::clone(&active)));
        }
        active
    }

    /// The hooks of a project with the entries that are not approved read in full, to ask the user.
    pub fn to_approve(&self) -> ActiveHooks {
        self.load(None, ReadEntries::All).active
    }

    fn load(&self, before: Option<&ActiveHooks>, entries: ReadEntries) -> LoadResult {
        let largest = self.is_project.then_some(LARGEST_PROJECT_FILE);
        let text = match read_text(&self.path, largest) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.final_version(self.empty(), HooksStatus::NoFile);
            }
            Err(error) => {
                let problem = Problem::broken_file(1, format!("cannot read it: {error}"));
                return self.last_good(before, problem);
            }
        };
        match self.parse(&text, entries) {
            Ok(file) => self.final_version(file, HooksStatus::Current),
            Err(problem) => self.last_good(before, problem),
        }
    }

    fn parse(&self, text: &str, entries: ReadEntries) -> Result<HooksFile, Problem> {
        if !self.is_project {
            return HooksFile::parse(text, self.path.parent().unwrap_or(Path::new("/")));
        }
        let is_approved = |on: &EventKey, entry: &str| {
            let digest = sha256(entry.as_bytes());
            entries == ReadEntries::All || self.approvals.has_approved_text(&self.path, on, &digest)
        };
        HooksFile::parse_project(text, &self.path, &is_approved)
    }

    fn last_good(&self, before: Option<&ActiveHooks>, problem: Problem) -> LoadResult {
        let in_log = match before.map(|before| (&before.status, &before.file)) {
            Some((HooksStatus::Current | HooksStatus::LastGood(_), file)) => {
                return self.final_version(file.clone(), HooksStatus::LastGood(problem));
            }
            Some((HooksStatus::NoFile | HooksStatus::NothingGood(_), _)) | None => {
                self.content_in_log()
            }
        };
        // If the log could not be read, the next event tries again. A project's broken file is not parsed again
        // at every event once it is known that the log has no good version.
        let cacheable = self.is_project && in_log.is_ok();
        let good = in_log.ok().flatten().filter(|content| !content.is_empty());
        match good.and_then(|content| self.parse(&content, ReadEntries::Approved).ok()) {
            Some(file) => self.final_version(file, HooksStatus::LastGood(problem)),
            None => {
                let active = self.activate(self.empty(), HooksStatus::NothingGood(problem));
                LoadResult { active, cacheable }
            }
        }
    }

    /// The content that was in force last, from the log. None from an archive: it was in force elsewhere.
    fn content_in_log(&self) -> Result<Option<String>, ReadError> {
        let log = LogReader::open(&self.log)?;
        if log.is_archive() {
            return Ok(None);
        }
        let path = self.path.to_string_lossy();
        let last = log.last_hooks(self.is_project.then_some(path.as_ref()))?;
        Ok(last.map(|last| last.content))
    }

    fn final_version(&self, file: HooksFile, status: HooksStatus) -> LoadResult {
        LoadResult { active: self.activate(file, status), cacheable: true }
    }

    fn activate(&self, file: HooksFile, status: HooksStatus) -> ActiveHooks {
        ActiveHooks::new(file, &self.path, Arc::clone(&self.approvals), status)
    }

    fn empty(&self) -> HooksFile {
        if self.is_project {
            HooksFile::empty_project(&self.path)
        } else {
            HooksFile::empty(self.path.parent().unwrap_or(Path::new("/")))
        }
    }
}

/// The text of a file. If it is longer than `largest`, only one byte more than that is read: enough for the
/// parser to refuse it.
fn read_text(file: &Path, largest: Option<usize>) -> io::Result<String> {
    let opened = open_regular(file)?;
    let Some(largest) = largest else { return io::read_to_string(opened) };
    let mut bytes = Vec::new();
    opened.take(largest as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > largest {
        // It may have been cut inside a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}
