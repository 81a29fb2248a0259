//! The two errors of this crate; which one it is says what to do.
//!
//! [`DeliveryError`]: one event was not handled. That counts as an attempt; after the last one the
//! event becomes a dead letter. [`ObserverError`]: the observer itself cannot go on. No event is to
//! blame and no attempt is counted; the worker waits and retries for as long as it runs.

use std::io;
use std::path::{Path, PathBuf};

use hookbus::envelope::EnvelopeError;
use hookbus::log::{ArchiveError, ReadError};

use crate::analytics::AnalyticsError;
use crate::connection::NatsError;
use crate::deliver::{CommandError, LongLivedError, PluginsError, WebhookError};
use crate::source::FetchError;

/// Why an observer did not handle an event.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The user has not approved the hook, or it changed since; the text says what to do.
    #[error("{0}")]
    NotApproved(String),
    /// The command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The long-lived program failed.
    #[error(transparent)]
    LongLived(#[from] LongLivedError),
    /// A plugin failed.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// The endpoint did not take the event.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// The archive did not take the event.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The analytics database did not take the event.
    #[error(transparent)]
    Analytics(#[from] AnalyticsError),
    /// The payload could not be fetched from the object store.
    #[error("{0}")]
    Payload(FetchError),
    /// The payload is in the object store, and no server is configured.
    #[error(
        "its payload is in the object store of NATS; name the server with `nats:` in hookbus.yaml"
    )]
    NoServerForPayload,
    /// The dead letter holds no event that can be read.
    #[error("{0}")]
    Unreadable(EnvelopeError),
    /// The filters of the observer do not match the event any more.
    #[error("the observer does not match this event any more; drop it with `hookbus dead drop`")]
    NotWanted,
}

impl DeliveryError {
    /// Whether the event itself is wrong, so that another attempt would fail as well.
    pub(crate) const fn is_wrong_event(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_wrong_row(),
            Self::Payload(FetchError::Refused { .. }) => true,
            Self::Payload(FetchError::Nats(_))
            | Self::NotApproved(_)
            | Self::Command(_)
            | Self::LongLived(_)
            | Self::Plugins(_)
            | Self::Webhook(_)
            | Self::Analytics(_)
            | Self::Unreadable(_)
            | Self::NoServerForPayload
            | Self::NotWanted => false,
        }
    }
}

/// Why an observer cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ObserverError {
    /// NATS does not answer, or refuses.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// A file of the observer cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The archive cannot be written.
    #[error("{0}")]
    Archive(ArchiveError),
    /// The analytics database cannot be written, or was rebuilt.
    #[error("{0}")]
    Analytics(AnalyticsError),
    /// The dead letter's event has no readable id.
    #[error("{0}")]
    Unreadable(EnvelopeError),
    /// Something that the observer needs is missing: approval, a secret, a plugin.
    #[error("{0}")]
    NotReady(DeliveryError),
    /// A published replay can be read from NATS only.
    #[error("a published replay is read from NATS; name a server with --nats")]
    NoServer,
    /// The stream of replays has nothing under this id.
    #[error("nothing was published as replay `{0}`, or it is older than a week and was deleted")]
    NoSuchReplay(String),
}

impl ObserverError {
    /// For `map_err`: what the system said about a file.
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |error| Self::File { path: path.to_owned(), error }
    }
}

/// Why a position was not saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    /// Another worker has claimed the partition: stop working on it.
    #[error("another worker has taken over")]
    TakenOver,
    /// The store failed: retry while the lease lasts.
    #[error("{0}")]
    Failed(ObserverError),
}
