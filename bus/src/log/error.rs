//! What can go wrong with the log, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ErrorCode;

/// The log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none yet.
    #[error("there is no log at {0} yet; it appears with the first event")]
    Missing(PathBuf),
    /// A later version of hookbus wrote it.
    #[error("the log has schema {found}, this hookbus knows up to {known}; use a newer hookbus")]
    Newer {
        /// The file's schema version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The file is something else.
    #[error("{0} is not a hookbus log; move it away, or set HOOKBUS_HOME to another directory")]
    Foreign(PathBuf),
    /// The file system does not give us what WAL needs.
    #[error(
        "SQLite cannot keep a write-ahead log here (it chose `{0}`); put HOOKBUS_HOME on a local disk"
    )]
    NoWal(String),
    /// The directory or the lock file cannot be used.
    #[error("cannot use {path}: {error}")]
    Io {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Anything SQLite says.
    #[error("cannot open the log: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// An event cannot be appended. It goes to the spool and is taken in later.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// No room.
    #[error("the disk is full; free some space, spooled events are taken in by themselves")]
    Full,
    /// No right to write.
    #[error("the log is read-only; check who owns HOOKBUS_HOME")]
    ReadOnly,
    /// Another process held the log for too long.
    #[error("the log was locked by another process for too long")]
    Locked,
    /// It was not done by the deadline, and nobody can say why.
    #[error("the log did not take it within {0:.1?}; another process may have it locked")]
    Late(Duration),
    /// All the time was used up before.
    #[error("no time was left to wait for the log")]
    OutOfTime,
    /// The log cannot be opened at all.
    #[error(transparent)]
    Open(OpenError),
    /// The file holds what came from other buses.
    #[error("this log is an archive of other buses; set HOOKBUS_HOME to another directory")]
    IsArchive,
    /// The file is a log that events are appended to.
    #[error("this log has events of its own; name another directory for the archive")]
    NoArchive,
    /// The writer is gone: the process is shutting down.
    #[error("the log is being closed")]
    Closed,
    /// Anything else SQLite says.
    #[error("the log cannot be written: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<OpenError> for AppendError {
    fn from(error: OpenError) -> Self {
        // A full disk is a full disk, whether it shows on opening or on writing.
        if let OpenError::Sqlite(error) = error { error.into() } else { Self::Open(error) }
    }
}

impl From<rusqlite::Error> for AppendError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
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
    /// SQLite stumbled.
    #[error("cannot read the log: {0}; `hookbus verify` says where it is damaged")]
    Sqlite(#[from] rusqlite::Error),
    /// A shortened session id that fits several.
    #[error("`{prefix}` fits several sessions: {}; write more of it", .candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// Some that fit.
        candidates: Vec<String>,
    },
    /// A session nobody recorded.
    #[error("no session starts with `{0}`; `hookbus sessions` lists them")]
    NoSession(String),
}
