//! From the stream of all buses. An ordered consumer reads it; it leaves nothing on the server, as
//! how far we are is kept in our own position.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context, ErrorCode, Message};
use futures_util::{FutureExt, StreamExt};
use hookbus::envelope::{self, Travelled};
use tokio::io::AsyncReadExt;

use super::Arrived;
use crate::ledger::Trouble;
use crate::line::Line;
use crate::position::{Mark, Position};

/// How long to wait for more before there may be something else to do.
const A_WHILE: Duration = Duration::from_millis(300);

/// How often a quiet stream is asked whether it still is what it was.
const LOOK: Duration = Duration::from_secs(3);

/// A server that does not answer by then is gone.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a payload from the object store may take.
const FETCHED: Duration = Duration::from_secs(30);

/// So many bytes are read in one go, at the most.
const MOST_BYTES: usize = 8 << 20;

/// Everything that buses publish.
const EVERYTHING: &str = "hookbus.>";

/// The end of the stream.
#[derive(Debug)]
pub(crate) struct StreamTail {
    line: Line,
    subjects: Vec<String>,
    open: Option<Open>,
}

struct Open {
    stream: Stream<()>,
    messages: Ordered,
    looked: Instant,
    /// What was handed out last. Whoever is somewhere else did not get through with it.
    handed_out: Option<Mark>,
    /// How many messages the server had for us after that.
    waiting: u64,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl StreamTail {
    pub(crate) fn new(line: Line, subjects: Vec<String>) -> Self {
        Self { line, subjects, open: None }
    }

    /// All of it.
    pub(crate) fn of_everything(line: Line) -> Self {
        Self::new(line, vec![EVERYTHING.to_owned()])
    }

    pub(super) async fn next(
        &mut self,
        position: &Position,
        most: usize,
    ) -> Result<Vec<Arrived>, Trouble> {
        let result = self.next_or_trouble(position, most).await;
        if result.is_err() {
            self.open = None; // start over: nothing is lost, the position knows
            self.line.give_up().await;
        }
        result
    }

    async fn next_or_trouble(
        &mut self,
        position: &Position,
        most: usize,
    ) -> Result<Vec<Arrived>, Trouble> {
        let kept = self.open.take().filter(|open| open.handed_out == position.mark);
        let open = match kept {
            Some(open) => self.open.insert(open),
            None => self.open.insert(open(&self.line, &self.subjects, position).await?),
        };
        let Ok(first) = tokio::time::timeout(A_WHILE, open.messages.next()).await else {
            if open.looked.elapsed() > LOOK {
                open.looked = Instant::now();
                if !still_there(&open.stream, position).await? {
                    return Err(Trouble("the stream is not what it was; starting over".to_owned()));
                }
            }
            return Ok(Vec::new());
        };
        open.looked = Instant::now();
        let (mut next, mut arrived, mut bytes) = (Some(first), Vec::new(), 0);
        while let Some(message) = next {
            let message = message
                .ok_or_else(|| Trouble("the stream ended".to_owned()))?
                .map_err(|error| Trouble(format!("cannot read the stream: {error}")))?;
            bytes += message.payload.len();
            arrived.extend(open.take(&message)?);
            let enough = arrived.len() >= most || bytes >= MOST_BYTES;
            next = if enough { None } else { open.messages.next().now_or_never() };
        }
        Ok(arrived)
    }

    /// The next events with their payloads; none at the end of what is there now.
    pub(crate) async fn next_until_end(
        &mut self,
        position: &Position,
        most: usize,
    ) -> Result<Option<Vec<Arrived>>, Trouble> {
        loop {
            let mut arrived = self.next(position, most).await?;
            for one in &mut arrived {
                if let Some(stored) = &one.stored {
                    one.row.payload = self.fetch(stored).await?;
                }
            }
            if !arrived.is_empty() {
                return Ok(Some(arrived));
            }
            if self.is_at_end() {
                return Ok(None);
            }
        }
    }

    /// How many messages wait after what was handed out.
    pub(crate) fn pending(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.waiting)
    }

    /// Whether everything that was there has been handed out.
    pub(super) fn is_at_end(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.waiting == 0)
    }

    pub(super) async fn lag(&mut self, position: &Position) -> Option<u64> {
        let open = self.open.as_ref()?;
        if self.subjects != [EVERYTHING] {
            return Some(open.waiting);
        }
        let stream = &open.stream;
        let info = tokio::time::timeout(ANSWER, stream.get_info()).await.ok()?.ok()?;
        let seen = position.mark.map_or(info.state.first_sequence.saturating_sub(1), |m| m.place);
        Some(info.state.last_sequence.saturating_sub(seen))
    }

    /// A payload that was too large for a message.
    pub(super) async fn fetch(&mut self, stored: &str) -> Result<Vec<u8>, Trouble> {
        fetch(&jetstream::new(self.line.client().await?), stored).await
    }
}

impl Open {
    /// The event in a message; none if it is not one of ours.
    fn take(&mut self, message: &Message) -> Result<Option<Arrived>, Trouble> {
        let info = message
            .info()
            .map_err(|error| Trouble(format!("a message without a place: {error}")))?;
        let place = info.stream_sequence;
        self.waiting = info.pending;
        let Travelled { bus, row, stored } = match envelope::read(&message.payload) {
            Ok(travelled) => travelled,
            Err(error) => {
                tracing::warn!(%error, place, "passed over a message that is not ours");
                return Ok(None);
            }
        };
        let mark = Some(Mark { place, id: row.id });
        self.handed_out = mark;
        Ok(Some(Arrived { bus, row, mark, stored }))
    }
}

/// A payload that was too large for a message.
pub(crate) async fn fetch(context: &Context, stored: &str) -> Result<Vec<u8>, Trouble> {
    let trouble = |error: &dyn std::fmt::Display| {
        Trouble(format!("cannot get the payload {stored} from the object store: {error}"))
    };
    let (bucket, object) = stored.split_once('/').unwrap_or((stored, stored));
    let fetched = async {
        let bucket = context.get_object_store(bucket).await.map_err(|error| trouble(&error))?;
        let mut object = bucket.get(object).await.map_err(|error| trouble(&error))?;
        let mut payload = Vec::new();
        object.read_to_end(&mut payload).await.map_err(|error| trouble(&error))?;
        Ok(payload)
    };
    // An object whose pieces are gone would be waited for.
    tokio::time::timeout(FETCHED, fetched).await.map_err(|error| trouble(&error))?
}

async fn open(line: &Line, subjects: &[String], position: &Position) -> Result<Open, Trouble> {
    let context = jetstream::new(line.client().await?);
    let stream = context.get_stream_no_info(&line.settings.stream).await;
    let stream = stream.map_err(|error| Trouble(format!("no stream: {error}")))?;
    let deliver_policy = start(&stream, &line.settings.stream, position).await?;
    let config = OrderedConfig {
        deliver_policy,
        filter_subjects: subjects.to_vec(),
        ..OrderedConfig::default()
    };
    let trouble =
        |error: &dyn std::fmt::Display| Trouble(format!("cannot read the stream: {error}"));
    let consumer = stream.create_consumer(config).await.map_err(|error| trouble(&error))?;
    let waiting = consumer.cached_info().num_pending;
    let messages = consumer.messages().await.map_err(|error| trouble(&error))?;
    let (looked, handed_out) = (Instant::now(), position.mark);
    Ok(Open { stream, messages, looked, handed_out, waiting })
}

/// Where to start reading.
async fn start(
    stream: &Stream<()>,
    name: &str,
    position: &Position,
) -> Result<DeliverPolicy, Trouble> {
    let info = tokio::time::timeout(ANSWER, stream.get_info()).await;
    let info = info
        .map_err(|_| Trouble("NATS does not answer".to_owned()))?
        .map_err(|error| Trouble(format!("the stream {name} cannot be read (yet): {error}")))?;
    let Some(mark) = position.mark else {
        return Ok(match position.earliest() {
            Some(earliest) => DeliverPolicy::ByStartTime { start_time: earliest.to_utc() },
            None => DeliverPolicy::All,
        });
    };
    let (first, last) = (info.state.first_sequence, info.state.last_sequence);
    if mark.place < first.saturating_sub(1) && last >= mark.place {
        tracing::warn!(
            from = mark.place + 1,
            to = first - 1,
            "the stream has let go of messages that this observer had not seen"
        );
        return Ok(DeliverPolicy::ByStartSequence { start_sequence: first });
    }
    if still_there(stream, position).await? {
        return Ok(DeliverPolicy::ByStartSequence { start_sequence: mark.place + 1 });
    }
    tracing::info!(
        "the stream counts anew; reading it from its start, and passing over what was seen"
    );
    Ok(DeliverPolicy::All)
}

/// Whether the stream still holds what was last seen, where it was seen; or let it go in order.
async fn still_there(stream: &Stream<()>, position: &Position) -> Result<bool, Trouble> {
    let Some(mark) = position.mark else { return Ok(true) };
    let asked = tokio::time::timeout(ANSWER, stream.get_raw_message(mark.place)).await;
    match asked.map_err(|_| Trouble("NATS does not answer".to_owned()))? {
        Ok(message) => {
            Ok(envelope::read(&message.payload).is_ok_and(|found| found.row.id == mark.id))
        }
        Err(error) if is_missing(&error.kind()) => {
            let info = stream.get_info().await;
            let state = info.map_err(|error| Trouble(format!("no stream: {error}")))?.state;
            Ok(mark.place < state.first_sequence && mark.place <= state.last_sequence)
        }
        Err(error) => Err(Trouble(format!("cannot ask the stream: {error}"))),
    }
}

fn is_missing(kind: &RawMessageErrorKind) -> bool {
    matches!(kind, RawMessageErrorKind::NoMessageFound)
        || matches!(kind, RawMessageErrorKind::JetStream(error) if error.error_code() == ErrorCode::NO_MESSAGE_FOUND)
}
