//! Copies a log while it is written to.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::OptionalExtension;

use super::{LogPath, OpenError, ReadError, open};
use crate::event::{BusId, Seq};
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

/// Why a log cannot be copied or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is something at the place for the copy.
    #[error("{} exists already; name another file, or move it away", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The copy is an archive, and is to be put in the place of the log of a bus.
    #[error(
        "{} is an archive, which holds rows of other buses: no bus could record here any more. Name a copy of the log of this bus, \
         which `hookbus backup` wrote; to read the archive, name its directory with `--home`", .0.display()
    )]
    IsArchive(PathBuf),
    /// Another program uses the log that is there.
    #[error(
        "another program reads or writes the log that is there, so that its rows cannot be brought together in one file; end it \
         and run this again. Nothing was changed"
    )]
    Busy,
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

pub(super) fn sync(file: &Path) -> io::Result<()> {
    fs::File::open(file)?.sync_all()?;
    file.parent().filter(|it| !it.as_os_str().is_empty()).map_or(Ok(()), sync_directory)
}
