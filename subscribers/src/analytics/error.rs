//! Why an analytics database cannot be used. Whether the database must be rebuilt or the caller only has to read its
//! position again is in the variant.

use std::io;
use std::path::PathBuf;

use hookbus::log::{OpenError, ReadError};

/// Why an analytics database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AnalyticsError {
    /// SQLite failed.
    #[error("the analytics database cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file cannot be created or replaced.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// There is something else at its path.
    #[error(
        "{} is not an analytics database of hookbus; name another file in `analytics:`", .0.display()
    )]
    Foreign(PathBuf),
    /// There is no database yet.
    #[error("there is no analytics database at {}; `hookbus stats` builds it", .0.display())]
    Missing(PathBuf),
    /// Another process has rebuilt it: the position has to be read again.
    #[error("the analytics database was rebuilt meanwhile; reading on from its position")]
    Rebuilt,
    /// A bus has another row at the position: its log was restored from a backup and written on.
    #[error("the log was restored to an older state; the analytics database is built anew")]
    Diverged,
    /// The system gives no thread to read with.
    #[error("cannot start a thread that reads the log: {0}")]
    Thread(io::Error),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
}

impl From<OpenError> for AnalyticsError {
    fn from(error: OpenError) -> Self {
        Self::Log(error.into())
    }
}
