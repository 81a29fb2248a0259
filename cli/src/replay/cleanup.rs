//! Removes the temporary directories of a replay and ends the processes in them, also when a signal ends
//! the replay. Directories that a killed replay left behind are removed by the next one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use hookbus::decide::replay::ReplayEnvironment;
use hookbus::sys::process::is_running;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

/// Prefixes of our temporary directories; the process id follows.
const SANDBOX_PREFIX: &str = "hookbus-replay-";
const LOG_COPY_PREFIX: &str = "hookbus-copy-";

/// What to clean up on a signal. Static, because a signal is for the whole process.
static RESOURCES: Mutex<Resources> =
    Mutex::new(Resources { directories: Vec::new(), environments: Vec::new() });

struct Resources {
    directories: Vec<PathBuf>,
    environments: Vec<ReplayEnvironment>,
}

fn resources() -> MutexGuard<'static, Resources> {
    RESOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary directory; removed when dropped, or when a signal ends the process.
#[derive(Debug)]
pub(super) struct TempDirectory(TempDir);

impl TempDirectory {
    /// For the commands of a replay.
    pub(super) fn for_sandbox() -> Result<Self> {
        Self::with_prefix(SANDBOX_PREFIX)
    }

    /// For the copy of a log.
    pub(super) fn for_log_copy() -> Result<Self> {
        Self::with_prefix(LOG_COPY_PREFIX)
    }

    fn with_prefix(prefix: &str) -> Result<Self> {
        let prefix = format!("{prefix}{}-", std::process::id());
        let directory = tempfile::Builder::new().prefix(&prefix).tempdir();
        let directory = directory.context("cannot create a temporary directory; check TMPDIR")?;
        resources().directories.push(directory.path().to_owned());
        Ok(Self(directory))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TempDirectory {
    fn drop(&mut self) {
        resources().directories.retain(|directory| directory != self.0.path());
    }
}

/// Ends the processes in `environment` when a signal ends this process.
pub(super) fn end_on_signal(environment: &ReplayEnvironment) {
    resources().environments.push(environment.clone());
}

/// Removes what earlier replays left behind, and starts to handle signals.
pub(super) fn install() -> Result<()> {
    remove_stale_directories(&std::env::temp_dir());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let receiver = |kind: SignalKind| {
        let guard = runtime.enter();
        let receiver = signal(kind);
        drop(guard);
        receiver.context("cannot handle signals")
    };
    let mut hangup = receiver(SignalKind::hangup())?;
    let mut interrupt = receiver(SignalKind::interrupt())?;
    let mut terminate = receiver(SignalKind::terminate())?;
    std::thread::spawn(move || {
        let code = runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => 129,
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            }
        });
        clean_up_and_exit(code);
    });
    Ok(())
}

#[expect(clippy::exit, reason = "a signal ends the whole process, whatever it is doing")]
fn clean_up_and_exit(code: i32) {
    crate::screen::restore_for_exit();
    // Locked until the exit, so that no other thread creates a directory.
    let resources = resources();
    resources.environments.iter().for_each(ReplayEnvironment::end);
    for directory in &resources.directories {
        drop(fs::remove_dir_all(directory));
    }
    std::process::exit(code)
}

fn remove_stale_directories(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| {
            let prefixes = [SANDBOX_PREFIX, LOG_COPY_PREFIX];
            let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
            rest.split_once('-')?.0.parse::<u64>().ok()
        });
        // Removing another user's directory fails, which is fine.
        if pid.is_some_and(|pid| !is_running(pid)) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}
