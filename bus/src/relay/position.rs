//! How far the stream is with this bus, read from the stream. A cursor of our own could be ahead of a server that
//! was restored from an older copy.
//!
//! A person with the password of the server can publish on the subjects of this bus. So a message counts as ours
//! only if the log holds the same row, and other messages are stepped over.

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};

use super::error::RelayError;
use super::own_messages::{Found, Scan, own_seq, scan};
use super::server_features::ServerFeatures;
use crate::event::{BusId, Seq, bus_subjects};
use crate::log::LogReader;

/// How many messages before the last one are looked at first; ten times as many if none of them is ours.
const FIRST_WINDOW: u64 = 200;

/// The last message of a bus in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamPosition {
    /// The seq of the last row of this log; none if the stream holds none.
    pub(super) seq: Option<Seq>,
    /// The stream sequence that the next batch has to expect: that of the last message on the subjects of this
    /// bus, or of the last message of any bus if the server can only check the whole stream.
    pub(super) stream_sequence: u64,
}

/// What the relay knows from reading the position before, so that it reads no message twice.
#[derive(Debug, Default)]
pub(super) struct StreamMemory {
    /// The last message of ours.
    own: Option<Found>,
    /// All messages on our subjects up to this sequence number were looked at.
    seen_up_to: u64,
    /// How many of them are not ours, since the relay was started.
    pub(super) foreign: u64,
}

/// Where to read the position.
pub(super) struct PositionReader<'a> {
    pub(super) stream: &'a mut Stream,
    pub(super) features: ServerFeatures,
    pub(super) bus: BusId,
    pub(super) log: &'a LogReader,
}

impl PositionReader<'_> {
    /// Reads the position, and checks that the stream and the log have the same history.
    pub(super) async fn find(
        mut self,
        memory: &mut StreamMemory,
    ) -> Result<StreamPosition, RelayError> {
        // Read before our last message: whatever is published in between makes the server refuse the next
        // batch. In the other order, a row that another relay of this bus publishes would be stored twice.
        let end = match self.features {
            ServerFeatures::AtomicBatches | ServerFeatures::CheckPerBus => None,
            ServerFeatures::CheckPerStream => {
                Some(self.stream.info().await.map_err(unread)?.state.last_sequence)
            }
        };
        let last = match self.stream.get_last_raw_message_by_subject(&bus_subjects(self.bus)).await
        {
            Ok(last) => last,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                (memory.own, memory.seen_up_to) = (None, 0);
                return Ok(StreamPosition { seq: None, stream_sequence: end.unwrap_or(0) });
            }
            Err(error) => return Err(unread(error)),
        };
        let own = match self.last_is_own(&last, memory)? {
            Some(own) => Some(own),
            None => self.search(last.sequence, memory).await?,
        };
        (memory.own, memory.seen_up_to) = (own, last.sequence);
        let stream_sequence = end.unwrap_or(last.sequence);
        Ok(StreamPosition { seq: own.map(|own| own.seq), stream_sequence })
    }

    /// The last message, if it is certain that no earlier one has a later row: a copy of an old message of ours
    /// could have been published again.
    fn last_is_own(
        &self,
        last: &StreamMessage,
        memory: &StreamMemory,
    ) -> Result<Option<Found>, RelayError> {
        let Some(seq) = own_seq(self.log, self.bus, last)? else { return Ok(None) };
        let is_latest = match memory.own {
            Some(known) => seq >= known.seq,
            None => self.log.head()?.is_none_or(|(head, _)| seq >= head),
        };
        Ok(is_latest.then_some(Found { sequence: last.sequence, seq }))
    }

    /// Looks for our last message among those up to the sequence number `end`.
    async fn search(
        &mut self,
        end: u64,
        memory: &mut StreamMemory,
    ) -> Result<Option<Found>, RelayError> {
        if let Some(known) = memory.own
            && self.still_holds(known).await?
        {
            let from = memory.seen_up_to.max(known.sequence) + 1;
            let found = self.scan(from, end, Some(known)).await?;
            return found.conclude(memory);
        }
        let first = self.stream.info().await.map_err(unread)?.state.first_sequence;
        let mut window = FIRST_WINDOW;
        loop {
            let from = end.saturating_sub(window).max(first);
            let found = self.scan(from, end, None).await?;
            if found.own.is_some() || from <= first {
                return found.conclude(memory);
            }
            window = window.saturating_mul(10);
        }
    }

    async fn still_holds(&self, known: Found) -> Result<bool, RelayError> {
        match self.stream.get_raw_message(known.sequence).await {
            Ok(message) => Ok(own_seq(self.log, self.bus, &message)? == Some(known.seq)),
            // It was deleted, or the server fails, which shows with the next call.
            Err(_) => Ok(false),
        }
    }

    async fn scan(&self, from: u64, end: u64, own: Option<Found>) -> Result<Scan, RelayError> {
        scan(self.stream, self.bus, self.log, from..=end, own).await
    }
}

impl Scan {
    /// Our last message; an error if the stream continues another history of this bus than the log.
    fn conclude(self, memory: &mut StreamMemory) -> Result<Option<Found>, RelayError> {
        match self.other_history {
            Some(seq) => Err(RelayError::Diverged(seq)),
            None => {
                memory.foreign += self.foreign;
                Ok(self.own)
            }
        }
    }
}

fn unread(error: impl std::fmt::Display) -> RelayError {
    RelayError::ReadPosition(error.to_string())
}
