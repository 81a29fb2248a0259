//! The two sources behind one type, and an event as they return it.

use hookbus::event::BusId;
use hookbus::log::Row;

use super::{LogSource, StreamSource};
use crate::connection::NatsError;
use crate::error::ObserverError;
use crate::position::{ObserverPosition, StreamMark};

/// A batch holds at most about this many payload bytes.
pub(super) const MAX_BATCH_BYTES: usize = 8 << 20;

/// An event that was read from a source.
#[derive(Debug, Clone)]
pub(crate) struct SourceEvent {
    pub(crate) bus: BusId,
    pub(crate) row: Row,
    /// Where it was in the stream; `None` if it comes from a log.
    pub(crate) mark: Option<StreamMark>,
    /// The object store entry of a payload that did not fit a message; it is fetched on demand.
    pub(crate) stored: Option<String>,
}

/// A source that is being read.
#[derive(Debug)]
pub(crate) enum EventSource {
    Log(Box<LogSource>),
    Nats(Box<StreamSource>),
}

impl EventSource {
    /// The next events after `position`, at most `limit`; empty if none arrived for a moment. Moves
    /// the position back if the log was restored from a backup.
    pub(crate) async fn next(
        &mut self,
        position: &mut ObserverPosition,
        limit: usize,
    ) -> Result<Vec<SourceEvent>, ObserverError> {
        match self {
            Self::Log(source) => source.next(position, limit).await,
            Self::Nats(source) => Ok(source.next(position, limit).await?),
        }
    }

    /// Whether every event that is there has been returned.
    pub(crate) fn is_at_end(&self) -> bool {
        match self {
            Self::Log(_) => true, // an empty batch means the end of the log
            Self::Nats(source) => source.is_at_end(),
        }
    }

    /// Fetches the payload of an event that came without it.
    pub(crate) async fn complete(&mut self, event: &mut SourceEvent) -> Result<(), NatsError> {
        match self {
            Self::Log(_) => Ok(()), // the log holds every payload
            Self::Nats(source) => source.complete(event).await,
        }
    }

    /// How many rows there are after `position`; `None` if the source does not answer.
    pub(crate) async fn lag(&mut self, position: &ObserverPosition) -> Option<u64> {
        match self {
            Self::Log(source) => source.lag(position),
            Self::Nats(source) => source.lag(position).await,
        }
    }
}
