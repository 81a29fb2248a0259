//! Which version of a hooks file is in force: the file on disk as far as it can be used, and for the rest its last
//! good version, from memory or from the log, so that a typo never switches a policy off.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::hooks::{ActiveHooks, HooksStatus};
use crate::config::{EventKey, HooksFile, LARGEST_PROJECT_FILE, Problem, is_blank};
use crate::consent::ApprovalStore;
use crate::files::{
    Stamp, check_private, check_private_folder, is_not_private, open_regular, read_private_up_to,
    sha256,
};
use crate::log::{LogPath, LogReader, ReadError};

/// The most bytes of the user's own file. It is read whenever it changes, and an agent waits for that.
const LARGEST_OWN_FILE: u64 = 1 << 20;

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

/// The version of a file that was in force before.
struct EarlierVersion {
    /// None if there was none.
    file: Option<HooksFile>,
    /// Whether that is known. If the log could not be read, the next event tries again.
    is_certain: bool,
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
        let text = match self.read_text() {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.path.is_symlink() {
                    let why = "it is a link that leads nowhere; restore the file, or remove the link if you want no hooks";
                    return self.last_good(before, Problem::broken_file(1, why));
                }
                return self.final_version(self.empty(), HooksStatus::NoFile);
            }
            Err(error) if is_not_private(&error) => {
                // Tried again at the next event: the file's stamp does not tell whether its directory was mended.
                let problem = Problem::broken_file(1, error.to_string());
                return LoadResult { cacheable: false, ..self.last_good(before, problem) };
            }
            Err(error) => {
                // Tried again at the next event: the error may pass, and the file's stamp does not show that.
                let problem = Problem::broken_file(1, format!("cannot read it: {error}"));
                return LoadResult { cacheable: false, ..self.last_good(before, problem) };
            }
        };
        match self.parse(&text, entries) {
            Ok(file) if file.has_mistakes() => self.with_last_good(before, &text, file, entries),
            Ok(file) if is_blank(&text) => self.last_good_if_any(before, file),
            Ok(file) => self.final_version(file, HooksStatus::Current),
            Err(problem) => self.last_good(before, problem),
        }
    }

    /// The text of the file. The user's own must not be in the reach of other users.
    fn read_text(&self) -> io::Result<String> {
        if self.is_project {
            return read_limited(&self.path, LARGEST_PROJECT_FILE);
        }
        let text = read_private_up_to(&self.path, LARGEST_OWN_FILE)?;
        let home = self.path.parent().unwrap_or(Path::new("/"));
        check_private_folder(home).map_err(io::Error::other)?;
        Ok(text)
    }

    fn parse(&self, text: &str, entries: ReadEntries) -> Result<HooksFile, Problem> {
        if !self.is_project {
            return HooksFile::parse(text, self.path.parent().unwrap_or(Path::new("/")));
        }
        HooksFile::parse_project(text, &self.path, &|on, entry| self.is_read(on, entry, entries))
    }

    /// Whether an entry is read in full.
    fn is_read(&self, on: &EventKey, entry: &str, entries: ReadEntries) -> bool {
        !self.is_project
            || entries == ReadEntries::All
            || self.approvals.has_approved_text(&self.path, on, &sha256(entry.as_bytes()))
    }

    /// The file with its broken entries and settings as they were in the version before.
    fn with_last_good(
        &self,
        before: Option<&ActiveHooks>,
        text: &str,
        file: HooksFile,
        entries: ReadEntries,
    ) -> LoadResult {
        let EarlierVersion { file: earlier, is_certain } = self.earlier(before);
        let is_read = |on: &EventKey, entry: &str| self.is_read(on, entry, entries);
        let file = match earlier {
            Some(earlier) => file.with_last_good(text, &earlier, &is_read),
            None => file,
        };
        // Without a log there is no earlier version; reading the file again would restart its plugins each time.
        let cacheable = is_certain || !self.log.file().exists();
        LoadResult { active: self.activate(file, HooksStatus::Current), cacheable }
    }

    /// The version before instead of `file`, which is blank: an editor or a full disk has emptied it, because a user
    /// who wants no hooks deletes it. Without an earlier version that says anything, blank is what it is.
    fn last_good_if_any(&self, before: Option<&ActiveHooks>, file: HooksFile) -> LoadResult {
        let EarlierVersion { file: earlier, is_certain } = self.earlier(before);
        match earlier.filter(|it| !it.hooks.is_empty() || !it.settings.is_empty()) {
            Some(earlier) => {
                let why = "there are no hooks in it any more; write `hooks: {}` if that is meant";
                let problem = Problem::broken_file(1, why);
                self.final_version(earlier, HooksStatus::LastGood(problem))
            }
            None => {
                let cacheable = is_certain || !self.log.file().exists();
                LoadResult { cacheable, ..self.final_version(file, HooksStatus::Current) }
            }
        }
    }

    /// The version before instead of a file that cannot be used at all.
    fn last_good(&self, before: Option<&ActiveHooks>, problem: Problem) -> LoadResult {
        match self.earlier(before) {
            EarlierVersion { file: Some(file), .. } => {
                self.final_version(file, HooksStatus::LastGood(problem))
            }
            EarlierVersion { file: None, is_certain } => {
                let active = self.activate(self.empty(), HooksStatus::NothingGood(problem));
                // A project's broken file is not parsed again at every event.
                LoadResult { active, cacheable: self.is_project && is_certain }
            }
        }
    }

    /// The version that was in force before, from memory, else from the log. A blank one is none.
    fn earlier(&self, before: Option<&ActiveHooks>) -> EarlierVersion {
        let in_memory = before.filter(|before| match before.status {
            HooksStatus::Current | HooksStatus::LastGood(_) => !is_blank(&before.file.content),
            HooksStatus::NoFile | HooksStatus::NothingGood(_) => false,
        });
        if let Some(before) = in_memory {
            return EarlierVersion { file: Some(before.file.clone()), is_certain: true };
        }
        let in_log = self.content_in_log();
        let is_certain = in_log.is_ok();
        let content = in_log.ok().flatten().filter(|content| !is_blank(content));
        let file = content.and_then(|content| self.parse(&content, ReadEntries::Approved).ok());
        EarlierVersion { file, is_certain }
    }

    /// The content that was in force last, from the log. None from an archive: it was in force elsewhere; and none
    /// from a log that other users can change.
    fn content_in_log(&self) -> Result<Option<String>, ReadError> {
        let is_foreign = fs::metadata(self.log.file())
            .is_ok_and(|metadata| check_private(self.log.file(), &metadata).is_err());
        if is_foreign {
            return Ok(None);
        }
        let log = LogReader::open(&self.log)?;
        if log.is_archive() {
            return Ok(None);
        }
        let path = self.path.to_string_lossy();
        let last = log.last_hooks(self.is_project.then_some(path.as_ref()))?;
        Ok(last.map(|last| last.content))
    }

    fn final_version(&self, file: HooksFile, status: HooksStatus) -> LoadResult {
        // Which entries of a project are read depends on the approvals.
        let cacheable = !self.is_project || self.approvals.is_readable();
        LoadResult { active: self.activate(file, status), cacheable }
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
fn read_limited(file: &Path, largest: usize) -> io::Result<String> {
    let opened = open_regular(file)?;
    let mut bytes = Vec::new();
    opened.take(largest as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > largest {
        // It may have been cut inside a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}
