//! The hooks of projects: `.hookbus/hookbus.yaml` in the directory that an agent works in, or in one above
//! it. Each file is watched for as long as events come from the project, then dropped with the processes of
//! its plugins.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use super::hooks::ActiveHooks;
use super::source::HooksSource;
use crate::caller::Caller;
use crate::consent::ApprovalStore;
use crate::log::LogPath;
use crate::sys::process::effective_uid;
use crate::sys::user::user_home;

const FOLDER: &str = ".hookbus";
const FILE: &str = "hookbus.yaml";

/// Beyond this many projects the one without events for longest is dropped.
const MOST: usize = 256;

/// A project without events for this long is dropped, and its plugins end.
const IDLE: Duration = Duration::from_mins(30);

/// How often idle projects are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// The projects that events came from.
#[derive(Debug)]
pub struct Projects {
    /// The user's own home, which is not a project.
    home: PathBuf,
    /// The default home by the user's own environment, which is none either. None for calls of agents: what their
    /// environment says must not switch a project's hooks off.
    default_home: Option<PathBuf>,
    log: LogPath,
    /// What the user approved, in all projects.
    approvals: Arc<ApprovalStore>,
    files: Mutex<WatchedFiles>,
}

#[derive(Debug, Default)]
struct WatchedFiles {
    by_path: HashMap<PathBuf, WatchedFile>,
    /// When idle projects were last looked for.
    swept_at: Option<Instant>,
}

#[derive(Debug)]
struct WatchedFile {
    source: Arc<HooksSource>,
    used_at: Instant,
}

impl Projects {
    /// The projects of the user with this home.
    pub fn new(home: &Path, log: LogPath) -> Self {
        let approvals = Arc::new(ApprovalStore::beside(home));
        let (home, default_home) = (home.to_owned(), None);
        Self { home, default_home, log, approvals, files: Mutex::default() }
    }

    /// The same where `default_home` is the user's own too.
    #[must_use]
    pub fn with_default_home(self, default_home: Option<PathBuf>) -> Self {
        Self { default_home, ..self }
    }

    /// The hooks of the project that the client works in, if it has any.
    pub fn at(&self, caller: &Caller) -> Option<Arc<ActiveHooks>> {
        Some(self.select(caller)?.1)
    }

    /// The file of that project; the nearest file if none takes part in decisions.
    pub fn source(&self, caller: &Caller) -> Option<Arc<HooksSource>> {
        self.select(caller).map(|(source, _)| source).or_else(|| self.nearest(caller))
    }

    /// The file nearest to the client's working directory, whether or not it takes part in decisions.
    pub fn nearest(&self, caller: &Caller) -> Option<Arc<HooksSource>> {
        self.files_above(caller).next().map(|file| self.watched(file))
    }

    /// The nearest file in which the user approved anything, else the nearest file: a file that came with a
    /// subdirectory must not replace hooks that the user approved further up.
    fn select(&self, caller: &Caller) -> Option<(Arc<HooksSource>, Arc<ActiveHooks>)> {
        let mut nearest = None;
        for file in self.files_above(caller) {
            let is_approved = self.approvals.has_approved_project(&file);
            let source = self.watched(file);
            let active = source.active();
            if active.takes_part() {
                let found = (source, active);
                if is_approved {
                    return Some(found);
                }
                nearest.get_or_insert(found);
            }
        }
        nearest
    }

    fn watched(&self, file: PathBuf) -> Arc<HooksSource> {
        self.used(file, Instant::now())
    }

    fn used(&self, file: PathBuf, now: Instant) -> Arc<HooksSource> {
        let mut files = self.files();
        let dropped = if files.by_path.len() >= MOST && !files.by_path.contains_key(&file) {
            files.longest_unused().and_then(|file| files.by_path.remove(&file))
        } else {
            None
        };
        let watched = files.by_path.entry(file).or_insert_with_key(|file| {
            let (log, approvals) = (self.log.clone(), Arc::clone(&self.approvals));
            let source = Arc::new(HooksSource::of_project(file, log, approvals));
            WatchedFile { source, used_at: now }
        });
        watched.used_at = now;
        let source = Arc::clone(&watched.source);
        drop(files);
        drop(dropped);
        source
    }

    /// Drops projects whose file is gone and those without events for long. Cheap to call often.
    pub fn drop_idle(&self, now: Instant) {
        let mut files = self.files();
        if files.swept_at.is_some_and(|at| now.saturating_duration_since(at) < SWEEP_EVERY) {
            return;
        }
        files.swept_at = Some(now);
        let stays = |file: &Path, watched: &WatchedFile| {
            now.saturating_duration_since(watched.used_at) < IDLE && !is_gone(file)
        };
        let gone: Vec<WatchedFile> = files
            .by_path
            .extract_if(|file, watched| !stays(file, watched))
            .map(|it| it.1)
            .collect();
        drop(files);
        // After the lock is released: this ends the processes of their plugins.
        drop(gone);
    }

    fn files(&self) -> MutexGuard<'_, WatchedFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files_above(&self, caller: &Caller) -> impl Iterator<Item = PathBuf> {
        // The path of a deleted working directory is not absolute.
        let above = caller.cwd.is_absolute().then(|| caller.cwd.ancestors());
        let files = above.into_iter().flatten().map(|folder| folder.join(FOLDER).join(FILE));
        files
            .filter(|file| fs::metadata(file).is_ok_and(|found| is_trusted_owner(found.uid())))
            // Approvals are stored as text, in which two paths that are not UTF-8 could look the same.
            .filter(|file| file.to_str().is_some())
            .filter(|file| is_project_file(file, &self.home, self.default_home.as_deref()))
    }
}

impl WatchedFiles {
    fn longest_unused(&self) -> Option<PathBuf> {
        let oldest = self.by_path.iter().min_by_key(|(_, watched)| watched.used_at);
        oldest.map(|(file, _)| file.clone())
    }
}

/// Whether the file does not exist. A file that cannot be accessed at the moment may still exist.
fn is_gone(file: &Path) -> bool {
    fs::metadata(file).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// As in git: a file that another user left in a shared directory does not make a project.
fn is_trusted_owner(owner: u32) -> bool {
    may_trust(owner, effective_uid())
}

const fn may_trust(owner: u32, me: u32) -> bool {
    owner == me || owner == 0 || me == 0
}

/// Whether `file` is a project's hooks file. The user's own home can have the same name, and can be reached
/// through a symlink. So can the default home, by the password database and by the environment (`default_home`).
pub fn is_project_file(file: &Path, home: &Path, default_home: Option<&Path>) -> bool {
    let Some(folder) = file.parent() else { return false };
    let has_name = file.file_name() == Some(OsStr::new(FILE))
        && folder.file_name() == Some(OsStr::new(FOLDER));
    if !has_name {
        return false;
    }
    let of_user = user_home().map(|home| home.join(FOLDER));
    let own = [Some(home), default_home, of_user.as_deref()];
    if own.iter().flatten().any(|own| *own == folder) {
        return false;
    }
    // Last, because it resolves every directory of the path.
    let Ok(real) = folder.canonicalize() else { return true };
    !own.iter().flatten().any(|own| own.canonicalize().is_ok_and(|own| own == real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_user_makes_no_project() {
        assert!(may_trust(1000, 1000) && may_trust(0, 1000), "the user's own, and root's");
        assert!(!may_trust(65534, 1000));
        assert!(may_trust(1000, 0), "root trusts every owner");
    }

    /// Projects of an empty home, and a file in it.
    fn projects() -> (tempfile::TempDir, Projects, PathBuf) {
        let home = tempfile::tempdir().expect("a home");
        let file = home.path().join("a.yaml");
        fs::write(&file, "hooks: {}").expect("a file");
        let projects = Projects::new(home.path(), LogPath::in_home(home.path()));
        (home, projects, file)
    }

    #[test]
    fn an_idle_project_and_one_without_its_file_are_dropped() {
        let (_home, projects, file) = projects();
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_mins(minutes);
        let is_known = |source: &Arc<HooksSource>| Arc::strong_count(source) > 1;
        let source = projects.used(file.clone(), at(0));
        projects.drop_idle(at(29));
        assert!(is_known(&source));
        assert!(Arc::ptr_eq(&source, &projects.used(file.clone(), at(29))));
        projects.drop_idle(at(58));
        assert!(is_known(&source), "it was used in between");
        projects.drop_idle(at(59));
        assert!(!is_known(&source));
        let again = projects.used(file.clone(), at(60));
        fs::remove_file(file).expect("a file");
        projects.drop_idle(at(61));
        assert!(!is_known(&again));
    }

    #[test]
    fn of_too_many_projects_the_longest_unused_is_dropped() {
        let (home, projects, _) = projects();
        let start = Instant::now();
        let use_project = |number: u32, second: u64| {
            let file = home.path().join(format!("{number}.yaml"));
            projects.used(file, start + Duration::from_secs(second))
        };
        let most = u32::try_from(MOST).expect("a number");
        let all: Vec<Arc<HooksSource>> = (0..most).map(|n| use_project(n, u64::from(n))).collect();
        drop(use_project(0, 1000));
        drop(use_project(most, 1001));
        let dropped = all.iter().position(|source| Arc::strong_count(source) == 1);
        assert_eq!(dropped, Some(1));
        assert_eq!(all.iter().filter(|source| Arc::strong_count(source) > 1).count(), MOST - 1);
    }
}
