//! Why the relay stops publishing. It retries after any of these; [`RelayError::needs_user`] says
//! whether it will go on failing until the user does something.

use super::batch::PublishError;
use super::connect::ConnectError;
use crate::event::Seq;
use crate::log::{OpenError, ReadError};

/// Why the relay stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum RelayError {
    /// No connection to a server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The log cannot be opened.
    #[error(transparent)]
    OpenLog(#[from] OpenError),
    /// The log cannot be read.
    #[error(transparent)]
    ReadLog(#[from] ReadError),
    /// The server cannot say whether the stream exists and how it is configured.
    #[error("cannot look up the stream: {0}")]
    LookUpStream(String),
    /// The stream does not exist and cannot be created.
    #[error("cannot create the stream: {0}")]
    CreateStream(String),
    /// The stream exists with a configuration that would break a promise.
    #[error(
        "the stream {stream} does not fit hookbus: {}; change it, or name another one with \
         `nats: {{ stream: … }}`",
        .differences.join(", ")
    )]
    UnfitStream {
        /// Its name.
        stream: String,
        /// What has to be different.
        differences: Vec<String>,
    },
    /// The last message of this bus cannot be read.
    #[error("cannot read the position in the stream: {0}")]
    ReadPosition(String),
    /// The stream and the log have different rows with the same seq.
    #[error(
        "row {0} has another hash in the stream than in the log: one of them was restored from an \
         older copy and then continued; nothing is published until you have repaired one of them"
    )]
    Diverged(Seq),
    /// A batch was not stored.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl RelayError {
    /// Whether the relay will keep failing until the user changes something.
    pub(super) const fn needs_user(&self) -> bool {
        match self {
            Self::UnfitStream { .. } | Self::Diverged(_) => true,
            Self::Publish(error) => match error {
                PublishError::NoAcknowledgement | PublishError::Refused(_) => true,
                PublishError::StalePosition
                | PublishError::IdsRefused
                | PublishError::Interrupted(_) => false,
            },
            Self::Connect(_)
            | Self::OpenLog(_)
            | Self::ReadLog(_)
            | Self::LookUpStream(_)
            | Self::CreateStream(_)
            | Self::ReadPosition(_) => false,
        }
    }
}
