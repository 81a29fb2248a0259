//! From the stream of all buses. An ordered consumer reads it; it leaves nothing on the server, as
//! how far we are is kept in our own position.

use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context, Message};
use futures_util::{FutureExt, StreamExt};
use hookbus::envelope::{self, Travelled};
use hookbus::relay::{NatsSettings, connect};
use tokio::io::AsyncReadExt;

use super::Arrived;
use crate::ledger::Trouble;
use crate::position::{Mark, Position};

/// How long to wait for more before there may be something else to do.
const A_WHILE: Duration = Duration::from_millis(300);

/// How often a quiet stream is asked whether it still is what it was.
const LOOK: Duration = Duration::from_secs(3);

/// A server that does not answer by then is gone.
const ANSWER: Duration = Duration::from_secs(5);

/// A relay's clock and the server's may differ by this much when a new observer starts.
const CLOCKS_DIFFER: Duration = Duration::from_secs(2);

/// The end of the stream.
#[derive(Debug)]
pub(crate) struct StreamTail {
    settings: NatsSettings,
    subjects: Vec<String>,
    open: Option<Open>,
}

struct Open {
    client: Client,
    context: Context,
    stream: Stream<()>,
    messages: Ordered,
    looked: Instant,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open").finish_non_exhaustive()
    }
}

impl StreamTail {
    pub(crate) fn new(settings: NatsSettings, subjects: Vec<String>) -> Self {
        Self { settings, subjects, open: None }
    }

    pub(super) async fn next(
        &mut self,
        position: &Position,
        most: usize,
    ) -> Result<Vec<Arrived>, Trouble> {
        let result = self.next_or_trouble(position, most).await;
        if result.is_err() {
            self.open = None; // start over: nothing is lost, the position knows
        }
        result
    }

    async fn next_or_trouble(
        &mut self,
        position: &Position,
        most: usize,
    ) -> Result<Vec<Arrived>, Trouble> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let opened = open(&self.settings, &self.subjects, position).await?;
                self.open.insert(opened)
            }
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
        let mut messages = vec![first];
        while messages.len() < most
            && let Some(next) = open.messages.next().now_or_never()
        {
            messages.push(next);
        }
        let mut arrived = Vec::with_capacity(messages.len());
        for message in messages {
            let message = message
                .ok_or_else(|| Trouble("the stream ended".to_owned()))?
                .map_err(|error| Trouble(format!("cannot read the stream: {error}")))?;
            arrived.extend(read(&open.context, &message).await?);
        }
        Ok(arrived)
    }

    pub(super) async fn lag(&mut self, position: &Position) -> Option<u64> {
        let stream = &self.open.as_ref()?.stream;
        let info = tokio::time::timeout(ANSWER, stream.get_info()).await.ok()?.ok()?;
        let seen = position.mark.map_or(info.state.first_sequence.saturating_sub(1), |m| m.place);
        Some(info.state.last_sequence.saturating_sub(seen))
    }
}

/// The event in a message; none if it is not one of ours.
async fn read(context: &Context, message: &Message) -> Result<Option<Arrived>, Trouble> {
    let place = message
        .info()
        .map_err(|error| Trouble(format!("a message without a place: {error}")))?
        .stream_sequence;
    let Travelled { bus, mut row, stored } = match envelope::read(&message.payload) {
        Ok(travelled) => travelled,
        Err(error) => {
            tracing::warn!(%error, place, "passed over a message that is not ours");
            return Ok(None);
        }
    };
    if let Some(stored) = &stored {
        row.payload = fetch(context, stored).await?;
    }
    let mark = Some(Mark { place, id: row.id });
    Ok(Some(Arrived { bus, row, mark, stored }))
}

/// A payload that was too large for a message.
pub(crate) async fn fetch(context: &Context, stored: &str) -> Result<Vec<u8>, Trouble> {
    let trouble = |error: &dyn std::fmt::Display| {
        Trouble(format!("cannot get the payload {stored} from the object store: {error}"))
    };
    let (bucket, object) = stored.split_once('/').unwrap_or((stored, stored));
    let bucket = context.get_object_store(bucket).await.map_err(|error| trouble(&error))?;
    let mut object = bucket.get(object).await.map_err(|error| trouble(&error))?;
    let mut payload = Vec::new();
    object.read_to_end(&mut payload).await.map_err(|error| trouble(&error))?;
    Ok(payload)
}

async fn open(
    settings: &NatsSettings,
    subjects: &[String],
    position: &Position,
) -> Result<Open, Trouble> {
    let client = connect(settings, "hookbus observer").await.map_err(Trouble)?.client;
    let context = jetstream::new(client.clone());
    let stream = context.get_stream_no_info(&settings.stream).await;
    let stream = stream.map_err(|error| Trouble(format!("no stream: {error}")))?;
    let deliver_policy = start(&stream, settings, position).await?;
    let config = OrderedConfig {
        deliver_policy,
        filter_subjects: subjects.to_vec(),
        ..OrderedConfig::default()
    };
    let trouble =
        |error: &dyn std::fmt::Display| Trouble(format!("cannot read the stream: {error}"));
    let consumer = stream.create_consumer(config).await.map_err(|error| trouble(&error))?;
    let messages = consumer.messages().await.map_err(|error| trouble(&error))?;
    Ok(Open { client, context, stream, messages, looked: Instant::now() })
}

/// Where to start reading.
async fn start(
    stream: &Stream<()>,
    settings: &NatsSettings,
    position: &Position,
) -> Result<DeliverPolicy, Trouble> {
    let info = tokio::time::timeout(ANSWER, stream.get_info()).await;
    let info = info.map_err(|_| Trouble("NATS does not answer".to_owned()))?.map_err(|error| {
        Trouble(format!("the stream {} cannot be read (yet): {error}", settings.stream))
    })?;
    let Some(mark) = position.mark else {
        return Ok(match position.since {
            Some(since) => {
                DeliverPolicy::ByStartTime { start_time: since.before(CLOCKS_DIFFER).to_utc() }
            }
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
        Err(_) => {
            let info = stream.get_info().await;
            let state = info.map_err(|error| Trouble(format!("no stream: {error}")))?.state;
            Ok(mark.place < state.first_sequence && mark.place <= state.last_sequence)
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // The consumer vanishes by itself; the connection should not linger.
        let client = self.client.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { client.drain().await });
        }
    }
}
