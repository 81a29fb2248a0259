//! Why a log cannot be pruned, and what to do about it.

use crate::log::{AppendError, OpenError, ReadError};

/// Why a log cannot be pruned. Batches that were done before stay done, each with its record.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// The selection restricts nothing.
    #[error(
        "say what to prune: an age, a size, a session, an agent or a kind; nothing was removed"
    )]
    Everything,
    /// Only one process removes or packs at a time.
    #[error("another hookbus prunes, compacts or redacts this log; try again later")]
    OtherRun,
    /// The rows of an archive belong to other buses.
    #[error(
        "this is an archive: a removal is recorded in the chain of a bus, and an archive has none of its own; \
         prune the log of the bus, or make a new archive"
    )]
    IsArchive,
    /// Another program changed the schema.
    #[error("the schema of the log is not ours; `hookbus verify` tells what is wrong with it")]
    ForeignSchema,
    /// An earlier version of hookbus wrote the log.
    #[error(
        "an earlier hookbus wrote this log; it is brought up to date with the next event, or by `hookbus compact`"
    )]
    OldSchema,
    /// The parts that a payload needs are not known.
    #[error(
        "row {seq} is damaged ({why}), so that it cannot be told which parts of payloads are still needed, and their \
         space cannot be given back; `hookbus verify` shows what is wrong"
    )]
    DamagedRow {
        /// Its seq.
        seq: i64,
        /// What is wrong with it.
        why: String,
    },
    /// A part cannot be read.
    #[error("part {part} of payloads is damaged ({why}); `hookbus verify` shows what is wrong")]
    DamagedPart {
        /// Its number.
        part: i64,
        /// What is wrong with it.
        why: String,
    },
    /// Another program put a file in its place.
    #[error(
        "log.db was replaced while it was pruned: what was selected is removed from the file that was there before, and not from \
         the one that is there now; run this again"
    )]
    Replaced,
    /// The file could not be written anew.
    #[error(
        "what was selected is removed, but its space is not given back to the disk yet: {0}; make room for a copy of the \
         log and run `hookbus compact`"
    )]
    Space(rusqlite::Error),
    /// The record cannot be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<rusqlite::Error> for PruneError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<OpenError> for PruneError {
    fn from(error: OpenError) -> Self {
        Self::Read(error.into())
    }
}
