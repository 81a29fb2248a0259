//! The two sources behind one type, and the events as they return them.

use hookbus::envelope;
use hookbus::event::{BusId, Clock, SystemClock, subject};
use hookbus::log::{Row, StoredPayload};

use super::{FetchError, LogSource, StreamSource};
use crate::connection::NatsError;
use crate::error::ObserverError;
use crate::position::{ObserverPosition, StreamMark};
use crate::refused::RefusedMessage;

/// A batch holds at most about this many payload bytes.
pub(super) const MAX_BATCH_BYTES: usize = 8 << 20;

/// An event that was read from a source.
#[derive(Debug, Clone)]
pub(crate) struct SourceEvent {
    pub(crate) bus: BusId,
    pub(crate) row: Row,
    /// Where it was in the stream; `None` if it comes from a log.
    pub(crate) mark: Option<StreamMark>,
    /// Where the payload is if it did not fit a message; it is fetched on demand.
    pub(crate) stored: Option<StoredPayload>,
}

impl SourceEvent {
    /// The message that it came in, as one that was refused; `None` if it comes from a log.
    pub(crate) fn refused(&self, reason: String) -> Option<RefusedMessage> {
        let Row { agent, session, name, .. } = &self.row;
        let subject = subject(self.bus, agent, session, name);
        let body = envelope::write(self.bus, &self.row, self.stored.as_ref());
        let now = SystemClock.now();
        Some(RefusedMessage::new(self.mark?.sequence, &subject, reason, &body, now))
    }
}

/// What was read from a source at once.
#[derive(Debug, Default)]
pub(crate) struct SourceBatch {
    pub(crate) events: Vec<SourceEvent>,
    /// Messages between them that cannot be what they say.
    pub(crate) refused: Vec<RefusedMessage>,
    /// The last message of the stream that was read, event or not; `None` in a log.
    pub(crate) end: Option<StreamMark>,
}

impl SourceBatch {
    pub(crate) const fn is_empty(&self) -> bool {
        self.events.is_empty() && self.refused.is_empty()
    }
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
    ) -> Result<SourceBatch, ObserverError> {
        match self {
            Self::Log(source) => {
                let events = source.next(position, limit).await?;
                Ok(SourceBatch { events, ..SourceBatch::default() })
            }
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

    /// Whether an event was handled before, or is older than the start of the observer.
    pub(crate) async fn is_handled(
        &mut self,
        position: &ObserverPosition,
        event: &SourceEvent,
    ) -> Result<bool, NatsError> {
        let Some(last) = position.of(event.bus) else {
            return Ok(position.is_before_start(&event.row));
        };
        match self {
            Self::Log(_) => Ok(event.row.seq <= last.seq),
            Self::Nats(source) => source.is_handled(last, event).await,
        }
    }

    /// Fetches the payload of an event that came without it.
    pub(crate) async fn complete(&mut self, event: &mut SourceEvent) -> Result<(), FetchError> {
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
