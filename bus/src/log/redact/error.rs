//! Why rows cannot be redacted, and what to do about it.

use crate::log::{AppendError, OpenError, PruneError, ReadError};

/// Why rows cannot be redacted. Batches that were done before stay done, each with its record.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The rows of an archive belong to other buses.
    #[error(
        "this is an archive: a redaction is recorded in the chain of a bus, and an archive has none of its own; \
         redact the log of the bus, and make a new archive"
    )]
    IsArchive,
    /// A payload would not have been read back as it should be.
    #[error(
        "row {seq} would not be read back as it should be, so that it stays as it is; please report this"
    )]
    NotTheSame {
        /// Its seq.
        seq: i64,
    },
    /// Another program reads the log all the time.
    #[error(
        "the rows are redacted, but `log.db-wal` may still hold what was in them: another program reads the log and keeps \
         hookbus from emptying that file; end it and run this again"
    )]
    Busy,
    /// Another program put a file in its place.
    #[error(
        "log.db was replaced while it was redacted: the rows are redacted in the file that was there before, and not in the one \
         that is there now; run this again"
    )]
    Replaced,
    /// The file could not be written anew.
    #[error(
        "the rows are redacted, but unused places in the file may still hold what was in them: it could not be written \
         anew ({0}); make room for a copy of the log and run this again"
    )]
    Space(rusqlite::Error),
    /// What prune does as well.
    #[error(transparent)]
    Prune(#[from] PruneError),
}

impl From<rusqlite::Error> for RedactError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Prune(error.into())
    }
}

impl From<OpenError> for RedactError {
    fn from(error: OpenError) -> Self {
        Self::Prune(error.into())
    }
}

impl From<AppendError> for RedactError {
    fn from(error: AppendError) -> Self {
        Self::Prune(error.into())
    }
}

impl From<ReadError> for RedactError {
    fn from(error: ReadError) -> Self {
        Self::Prune(error.into())
    }
}
