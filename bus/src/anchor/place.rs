//! The places, as people write them, and what must hold before a checkpoint is added to one.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{file, git};
use crate::event::{BusId, Seq, Time};
use crate::log::{Checkpoint, CheckpointError, PublicKey, ReadError, SignedCheckpoint};

/// Whether the log agrees with a checkpoint that is kept at a place: it holds that row with that hash, or the row was removed
/// on purpose.
pub type Agrees<'a> = dyn Fn(&Checkpoint) -> Result<bool, ReadError> + 'a;

/// Where checkpoints are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorPlace {
    /// A file with one checkpoint per line.
    File(PathBuf),
    /// A ref of a git repository, with one commit per checkpoint; without a ref, `refs/hookbus/<bus>`.
    Git {
        /// The repository.
        repository: PathBuf,
        /// The ref.
        reference: Option<String>,
    },
}

/// What became of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchored {
    /// It was added.
    Added,
    /// It was there already.
    Known,
}

/// Why a place cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// The file cannot be read or written.
    #[error("cannot use {}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Git says no.
    #[error("git {command}: {message}")]
    Git {
        /// What git was asked to do.
        command: String,
        /// Its message.
        message: String,
    },
    /// It is something else.
    #[error(
        "{place} holds something else than checkpoints ({why}); name another place, or move that away"
    )]
    Foreign {
        /// The place.
        place: String,
        /// What is wrong with the last thing in it.
        why: CheckpointError,
    },
    /// It has a later row than the log.
    #[error(
        "{place} has a checkpoint of row {seq}, and this log ends before it: rows were cut off, or an older copy was restored. \
         `hookbus verify --against` tells more; nothing was written"
    )]
    Regressed {
        /// The place.
        place: String,
        /// The row.
        seq: Seq,
    },
    /// Its last checkpoint is about a row that the log does not hold as it was signed.
    #[error(
        "the last checkpoint in {place} is of row {seq}, as it was on {time}, and this log holds another row {seq}: it was rewritten, \
         or an older copy was restored and written on. `hookbus verify --against` tells more; if it was on purpose, begin at \
         another place. Nothing was written"
    )]
    Contradicts {
        /// The place.
        place: String,
        /// The row.
        seq: Seq,
        /// When it was signed.
        time: Time,
    },
    /// The log cannot be compared with its last checkpoint.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its last checkpoint is signed with another key.
    #[error(
        "the last checkpoint in {place} is signed with the key {found}, which is not the key of this home; if you replaced the key \
         on purpose, begin at another place. Nothing was written"
    )]
    OtherKey {
        /// The place.
        place: String,
        /// The key.
        found: PublicKey,
    },
    /// The ref is that of another bus.
    #[error("{place} belongs to bus {bus}; name another ref. Nothing was written")]
    OtherBus {
        /// The place.
        place: String,
        /// The bus.
        bus: BusId,
    },
    /// Another process writes there again and again.
    #[error("{0} changed while it was written; try again")]
    Busy(String),
}

impl AnchorPlace {
    /// Reads `git:REPOSITORY[#REF]`, or the name of a file.
    pub fn parse(text: &str) -> Self {
        let Some(rest) = text.strip_prefix("git:") else { return Self::File(PathBuf::from(text)) };
        let (repository, reference) = match rest.rsplit_once('#') {
            Some((repository, reference)) => (repository, Some(reference.to_owned())),
            None => (rest, None),
        };
        Self::Git { repository: PathBuf::from(repository), reference }
    }

    /// Adds a checkpoint to those that are there, if `agrees` says that the log agrees with the last one. It is on disk
    /// afterwards.
    pub fn add(
        &self,
        signed: &SignedCheckpoint,
        agrees: &Agrees<'_>,
    ) -> Result<Anchored, AnchorError> {
        match self {
            Self::File(path) => file::add(path, signed, agrees),
            Self::Git { repository, reference } => git::add(
                repository,
                &git::name_of(reference.as_deref(), signed.checkpoint.bus),
                signed,
                agrees,
            ),
        }
    }

    /// All checkpoints that are there, the oldest first. A git repository without a named ref is asked for that of `bus`.
    pub fn read(
        &self,
        bus: BusId,
    ) -> Result<Vec<Result<SignedCheckpoint, CheckpointError>>, AnchorError> {
        match self {
            Self::File(path) => file::read(path),
            Self::Git { repository, reference } => {
                git::read(repository, &git::name_of(reference.as_deref(), bus))
            }
        }
    }
}

impl fmt::Display for AnchorPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Git { repository, reference: Some(reference) } => {
                write!(f, "git:{}#{reference}", repository.display())
            }
            Self::Git { repository, reference: None } => write!(f, "git:{}", repository.display()),
        }
    }
}

/// Whether `signed` may follow `last`, the last checkpoint of the same bus at this place.
pub(super) fn may_follow(
    last: &SignedCheckpoint,
    signed: &SignedCheckpoint,
    place: &str,
    agrees: &Agrees<'_>,
) -> Result<Anchored, AnchorError> {
    let (last_key, key) = (last.checkpoint.key, signed.checkpoint.key);
    last.check(None).map_err(|why| AnchorError::Foreign { place: place.to_owned(), why })?;
    if last_key != key {
        return Err(AnchorError::OtherKey { place: place.to_owned(), found: last_key });
    }
    if last.checkpoint.seq > signed.checkpoint.seq {
        return Err(AnchorError::Regressed { place: place.to_owned(), seq: last.checkpoint.seq });
    }
    let Checkpoint { seq, hash, time, .. } = last.checkpoint;
    // Also if that row was removed since, there can be one of it only.
    let is_other = seq == signed.checkpoint.seq && hash != signed.checkpoint.hash;
    if is_other || !agrees(&last.checkpoint)? {
        return Err(AnchorError::Contradicts { place: place.to_owned(), seq, time });
    }
    Ok(if last == signed { Anchored::Known } else { Anchored::Added })
}
