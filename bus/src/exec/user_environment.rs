//! The user's own `PATH` and home directory, as they were when the user last approved a hook or connected an agent.
//! Programs of hooks are looked up there, not on the agent's `PATH`: an agent may have it from a file of the
//! repository that it works in. They are in `environment.json`, in the home of the bus.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::caller::Caller;
use crate::event::{Clock, SystemClock};
use crate::files::{Stamp, read_private};
use crate::sys::process::home_directory;

/// What marks the top directory of a project.
const PROJECT_MARKS: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Directories that belong to the system, also for an agent that works above them.
const SYSTEM_FOLDERS: [&str; 8] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
];

/// The user's own `PATH` and home directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEnvironment {
    /// The directories to look for programs in.
    pub path: OsString,
    /// What `~` and `$HOME` stand for.
    pub home: Option<OsString>,
    /// Whether they were recorded. If not, they are the agent's, without the directories of its project.
    pub is_recorded: bool,
}

impl UserEnvironment {
    /// The file in the home of the bus.
    pub fn file(home: &Path) -> PathBuf {
        home.join("environment.json")
    }

    /// Records the `PATH` and the home directory of this process in the home of the bus. To be called by commands
    /// of the user only.
    pub fn record(home: &Path) -> io::Result<()> {
        let cwd = std::env::current_dir().unwrap_or_default();
        let own_home = std::env::home_dir().filter(|home| home.is_absolute());
        let project = project_of(&cwd).filter(|project| {
            // A user who keeps the whole home directory in git still has programs below it.
            !own_home.as_ref().is_some_and(|home| home.starts_with(project))
        });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = safe_path(&path, project.as_deref());
        let directories: Vec<Value> =
            std::env::split_paths(&path).map(|directory| to_json(directory.as_os_str())).collect();
        let text = json!({
            "path": directories,
            "home": own_home.map(|home| to_json(home.as_os_str())),
            "recorded_at": SystemClock.now().to_string(),
        });
        write_private(&Self::file(home), &format!("{text:#}\n"))
    }

    /// The environment that was recorded in the home of the bus. Fails if it cannot be read; none if there is none.
    pub fn recorded(home: &Path) -> io::Result<Option<Self>> {
        let text = match read_private(&Self::file(home)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let parsed = Self::parse(&text).map(Some);
        parsed.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is broken"))
    }

    fn parse(text: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(text).ok()?;
        let directories = json["path"].as_array()?.iter().filter_map(from_json);
        let directories = directories.filter(|directory| Path::new(directory).is_absolute());
        let path = std::env::join_paths(directories).ok()?;
        let home = from_json(&json["home"]);
        Some(Self { path, home, is_recorded: true })
    }

    /// The directories of the system and the home directory in the password file: for a user whose own cannot be
    /// read. The agent's must not take their place.
    pub(crate) fn of_system() -> Self {
        let path = std::env::join_paths(SYSTEM_FOLDERS).unwrap_or_default();
        Self { path, home: home_directory().map(Into::into), is_recorded: false }
    }

    /// The environment of `caller`, for a user who has never recorded one: without relative directories and
    /// without those of the directory or project that the caller works in. A home directory there is replaced
    /// by the one in the password file.
    pub fn of_caller(caller: &Caller) -> Self {
        // An agent that works in the root directory, or in the home directory of the user, works in no project.
        let own_home = home_directory();
        let is_project = |folder: &PathBuf| {
            folder.parent().is_some()
                && !own_home.as_ref().is_some_and(|home| home.starts_with(folder))
        };
        let projects = [
            project_of(&caller.cwd).filter(is_project),
            Some(caller.cwd.clone()).filter(is_project),
        ];
        let is_safe = |directory: &Path| {
            let is_of_system = SYSTEM_FOLDERS.iter().any(|folder| directory == Path::new(folder));
            let mut projects = projects.iter().flatten();
            directory.is_absolute()
                && (is_of_system || !projects.any(|project| is_below(directory, project)))
        };
        let path = caller.var("PATH").unwrap_or_default();
        let directories = std::env::split_paths(path).filter(|directory| is_safe(directory));
        let works_in = |home: &Path| home == caller.cwd && project_of(home).is_none();
        let home = caller.var("HOME").map(Path::new);
        let home = home.filter(|home| is_safe(home) || works_in(home));
        Self {
            path: std::env::join_paths(directories).unwrap_or_default(),
            home: home.map(|home| home.as_os_str().to_owned()).or(own_home.map(Into::into)),
            is_recorded: false,
        }
    }
}

/// The environment that was recorded in a home, read again when its file changes.
#[derive(Debug, Default)]
pub(crate) struct EnvironmentCache(Mutex<Option<(Stamp, Option<Arc<UserEnvironment>>)>>);

/// What was recorded of the user's environment.
#[derive(Debug, Clone)]
pub(crate) enum Recorded {
    /// This.
    Known(Arc<UserEnvironment>),
    /// Nothing yet.
    Nothing,
    /// Something that cannot be read.
    Unreadable,
}

impl EnvironmentCache {
    /// What was recorded. A file that cannot be read is tried again each time.
    pub(crate) fn recorded(&self, home: &Path) -> Recorded {
        let stamp = Stamp::of(&UserEnvironment::file(home));
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.as_ref().is_none_or(|(read_at, _)| *read_at != stamp) {
            let Ok(environment) = UserEnvironment::recorded(home) else {
                *cached = None;
                return Recorded::Unreadable;
            };
            *cached = Some((stamp, environment.map(Arc::new)));
        }
        match cached.as_ref().and_then(|(_, environment)| environment.clone()) {
            Some(environment) => Recorded::Known(environment),
            None => Recorded::Nothing,
        }
    }
}

/// A path as text, or as the digits of its bytes if it is not UTF-8.
fn to_json(path: &OsStr) -> Value {
    match path.to_str() {
        Some(text) => json!(text),
        None => json!({"bytes": hex::encode(path.as_bytes())}),
    }
}

fn from_json(value: &Value) -> Option<OsString> {
    match value.as_str() {
        Some(text) => Some(text.into()),
        None => Some(OsString::from_vec(hex::decode(value["bytes"].as_str()?).ok()?)),
    }
}

/// The directories of `path` that are absolute and not below `project`.
fn safe_path(path: &OsStr, project: Option<&Path>) -> OsString {
    let is_safe = |directory: &PathBuf| {
        directory.is_absolute() && !project.is_some_and(|project| is_below(directory, project))
    };
    let directories = std::env::split_paths(path).filter(is_safe);
    std::env::join_paths(directories).unwrap_or_default()
}

/// The top directory of the project that contains `folder`.
fn project_of(folder: &Path) -> Option<PathBuf> {
    let is_top = |folder: &&Path| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists());
    folder.ancestors().filter(|folder| folder.parent().is_some()).find(is_top).map(Path::to_owned)
}

/// Whether `directory` is `project` or below it, also by another name.
fn is_below(directory: &Path, project: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let leads_up = directory.components().any(|part| part == Component::ParentDir);
    directory.starts_with(project) && !leads_up || real(directory).starts_with(real(project))
}

/// Replaces a file that only its owner can read, all of it or nothing.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let temporary = file.with_extension(format!("json.part-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let written = options.open(&temporary).and_then(|mut part| {
        part.write_all(text.as_bytes())?;
        part.sync_all()?;
        fs::rename(&temporary, file)?;
        File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all()
    });
    if written.is_err() {
        drop(fs::remove_file(&temporary));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_the_project_and_relative_ones_are_left_out() {
        let project = tempfile::tempdir().expect("a directory");
        let top = project.path();
        for folder in [".git", "bin", "src"] {
            fs::create_dir(top.join(folder)).expect("a directory");
        }
        let link = tempfile::tempdir().expect("a directory");
        let linked = link.path().join("bin");
        std::os::unix::fs::symlink(top.join("bin"), &linked).expect("a link");
        let path = std::env::join_paths([
            top.join("bin").as_path(),
            Path::new("."),
            Path::new(""),
            &linked,
            Path::new("/usr/bin"),
            &top.join("src/../bin"),
        ])
        .expect("a path");
        let env = vec![("PATH".into(), path), ("HOME".into(), top.join("home").into_os_string())];
        let caller = Caller { cwd: top.join("src"), env, ..Caller::default() };
        let environment = UserEnvironment::of_caller(&caller);
        assert_eq!(environment.path, "/usr/bin");
        let home = home_directory().map(PathBuf::into_os_string);
        assert_eq!(environment.home, home, "a home below the project does not count");
        let inside = Caller { cwd: top.join("home"), ..caller.clone() };
        assert_eq!(UserEnvironment::of_caller(&inside).home, home, "nor one that it works in");
        let in_root = UserEnvironment::of_caller(&Caller { cwd: "/".into(), ..caller });
        assert!(in_root.path.to_string_lossy().contains("/usr/bin"), "the root is no project");
    }

    #[test]
    fn a_recorded_environment_is_read_again_when_it_changes() {
        let home = tempfile::tempdir().expect("a home");
        let cache = EnvironmentCache::default();
        assert!(matches!(cache.recorded(home.path()), Recorded::Nothing));
        let write = |path: &str| {
            let text = json!({"path": [path, "relative"], "home": "/h"}).to_string();
            write_private(&UserEnvironment::file(home.path()), &text).expect("a file");
        };
        let path = || match cache.recorded(home.path()) {
            Recorded::Known(known) => Some(known.path.clone()),
            Recorded::Nothing | Recorded::Unreadable => None,
        };
        write("/one");
        assert_eq!(path(), Some("/one".into()));
        write("/two/three");
        assert_eq!(path(), Some("/two/three".into()));
        fs::write(UserEnvironment::file(home.path()), "{").expect("a file");
        assert!(matches!(cache.recorded(home.path()), Recorded::Unreadable));
    }
}
