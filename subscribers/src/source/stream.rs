//! Reads events from the NATS stream of all buses, by an ordered consumer. The consumer keeps nothing
//! on the server: how far the observer is, is in its own position.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{RawMessageErrorKind, State as StreamState, Stream};
use async_nats::jetstream::{self, Context, ErrorCode, Message};
use futures_util::{FutureExt, StreamExt};
use hookbus::envelope;
use hookbus::event::{BusId, Clock, EventId, SystemClock, payload_digest};
use hookbus::log::Received;
use hookbus::relay::{ReceivedMessage, StreamForm};

use super::event_source::{MAX_BATCH_BYTES, SourceBatch, SourceEvent};
use super::{FetchError, fetch_payload};
use crate::connection::{NatsConnection, NatsError, within};
use crate::position::{BusPosition, ObserverPosition, StreamMark};
use crate::refused::RefusedMessage;

/// How long to wait for the next message before the caller gets an empty batch.
const POLL: Duration = Duration::from_millis(300);

/// How often an idle reader checks that the stream still holds the last event it returned.
const CHECK_EVERY: Duration = Duration::from_secs(3);

/// How long the server may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long the answer counts whether the stream holds a certain message.
const HOLDS_FOR: Duration = Duration::from_secs(1);

/// The subjects of every event of every bus.
const ALL_EVENTS: &str = "hookbus.>";

/// A stream that is read as it grows.
#[derive(Debug)]
pub(crate) struct StreamSource {
    connection: NatsConnection,
    subjects: Vec<String>,
    form: StreamForm,
    open: Option<OpenStream>,
    /// By bus: whether the stream holds the message at this sequence number, and when it said so.
    holds: HashMap<BusId, (u64, bool, Instant)>,
    /// The stream does not exist yet: no bus has connected to this server.
    missing: bool,
}

struct OpenStream {
    stream: Stream<()>,
    messages: Ordered,
    checked: Instant,
    form: StreamForm,
    /// The last message returned. If the caller's position is elsewhere, it did not handle all of them,
    /// and the stream is opened again.
    last_returned: Option<StreamMark>,
    /// How many messages the server had left after that one.
    pending: u64,
}

impl std::fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenStream").field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl StreamSource {
    pub(crate) fn new(connection: NatsConnection, subjects: Vec<String>) -> Self {
        Self::of_form(connection, subjects, StreamForm::live())
    }

    /// Reads a stream whose messages look like this.
    pub(crate) fn of_form(
        connection: NatsConnection,
        subjects: Vec<String>,
        form: StreamForm,
    ) -> Self {
        Self { connection, subjects, form, open: None, holds: HashMap::new(), missing: false }
    }

    /// Reads every event of every bus.
    pub(crate) fn of_all_events(connection: NatsConnection) -> Self {
        Self::new(connection, vec![ALL_EVENTS.to_owned()])
    }

    pub(super) async fn next(
        &mut self,
        position: &ObserverPosition,
        limit: usize,
    ) -> Result<SourceBatch, NatsError> {
        let result = self.read(position, limit).await;
        if result.is_err() {
            // The next call reconnects and reads on after the position, so no event is lost.
            self.open = None;
            self.connection.reset().await;
        }
        result
    }

    async fn read(
        &mut self,
        position: &ObserverPosition,
        limit: usize,
    ) -> Result<SourceBatch, NatsError> {
        let usable = self.open.take().filter(|open| open.last_returned == position.mark);
        let open = match usable {
            Some(open) => self.open.insert(open),
            None => match open(&self.connection, &self.subjects, &self.form, position).await? {
                Some(open) => {
                    self.missing = false;
                    self.open.insert(open)
                }
                None => {
                    self.missing = true;
                    tokio::time::sleep(POLL).await;
                    return Ok(SourceBatch::default());
                }
            },
        };
        let Ok(first) = tokio::time::timeout(POLL, open.messages.next()).await else {
            if open.checked.elapsed() > CHECK_EVERY {
                open.checked = Instant::now();
                if !mark_is_valid(&open.stream, position).await? {
                    return Err(NatsError::StreamReset);
                }
            }
            return Ok(SourceBatch::default());
        };
        open.checked = Instant::now();
        let (mut next, mut batch, mut bytes) = (Some(first), SourceBatch::default(), 0);
        while let Some(message) = next {
            let message = message
                .ok_or("the server closed it")
                .map_err(NatsError::failed("read the stream"))?
                .map_err(NatsError::failed("read the stream"))?;
            bytes += message.payload.len();
            open.add(&message, &mut batch)?;
            let count = batch.events.len() + batch.refused.len();
            let full = count >= limit || bytes >= MAX_BATCH_BYTES;
            next = if full { None } else { open.messages.next().now_or_never() };
        }
        Ok(batch)
    }

    /// The next events with their payloads; `None` at the end of what is there now. The caller moves the mark
    /// of its position to the end of the batch.
    pub(crate) async fn next_until_end(
        &mut self,
        position: &ObserverPosition,
        limit: usize,
    ) -> Result<Option<SourceBatch>, NatsError> {
        loop {
            let mut batch = self.next(position, limit).await?;
            for mut event in std::mem::take(&mut batch.events) {
                match self.complete(&mut event).await {
                    Ok(()) => batch.events.push(event),
                    Err(FetchError::Nats(error)) => return Err(error),
                    Err(error @ FetchError::Refused { .. }) => {
                        batch.refused.extend(event.refused(error.to_string()));
                    }
                }
            }
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
            if self.is_at_end() {
                return Ok(None);
            }
        }
    }

    /// How many messages are left after the last event returned.
    pub(crate) fn pending(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.pending)
    }

    /// Whether every event that is there has been returned.
    pub(super) fn is_at_end(&self) -> bool {
        self.open.as_ref().map_or(self.missing, |open| open.pending == 0)
    }

    pub(super) async fn lag(&mut self, position: &ObserverPosition) -> Option<u64> {
        let open = self.open.as_ref()?;
        if self.subjects != [ALL_EVENTS] {
            return Some(open.pending);
        }
        let state = within(ANSWER_LIMIT, open.stream.get_info()).await.ok()?.ok()?.state;
        let before_first = state.first_sequence.saturating_sub(1);
        let handled = position.mark.map_or(before_first, |mark| mark.sequence);
        Some(state.last_sequence.saturating_sub(handled))
    }

    /// Whether an event was handled before. A message after the last handled one of its bus is new, whatever
    /// its seq, as long as the stream holds both. If it does not hold the last handled one any more, the
    /// stream was emptied or restored, and the bus publishes its rows again.
    pub(super) async fn is_handled(
        &mut self,
        last: BusPosition,
        event: &SourceEvent,
    ) -> Result<bool, NatsError> {
        if event.row.seq > last.seq {
            return Ok(false);
        }
        let (Some(mark), Some(place), Some(id)) = (event.mark, last.place, last.id) else {
            return Ok(last.covers(&event.row));
        };
        if event.row.id == id || mark.sequence <= place {
            return Ok(last.covers(&event.row));
        }
        let holds = self.holds(event.bus, StreamMark { sequence: place, id }).await?;
        Ok(!holds && last.covers(&event.row))
    }

    async fn holds(&mut self, bus: BusId, mark: StreamMark) -> Result<bool, NatsError> {
        if let Some((sequence, holds, at)) = self.holds.get(&bus)
            && *sequence == mark.sequence
            && at.elapsed() < HOLDS_FOR
        {
            return Ok(*holds);
        }
        let Some(open) = &self.open else { return Ok(false) };
        let holds = match within(ANSWER_LIMIT, open.stream.get_raw_message(mark.sequence)).await? {
            Ok(message) => message_id(&message.payload) == mark.id,
            Err(error) if is_missing(&error.kind()) => false,
            Err(error) => return Err(NatsError::failed("read the stream")(error)),
        };
        self.holds.insert(bus, (mark.sequence, holds, Instant::now()));
        Ok(holds)
    }

    /// Fetches the payload of an event that came without it.
    pub(super) async fn complete(&mut self, event: &mut SourceEvent) -> Result<(), FetchError> {
        if let (Some(stored), true) = (&event.stored, event.row.payload.is_empty()) {
            event.row.payload = fetch_payload(&self.connection, stored).await?;
        }
        Ok(())
    }
}

impl OpenStream {
    /// Adds a message to a batch: as an event, or as a message that was refused.
    fn add(&mut self, message: &Message, batch: &mut SourceBatch) -> Result<(), NatsError> {
        let info = message.info().map_err(NatsError::failed("read the sequence of a message"))?;
        let sequence = info.stream_sequence;
        self.pending = info.pending;
        let mark = Some(StreamMark { sequence, id: message_id(&message.payload) });
        (self.last_returned, batch.end) = (mark, mark);
        let received = self.form.read(ReceivedMessage {
            subject: message.subject.as_str(),
            headers: message.headers.as_ref(),
            body: &message.payload,
            sequence,
        });
        match received {
            Ok(Received { bus, row, stored }) => {
                batch.events.push(SourceEvent { bus, row, mark, stored });
            }
            Err(refusal) => {
                tracing::warn!(%refusal, sequence, "refused a message");
                batch.refused.push(RefusedMessage::new(
                    sequence,
                    message.subject.as_str(),
                    refusal.to_string(),
                    &message.payload,
                    SystemClock.now(),
                ));
            }
        }
        Ok(())
    }
}

/// What a message is recognised by: the id of the event in it, or its bytes if it is no event.
fn message_id(body: &[u8]) -> EventId {
    envelope::read(body).map_or_else(
        |_| {
            let mut id = [0; 16];
            id.copy_from_slice(&payload_digest(body)[..16]);
            EventId::from_bytes(id)
        },
        |received| received.row.id,
    )
}

/// None if the stream does not exist yet. If this observer has read from it before, that is an error.
async fn open(
    connection: &NatsConnection,
    subjects: &[String],
    form: &StreamForm,
    position: &ObserverPosition,
) -> Result<Option<OpenStream>, NatsError> {
    let name = &connection.settings.stream;
    let context = jetstream::new(connection.client().await?);
    let stream = context.get_stream_no_info(name).await;
    let stream = stream.map_err(NatsError::failed(format!("open the stream {name}")))?;
    let info = within(ANSWER_LIMIT, stream.get_info()).await?;
    if position.mark.is_none() && info.is_err() && is_missing_stream(&context, name).await {
        return Ok(None);
    }
    let info = info.map_err(NatsError::failed(format!("read the stream {name}")))?;
    let is_fed_by_buses = info.config.sources.is_none() && info.config.mirror.is_none();
    let holds_every_row = form.holds_every_row && is_fed_by_buses;
    let config = OrderedConfig {
        deliver_policy: deliver_policy(&stream, &info.state, position).await?,
        filter_subjects: subjects.to_vec(),
        ..OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await;
    let consumer = consumer.map_err(NatsError::failed("read the stream"))?;
    let pending = consumer.cached_info().num_pending;
    let messages = consumer.messages().await.map_err(NatsError::failed("read the stream"))?;
    let (checked, last_returned) = (Instant::now(), position.mark);
    let form = StreamForm { holds_every_row, ..form.clone() };
    Ok(Some(OpenStream { stream, messages, checked, form, last_returned, pending }))
}

/// Where to start reading.
async fn deliver_policy(
    stream: &Stream<()>,
    state: &StreamState,
    position: &ObserverPosition,
) -> Result<DeliverPolicy, NatsError> {
    let Some(mark) = position.mark else {
        return Ok(match position.earliest() {
            Some(earliest) => DeliverPolicy::ByStartTime { start_time: earliest.to_utc() },
            None => DeliverPolicy::All,
        });
    };
    let (first, last) = (state.first_sequence, state.last_sequence);
    if mark.sequence < first.saturating_sub(1) && last >= mark.sequence {
        tracing::warn!(
            from = mark.sequence + 1,
            to = first - 1,
            "the stream deleted messages that this observer had not handled; raise max_age or max_bytes"
        );
        return Ok(DeliverPolicy::ByStartSequence { start_sequence: first });
    }
    if mark_is_valid(stream, position).await? {
        return Ok(DeliverPolicy::ByStartSequence { start_sequence: mark.sequence + 1 });
    }
    tracing::info!(
        "the stream was emptied or restored; reading it from its start and skipping handled events"
    );
    Ok(DeliverPolicy::All)
}

/// Whether the stream still holds the marked message under its sequence number, or deleted it by retention.
async fn mark_is_valid(
    stream: &Stream<()>,
    position: &ObserverPosition,
) -> Result<bool, NatsError> {
    let Some(mark) = position.mark else { return Ok(true) };
    match within(ANSWER_LIMIT, stream.get_raw_message(mark.sequence)).await? {
        Ok(message) => Ok(message_id(&message.payload) == mark.id),
        Err(error) if is_missing(&error.kind()) => {
            let info = stream.get_info().await.map_err(NatsError::failed("read the stream"))?;
            let (first, last) = (info.state.first_sequence, info.state.last_sequence);
            Ok(mark.sequence < first && mark.sequence <= last)
        }
        Err(error) => Err(NatsError::failed("read the stream")(error)),
    }
}

async fn is_missing_stream(context: &Context, name: &str) -> bool {
    let found = within(ANSWER_LIMIT, context.get_stream(name)).await;
    matches!(found, Ok(Err(error)) if matches!(error.kind(), GetStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NOT_FOUND))
}

fn is_missing(kind: &RawMessageErrorKind) -> bool {
    matches!(kind, RawMessageErrorKind::NoMessageFound)
        || matches!(kind, RawMessageErrorKind::JetStream(error) if error.error_code() == ErrorCode::NO_MESSAGE_FOUND)
}
