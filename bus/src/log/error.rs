//! Errors of the log, each with what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::files::NotPrivate;

/// The log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no log yet.
    #[error("there is no log at {0} yet; it appears with the first event")]
    Missing(PathBuf),
    /// It was a log, and another program cut it off.
    #[error(
        "{0} is empty, but it was a log: another program cut it off; restore it from a backup or an archive, or move it \
         away: a new log begins with the next event"
    )]
    Emptied(PathBuf),
    /// It has tables, and its header says that it has none.
    #[error(
        "{0} has tables, but its `user_version` is 0: another program changed it; restore it from a backup or an archive, \
         or move it away: a new log begins with the next event"
    )]
    NoVersion(PathBuf),
    /// A later version of hookbus wrote it.
    #[error("the log has schema {found}, this hookbus knows up to {known}; use a newer hookbus")]
    Newer {
        /// The file's schema version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The file is not a hookbus log.
    #[error("{0} is not a hookbus log; move it away, or name another home with `--home`")]
    Foreign(PathBuf),
    /// The file system does not support what a write-ahead log needs.
    #[error(
        "SQLite cannot use a write-ahead log here (its journal mode is `{0}`); put the home on a \
         local disk"
    )]
    NoWal(String),
    /// Other users can change it.
    #[error("{0}; until then events wait in the spool")]
    NotPrivate(#[from] NotPrivate),
    /// The directory or the lock file cannot be used.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Any other error of SQLite.
    #[error("cannot open the log: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Why a row cannot be appended. The event goes to the spool and is appended later.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// No space left.
    #[error("the disk is full; free some space, spooled events are then appended automatically")]
    Full,
    /// No permission to write.
    #[error("the log is read-only; check who owns the home")]
    ReadOnly,
    /// Another process held the log for too long.
    #[error("the log was locked by another process for too long")]
    Locked,
    /// The append did not finish before the deadline; the cause is not known.
    #[error("the append did not finish within {0:.1?}; another process may have the log locked")]
    Late(Duration),
    /// The deadline had passed before the append could start.
    #[error("no time was left to wait for the log")]
    OutOfTime,
    /// SQLite refuses the row for its size, or has not enough memory for it.
    #[error("the log cannot take a row of this size: {0}")]
    TooLarge(rusqlite::Error),
    /// The log was deleted or replaced while the event was handled.
    #[error("the log was deleted or replaced while the event was handled")]
    Replaced,
    /// The log cannot be opened at all.
    #[error(transparent)]
    Open(OpenError),
    /// The file is an archive: its rows come from other buses.
    #[error("this log is an archive of other buses; name another home with `--home`")]
    IsArchive,
    /// The file is the log of a bus, not an archive.
    #[error("this is the log of a bus, not an archive; choose another directory for the archive")]
    NoArchive,
    /// The event of this decision is in the spool, and they are appended together.
    #[error("its event could not be appended to the log")]
    EventSpooled,
    /// The writer thread has ended: the process is shutting down.
    #[error("the log is being closed")]
    Closed,
    /// SQLite reports success, but the row is not there: a trigger that is not ours left it out.
    #[error(
        "a trigger in log.db keeps rows out of the log; `hookbus verify` names it, and `hookbus verify --repair` removes it"
    )]
    LeftOut,
    /// Any other error of SQLite.
    #[error(
        "cannot write to the log: {0}; `hookbus verify` tells whether another program changed it"
    )]
    Sqlite(rusqlite::Error),
}

impl From<OpenError> for AppendError {
    fn from(error: OpenError) -> Self {
        // A full disk gives the same error, whether it shows on opening or on writing.
        if let OpenError::Sqlite(error) = error { error.into() } else { Self::Open(error) }
    }
}

impl From<rusqlite::Error> for AppendError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::TooBig | ErrorCode::OutOfMemory) => Self::TooLarge(error),
            Some(_) | None => Self::Sqlite(error),
        }
    }
}

/// The log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An error of SQLite.
    #[error("cannot read the log: {0}; `hookbus verify` shows where it is damaged")]
    Sqlite(#[from] rusqlite::Error),
    /// Several sessions start with the given prefix.
    #[error("`{prefix}` matches several sessions: {}; give more characters", .candidates.join(", "))]
    Ambiguous {
        /// The given prefix.
        prefix: String,
        /// Some sessions that match.
        candidates: Vec<String>,
    },
    /// No session starts with the given prefix.
    #[error("no session starts with `{0}`; `hookbus sessions` lists them")]
    NoSession(String),
}
