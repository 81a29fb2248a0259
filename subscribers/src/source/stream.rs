//! Reads events from the NATS stream of all buses, by an ordered consumer. The consumer keeps nothing
//! on the server: how far the observer is, is in its own position.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context, ErrorCode, Message};
use futures_util::{FutureExt, StreamExt};
use hookbus::envelope;
use hookbus::log::Received;
use tokio::io::AsyncReadExt;

use super::event_source::{MAX_BATCH_BYTES, SourceEvent};
use crate::connection::{NatsConnection, NatsError, within};
use crate::position::{ObserverPosition, StreamMark};

/// How long to wait for the next message before the caller gets an empty batch.
const POLL: Duration = Duration::from_millis(300);

/// How often an idle reader checks that the stream still holds the last event it returned.
const CHECK_EVERY: Duration = Duration::from_secs(3);

/// How long the server may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long a payload from the object store may take.
const FETCH_LIMIT: Duration = Duration::from_secs(30);

/// The subjects of every event of every bus.
const ALL_EVENTS: &str = "hookbus.>";

/// A stream that is read as it grows.
#[derive(Debug)]
pub(crate) struct StreamSource {
    connection: NatsConnection,
    subjects: Vec<String>,
    open: Option<OpenStream>,
}

struct OpenStream {
    stream: Stream<()>,
    messages: Ordered,
    checked: Instant,
    /// The last event returned. If the caller's position is elsewhere, it did not handle all of them,
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
        Self { connection, subjects, open: None }
    }

    /// Reads every event of every bus.
    pub(crate) fn of_all_events(connection: NatsConnection) -> Self {
        Self::new(connection, vec![ALL_EVENTS.to_owned()])
    }

    pub(super) async fn next(
        &mut self,
        position: &ObserverPosition,
        limit: usize,
    ) -> Result<Vec<SourceEvent>, NatsError> {
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
    ) -> Result<Vec<SourceEvent>, NatsError> {
        let usable = self.open.take().filter(|open| open.last_returned == position.mark);
        let open = match usable {
            Some(open) => self.open.insert(open),
            None => self.open.insert(open(&self.connection, &self.subjects, position).await?),
        };
        let Ok(first) = tokio::time::timeout(POLL, open.messages.next()).await else {
            if open.checked.elapsed() > CHECK_EVERY {
                open.checked = Instant::now();
                if !mark_is_valid(&open.stream, position).await? {
                    return Err(NatsError::StreamReset);
                }
            }
            return Ok(Vec::new());
        };
        open.checked = Instant::now();
        let (mut next, mut events, mut bytes) = (Some(first), Vec::new(), 0);
        while let Some(message) = next {
            let message = message
                .ok_or("the server closed it")
                .map_err(NatsError::failed("read the stream"))?
                .map_err(NatsError::failed("read the stream"))?;
            bytes += message.payload.len();
            events.extend(open.event_of(&message)?);
            let full = events.len() >= limit || bytes >= MAX_BATCH_BYTES;
            next = if full { None } else { open.messages.next().now_or_never() };
        }
        Ok(events)
    }

    /// The next events with their payloads; `None` at the end of what is there now.
    pub(crate) async fn next_until_end(
        &mut self,
        position: &ObserverPosition,
        limit: usize,
    ) -> Result<Option<Vec<SourceEvent>>, NatsError> {
        loop {
            let mut events = self.next(position, limit).await?;
            for event in &mut events {
                self.complete(event).await?;
            }
            if !events.is_empty() {
                return Ok(Some(events));
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
        self.open.as_ref().is_some_and(|open| open.pending == 0)
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

    /// Fetches the payload of an event that came without it.
    pub(super) async fn complete(&mut self, event: &mut SourceEvent) -> Result<(), NatsError> {
        if let (Some(stored), true) = (&event.stored, event.row.payload.is_empty()) {
            event.row.payload = fetch_payload(&self.connection, stored).await?;
        }
        Ok(())
    }
}

impl OpenStream {
    /// The event in a message; `None` if the message is not an event of a bus.
    fn event_of(&mut self, message: &Message) -> Result<Option<SourceEvent>, NatsError> {
        let info = message.info().map_err(NatsError::failed("read the sequence of a message"))?;
        let sequence = info.stream_sequence;
        self.pending = info.pending;
        let Received { bus, row, stored } = match envelope::read(&message.payload) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, sequence, "skipped a message that is not an event");
                return Ok(None);
            }
        };
        let mark = Some(StreamMark { sequence, id: row.id });
        self.last_returned = mark;
        Ok(Some(SourceEvent { bus, row, mark, stored }))
    }
}

/// Fetches a payload that was too large for a message; `stored` is `bucket/object`.
pub(crate) async fn fetch_payload(
    connection: &NatsConnection,
    stored: &str,
) -> Result<Vec<u8>, NatsError> {
    let context = jetstream::new(connection.client().await?);
    let action = || format!("fetch the payload {stored} from the object store");
    // The client would wait for ever for an object whose chunks are gone.
    tokio::time::timeout(FETCH_LIMIT, read_object(&context, stored))
        .await
        .map_err(NatsError::failed(action()))?
        .map_err(|reason| NatsError::Failed { action: action(), reason: reason.to_string() })
}

async fn read_object(context: &Context, stored: &str) -> Result<Vec<u8>, async_nats::Error> {
    let (bucket, object) = stored.split_once('/').unwrap_or((stored, stored));
    let mut object = context.get_object_store(bucket).await?.get(object).await?;
    let mut payload = Vec::new();
    object.read_to_end(&mut payload).await?;
    Ok(payload)
}

async fn open(
    connection: &NatsConnection,
    subjects: &[String],
    position: &ObserverPosition,
) -> Result<OpenStream, NatsError> {
    let name = &connection.settings.stream;
    let context = jetstream::new(connection.client().await?);
    let stream = context.get_stream_no_info(name).await;
    let stream = stream.map_err(NatsError::failed(format!("open the stream {name}")))?;
    let config = OrderedConfig {
        deliver_policy: deliver_policy(&stream, name, position).await?,
        filter_subjects: subjects.to_vec(),
        ..OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await;
    let consumer = consumer.map_err(NatsError::failed("read the stream"))?;
    let pending = consumer.cached_info().num_pending;
    let messages = consumer.messages().await.map_err(NatsError::failed("read the stream"))?;
    let (checked, last_returned) = (Instant::now(), position.mark);
    Ok(OpenStream { stream, messages, checked, last_returned, pending })
}

/// Where to start reading.
async fn deliver_policy(
    stream: &Stream<()>,
    name: &str,
    position: &ObserverPosition,
) -> Result<DeliverPolicy, NatsError> {
    let info = within(ANSWER_LIMIT, stream.get_info()).await?;
    // Until the first bus has published to it, the stream does not exist.
    let info = info.map_err(NatsError::failed(format!("read the stream {name} (yet)")))?;
    let Some(mark) = position.mark else {
        return Ok(match position.earliest() {
            Some(earliest) => DeliverPolicy::ByStartTime { start_time: earliest.to_utc() },
            None => DeliverPolicy::All,
        });
    };
    let (first, last) = (info.state.first_sequence, info.state.last_sequence);
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

/// Whether the stream still holds the marked event under its sequence number, or deleted it by retention.
async fn mark_is_valid(
    stream: &Stream<()>,
    position: &ObserverPosition,
) -> Result<bool, NatsError> {
    let Some(mark) = position.mark else { return Ok(true) };
    match within(ANSWER_LIMIT, stream.get_raw_message(mark.sequence)).await? {
        Ok(message) => {
            Ok(envelope::read(&message.payload).is_ok_and(|found| found.row.id == mark.id))
        }
        Err(error) if is_missing(&error.kind()) => {
            let info = stream.get_info().await.map_err(NatsError::failed("read the stream"))?;
            let (first, last) = (info.state.first_sequence, info.state.last_sequence);
            Ok(mark.sequence < first && mark.sequence <= last)
        }
        Err(error) => Err(NatsError::failed("read the stream")(error)),
    }
}

fn is_missing(kind: &RawMessageErrorKind) -> bool {
    matches!(kind, RawMessageErrorKind::NoMessageFound)
        || matches!(kind, RawMessageErrorKind::JetStream(error) if error.error_code() == ErrorCode::NO_MESSAGE_FOUND)
}
