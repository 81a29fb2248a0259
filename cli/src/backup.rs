//! `hookbus backup` and `hookbus restore`: a consistent copy of the log while agents go on, and back.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::dialect::derive;
use hookbus::event::{Clock, Seq, SystemClock};
use hookbus::log::{Backup, BackupError, LogPath, Restore, VerifyOptions, back_up, verify};
use serde_json::json;

use crate::cli::Exit;
use crate::output::{self, Progress, local_time, size};
use crate::settings::{Format, Settings};
use crate::status::is_daemon_up;

/// The arguments of `hookbus backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// Where to write the copy; without it, `hookbus-DATE.db` in this directory
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The arguments of `hookbus restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The copy: a file that `hookbus backup` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Restore it although it is not sound
    #[arg(long)]
    unsound: bool,
}

pub(crate) fn run_backup(
    arguments: &BackupArguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let now = local_time(SystemClock.now());
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => PathBuf::from(format!("hookbus-{}.db", now.format("%Y%m%d-%H%M%S"))),
    };
    let log = LogPath::in_home(&settings.home);
    let Backup { bus, head, bytes } = with_progress(&log, &file, || back_up(&log, &file))?;
    let rows = head.map_or(0, Seq::as_i64);
    output::line(match format {
        Format::Json => {
            json!({"file": file.to_string_lossy(), "bus": bus.to_string(), "head": rows, "bytes": bytes})
                .to_string()
        }
        Format::Text => format!(
            "wrote {} ({}, up to row {rows})\nto restore it: hookbus restore {}",
            file.display(),
            size(bytes),
            file.display()
        ),
    })?;
    Ok(Exit::Success)
}

/// Runs `job` while a progress line shows how long the file at `to` is.
fn with_progress(
    log: &LogPath,
    to: &Path,
    job: impl FnOnce() -> Result<Backup, BackupError>,
) -> Result<Backup> {
    let len = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let total = len(log.file()) >> 20;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut progress = Progress::new(total, "MB");
            while !done.load(Ordering::Relaxed) {
                progress.update(len(to) >> 20);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let result = job();
        done.store(true, Ordering::Relaxed);
        Ok(result?)
    })
}

pub(crate) fn run_restore(
    arguments: &RestoreArguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let RestoreArguments { file, unsound } = arguments;
    if is_daemon_up(settings) {
        bail!("a daemon uses this home; stop it first with `hookbus stop`");
    }
    let failed = || format!("cannot restore {}", file.display());
    let restore = Restore::prepare(&LogPath::in_home(&settings.home), file).with_context(failed)?;
    let mut progress = Progress::new(0, "rows");
    // The copy that was made of it, which is what will be there.
    let done = |rows| progress.update(rows);
    let verified =
        verify(restore.copy(), VerifyOptions::default(), &derive, done).with_context(failed)?;
    drop(progress);
    if !verified.is_sound() && !unsound {
        bail!(
            "{} is not sound; `hookbus restore --unsound` restores it all the same, and `hookbus verify` then tells \
             what is wrong with it",
            file.display()
        );
    }
    let restored = restore.put_in_place(SystemClock.now())?;
    let rows = restored.head.map_or(0, Seq::as_i64);
    let kept = restored.kept.as_ref().map(|kept| kept.display().to_string());
    output::line(match format {
        Format::Json => json!({"head": rows, "kept": kept}).to_string(),
        Format::Text => {
            let kept = kept.map_or_else(String::new, |kept| {
                format!("\nthe log that was here before is {kept}; remove it when you are content")
            });
            format!("restored the log up to row {rows}{kept}")
        }
    })?;
    Ok(Exit::Success)
}
