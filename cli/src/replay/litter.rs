//! Nothing of a replay stays behind: its scratch places and the processes in them go when it ends, also
//! when it is told to by a signal. What a replay that was killed left is swept up by the next one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use hookbus::decide::Scratch;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

/// What our folders are called; our process id follows.
const NAMES: [&str; 2] = ["hookbus-replay-", "hookbus-copy-"];

/// What there is to tidy up. Signals are for the whole process, and so is this.
static LITTER: Mutex<Litter> = Mutex::new(Litter { folders: Vec::new(), scratches: Vec::new() });

struct Litter {
    folders: Vec<PathBuf>,
    scratches: Vec<Scratch>,
}

fn litter() -> MutexGuard<'static, Litter> {
    LITTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary folder; gone when dropped, or when a signal ends us.
#[derive(Debug)]
pub(super) struct Folder(TempDir);

impl Folder {
    /// For the commands of a replay.
    pub(super) fn for_commands() -> Result<Self> {
        Self::called(NAMES[0])
    }

    /// For the copy of a log.
    pub(super) fn for_a_copy() -> Result<Self> {
        Self::called(NAMES[1])
    }

    fn called(name: &str) -> Result<Self> {
        let name = format!("{name}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&name).tempdir();
        let folder = folder.context("cannot make a scratch place; check TMPDIR")?;
        litter().folders.push(folder.path().to_owned());
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        litter().folders.retain(|folder| folder != self.0.path());
    }
}

/// What runs in `scratch` ends with us.
pub(super) fn runs_in(scratch: &Scratch) {
    litter().scratches.push(scratch.clone());
}

/// Sweeps up after those who could not, and sees to it that we can.
pub(super) fn tidy() -> Result<()> {
    sweep(&std::env::temp_dir());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told = |kind: SignalKind| {
        let inside = runtime.enter();
        let signal = signal(kind);
        drop(inside);
        signal.context("no signals")
    };
    let mut hung_up = told(SignalKind::hangup())?;
    let mut interrupted = told(SignalKind::interrupt())?;
    let mut terminated = told(SignalKind::terminate())?;
    std::thread::spawn(move || {
        let code = runtime.block_on(async {
            tokio::select! {
                _ = hung_up.recv() => 129,
                _ = interrupted.recv() => 130,
                _ = terminated.recv() => 143,
            }
        });
        leave(code);
    });
    Ok(())
}

#[expect(clippy::exit, reason = "a signal ends the whole process, whatever it is at")]
fn leave(code: i32) {
    // Held to the end: nobody makes another folder.
    let litter = litter();
    litter.scratches.iter().for_each(Scratch::end);
    for folder in &litter.folders {
        drop(fs::remove_dir_all(folder));
    }
    std::process::exit(code)
}

fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| {
            let rest = NAMES.iter().find_map(|start| name.strip_prefix(start))?;
            rest.split_once('-')?.0.parse::<u32>().ok()
        });
        // Somebody else's stays: it cannot be removed.
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}
