//! Copies a log while it is written to, and puts a copy in its place.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::OptionalExtension;

use super::lock::WriteLock;
use super::{LogPath, LogReader, OpenError, ReadError, open};
use crate::event::{BusId, Seq, Time};
use crate::sys::fs::sync_directory;

/// A copy of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The bus that the log belongs to.
    pub bus: BusId,
    /// The last row in the copy.
    pub head: Option<Seq>,
    /// How long the copy is.
    pub bytes: u64,
}

/// What restoring a log did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The last row of the log now.
    pub head: Option<Seq>,
    /// Where the log that was there before is; none if there was none.
    pub kept: Option<PathBuf>,
}

/// Why a log cannot be copied or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is something at the place for the copy.
    #[error("{} exists already; name another file", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<rusqlite::Error> for BackupError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<OpenError> for BackupError {
    fn from(error: OpenError) -> Self {
        Self::Read(error.into())
    }
}

/// Copies the log to `file` as it is at this moment, without unused space. Agents go on meanwhile: writers do not wait
/// for it. The copy is on disk when this returns, and nothing is left at `file` if it fails.
pub fn back_up(log: &LogPath, file: &Path) -> Result<Backup, BackupError> {
    let db = open::for_reading(log)?;
    let failed = |error| BackupError::Io { file: file.to_owned(), error };
    // SQLite writes into a file that is empty; so only its owner can read it from the beginning.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(BackupError::Exists(file.to_owned()));
        }
        other => drop(other.map_err(failed)?),
    }
    let copied = copy(&db, file);
    if copied.is_err()
        && let Err(error) = fs::remove_file(file)
    {
        tracing::debug!(%error, "an unfinished copy is not removed");
    }
    copied
}

fn copy(db: &rusqlite::Connection, file: &Path) -> Result<Backup, BackupError> {
    let failed = |error| BackupError::Io { file: file.to_owned(), error };
    let name = file.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    db.pragma_update(None, "query_only", false)?;
    db.execute("VACUUM INTO ?1", [name])?;
    sync(file).map_err(failed)?;
    let head = open::in_copy(file)?
        .query_row("SELECT max(seq) FROM events", [], |row| row.get::<_, Option<i64>>(0))
        .optional()?;
    let bytes = fs::metadata(file).map_err(failed)?.len();
    Ok(Backup { bus: open::bus_id(db)?, head: head.flatten().map(Seq::from_i64), bytes })
}

/// Puts the copy `file` in the place of the log. The log that is there is kept under another name. Processes that have
/// it open notice that the file was replaced, and use the new one.
pub fn restore(log: &LogPath, file: &Path, now: Time) -> Result<Restored, BackupError> {
    let from = LogReader::open(&LogPath::of_file(file))?;
    let head = from.head()?.map(|(seq, _)| seq);
    drop(from);
    let failed = |path: &Path| {
        let file = path.to_owned();
        |error| BackupError::Io { file, error }
    };
    let new = log.file().with_file_name("log.db.restoring");
    if let Some(home) = log.file().parent() {
        fs::create_dir_all(home).map_err(failed(home))?;
    }
    let copy = || {
        let mut from = fs::File::open(file)?;
        let mut to =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    };
    copy().map_err(failed(&new))?;
    let lock = WriteLock::open(&log.lock_file()).map_err(BackupError::from)?;
    let guard = lock.acquire();
    let kept = keep_current(log, now)?;
    fs::rename(&new, log.file()).map_err(failed(log.file()))?;
    if let Some(home) = log.file().parent() {
        sync_directory(home).map_err(failed(home))?;
    }
    drop(guard);
    Ok(Restored { head, kept })
}

/// Moves the log that is there away, with the files of SQLite beside it: rows may only be in its write-ahead log.
fn keep_current(log: &LogPath, now: Time) -> Result<Option<PathBuf>, BackupError> {
    if !log.file().exists() {
        return Ok(None);
    }
    let name = format!("log.db.before-restore-{}", now.to_utc().format("%Y%m%dT%H%M%S%.6f"));
    let kept = LogPath::of_file(&log.file().with_file_name(name));
    // The write-ahead log first: without `log.db` it is no log that a process could open.
    for (from, to) in log.companions().iter().zip(kept.companions()) {
        match fs::rename(from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(BackupError::Io { file: to, error });
            }
            Ok(()) | Err(_) => {}
        }
    }
    let file = kept.file().to_owned();
    fs::rename(log.file(), &file).map_err(|error| BackupError::Io { file: file.clone(), error })?;
    Ok(Some(file))
}

fn sync(file: &Path) -> io::Result<()> {
    fs::File::open(file)?.sync_all()?;
    file.parent().filter(|it| !it.as_os_str().is_empty()).map_or(Ok(()), sync_directory)
}
