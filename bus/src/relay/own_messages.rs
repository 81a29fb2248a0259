//! Tells the messages that this bus published from others on its subjects.

use std::ops::RangeInclusive;
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::Stream;
use async_nats::{HeaderMap, Message};
use futures_util::StreamExt;

use super::error::RelayError;
use super::received_message::{ReceivedMessage, StreamForm};
use crate::event::{BusId, Seq, bus_subjects};
use crate::log::{LogReader, Query, ReadError, Received, row_hash};

/// How long the server may take for the next message.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A message of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Its sequence number in the stream.
    pub(super) sequence: u64,
    /// Its row.
    pub(super) seq: Seq,
}

/// The messages of a part of the stream.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The one with our latest row.
    pub(super) own: Option<Found>,
    /// How many are not ours.
    pub(super) foreign: u64,
    /// The first row of a history that is not the one of the log.
    pub(super) other_history: Option<Seq>,
}

/// The row that a message holds, if this bus published the message: the log holds the same row.
pub(super) fn own_seq(
    log: &LogReader,
    bus: BusId,
    message: &StreamMessage,
) -> Result<Option<Seq>, ReadError> {
    let read =
        read(message.subject.as_str(), Some(&message.headers), &message.payload, message.sequence);
    Ok(match read.filter(|received| received.bus == bus) {
        Some(received) if is_in_log(log, &received)? => Some(received.row.seq),
        Some(_) | None => None,
    })
}

fn read(
    subject: &str,
    headers: Option<&HeaderMap>,
    body: &[u8],
    sequence: u64,
) -> Option<Received> {
    StreamForm::live().read(ReceivedMessage { subject, headers, body, sequence }).ok()
}

fn is_in_log(log: &LogReader, received: &Received) -> Result<bool, ReadError> {
    let row = &received.row;
    let rows = log.last(&Query { seq: Some(row.seq), ..Query::default() }, 1)?;
    Ok(rows.first().is_some_and(|own| own.hash == row.hash && own.id == row.id))
}

/// Looks at the messages on the subjects of this bus with these sequence numbers, after `own`.
pub(super) async fn scan(
    stream: &Stream,
    bus: BusId,
    log: &LogReader,
    sequences: RangeInclusive<u64>,
    own: Option<Found>,
) -> Result<Scan, RelayError> {
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *sequences.start() },
        filter_subject: bus_subjects(bus),
        ..OrderedConfig::default()
    };
    let mut history = History::new(bus, log, own)?;
    for_each_message(stream, config, *sequences.end(), |sequence, message| {
        let headers = message.headers.as_ref();
        let received = read(message.subject.as_str(), headers, &message.payload, sequence);
        Ok(history.add(sequence, received)?)
    })
    .await?;
    Ok(history.end())
}

/// Reads the messages that the stream holds now, up to the sequence number `end`.
pub(super) async fn for_each_message(
    stream: &Stream,
    config: OrderedConfig,
    end: u64,
    mut action: impl FnMut(u64, &Message) -> Result<(), RelayError>,
) -> Result<(), RelayError> {
    let failed = |error: &dyn std::fmt::Display| RelayError::ReadPosition(error.to_string());
    let consumer = stream.create_consumer(config).await.map_err(|error| failed(&error))?;
    let mut pending = consumer.cached_info().num_pending;
    let mut messages = consumer.messages().await.map_err(|error| failed(&error))?;
    while pending > 0 {
        let next = tokio::time::timeout(ANSWER_LIMIT, messages.next()).await;
        let Some(message) = next.map_err(|error| failed(&error))? else { break };
        let message = message.map_err(|error| failed(&error))?;
        let info = message.info().map_err(|error| failed(&error))?;
        if info.stream_sequence > end {
            break;
        }
        pending = info.pending;
        action(info.stream_sequence, &message)?;
    }
    Ok(())
}

/// The messages so far.
struct History<'a> {
    bus: BusId,
    log: &'a LogReader,
    scan: Scan,
    /// The hash of our latest row.
    own_hash: Option<[u8; 32]>,
    /// The last message that could be of another history.
    other: Option<(Seq, [u8; 32])>,
    /// The first row of a history that continues no row of the log, if there is one.
    unconnected: Option<Seq>,
}

impl<'a> History<'a> {
    fn new(bus: BusId, log: &'a LogReader, own: Option<Found>) -> Result<Self, ReadError> {
        let own_hash = match own {
            None => None,
            Some(Found { seq, .. }) => {
                let rows = log.last(&Query { seq: Some(seq), ..Query::default() }, 1)?;
                rows.first().map(|row| row.hash)
            }
        };
        let scan = Scan { own, ..Scan::default() };
        Ok(Self { bus, log, scan, own_hash, other: None, unconnected: None })
    }

    fn add(&mut self, sequence: u64, received: Option<Received>) -> Result<(), ReadError> {
        let Some(received) = received.filter(|received| received.bus == self.bus) else {
            self.scan.foreign += 1;
            return Ok(());
        };
        let row = &received.row;
        if is_in_log(self.log, &received)? {
            if self.scan.own.is_none_or(|own| row.seq > own.seq) {
                self.scan.own = Some(Found { sequence, seq: row.seq });
                self.own_hash = Some(row.hash);
            } else {
                self.scan.foreign += 1; // a copy
            }
            return Ok(());
        }
        // It cannot be compared any more. It is no sign of another history, and no position to go on from: that is the last
        // row that both have.
        if self.log.is_removed(row.seq)? {
            return Ok(());
        }
        let own = self.scan.own.map(|own| own.seq).zip(self.own_hash);
        if self.follows(&received, own) {
            self.scan.other_history = self.scan.other_history.or(Some(row.seq));
        } else if row.seq == Seq::FIRST || self.follows(&received, self.other) {
            // The hash of a first row follows from the id of the bus, which is in every subject: anyone who may
            // publish can make one.
            self.unconnected = self.unconnected.or(Some(row.seq));
        }
        self.other = Some((row.seq, row.hash));
        self.scan.foreign += 1;
        Ok(())
    }

    /// Whether a row continues another one, by its hash.
    fn follows(&self, received: &Received, before: Option<(Seq, [u8; 32])>) -> bool {
        let (Some((seq, hash)), Some(digest)) = (before, received.payload_digest()) else {
            return false;
        };
        let row = &received.row;
        row.seq == seq.next() && row.hash == row_hash(self.bus, Some(&hash), row, &digest)
    }

    /// A first row, and rows that continue each other but no row of the log, are another history only if there is
    /// none of ours: then the stream is that of another log, or has deleted the rows that both have.
    fn end(mut self) -> Scan {
        if self.scan.own.is_none() {
            self.scan.other_history = self.scan.other_history.or(self.unconnected);
        }
        self.scan
    }
}
