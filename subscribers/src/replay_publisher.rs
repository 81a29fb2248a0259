//! `hookbus replay --to-observers --publish`: publishes recorded events to a stream for replays, outside of
//! the live stream. Each replay has an id and subjects of its own.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::{self, Context, object_store, stream};
use hookbus::config::NatsSettings;
use hookbus::envelope;
use hookbus::event::{BusId, encode_token, subject};
use hookbus::log::{Row, StoredPayload};
use hookbus::relay::{connect, max_body_len, store_large_payload};

use crate::connection::NatsError;

/// The header with the id of the replay.
const REPLAY_HEADER: &str = "Hookbus-Replay";

/// How many messages may wait for their acknowledgement.
const MAX_IN_FLIGHT: usize = 256;

/// How long the stream keeps a replay.
const MAX_AGE: Duration = Duration::from_hours(24 * 7);

/// What failed, for errors.
const ACTION: &str = "publish the replay";

/// The stream for replays, and the root of the subjects of one replay.
pub(crate) fn stream_and_root(settings: &NatsSettings, run: &str) -> (String, String) {
    let stream = format!("{}_REPLAY", settings.stream);
    (stream, format!("{}.{}", all_replays(settings), encode_token(run)))
}

/// The bucket for payloads of a stream for replays that do not fit a message.
pub(crate) fn bucket_of(stream: &str) -> String {
    format!("{stream}_LARGE")
}

/// The root of the subjects of all replays.
fn all_replays(settings: &NatsSettings) -> String {
    format!("hookbus-replay.{}", encode_token(&settings.stream))
}

/// Publishes one replay.
#[derive(Debug)]
pub struct ReplayPublisher {
    context: Context,
    run: String,
    root: String,
    /// The object store for payloads that do not fit a message.
    large_payloads: object_store::Config,
    max_body: usize,
    in_flight: VecDeque<PublishAckFuture>,
}

impl ReplayPublisher {
    /// Connects, and creates the stream if it is missing.
    pub async fn start(settings: &NatsSettings, run: &str) -> Result<Self, NatsError> {
        let connection = connect(settings, "hookbus replay").await.map_err(NatsError::from)?;
        let max_body = max_body_len(connection.client.server_info().max_payload);
        let context = jetstream::new(connection.client);
        let (name, root) = stream_and_root(settings, run);
        let large_payloads = object_store::Config {
            bucket: bucket_of(&name),
            num_replicas: settings.replicas,
            max_age: MAX_AGE,
            ..object_store::Config::default()
        };
        let config = stream::Config {
            name,
            subjects: vec![format!("{}.>", all_replays(settings))],
            num_replicas: settings.replicas,
            max_age: MAX_AGE,
            ..stream::Config::default()
        };
        let created = context.get_or_create_stream(config).await;
        created.map_err(NatsError::failed("create the stream for replays"))?;
        let (run, in_flight) = (run.to_owned(), VecDeque::new());
        Ok(Self { context, run, root, large_payloads, max_body, in_flight })
    }

    /// The subjects of this replay.
    pub fn subjects(&self) -> String {
        format!("{}.>", self.root)
    }

    /// Publishes a row.
    pub async fn publish(&mut self, bus: BusId, row: &Row) -> Result<(), NatsError> {
        let bus = row.origin.map_or(bus, |origin| origin.bus);
        let live = subject(bus, &row.agent, &row.session, &row.name);
        let rest = live.strip_prefix("hookbus.").unwrap_or(&live);
        let mut headers = HeaderMap::new();
        headers.insert(REPLAY_HEADER, self.run.as_str());
        let mut body = envelope::write(bus, row, None);
        if body.len() > self.max_body {
            let object = row.id.to_string();
            let config = self.large_payloads.clone();
            let object = object.as_str().into();
            let stored = store_large_payload(&self.context, config, object, &row.payload).await;
            stored.map_err(NatsError::failed(ACTION))?;
            let bucket = &self.large_payloads.bucket;
            let stored = StoredPayload::new(bucket, row.id, &row.payload);
            body = envelope::write(bus, row, Some(&stored));
        }
        let subject = format!("{}.{rest}", self.root);
        let sent = self.context.publish_with_headers(subject, headers, body.into()).await;
        self.in_flight.push_back(sent.map_err(NatsError::failed(ACTION))?);
        if self.in_flight.len() >= MAX_IN_FLIGHT
            && let Some(oldest) = self.in_flight.pop_front()
        {
            oldest.await.map_err(NatsError::failed(ACTION))?;
        }
        Ok(())
    }

    /// Waits until everything is stored.
    pub async fn finish(self) -> Result<(), NatsError> {
        for sent in self.in_flight {
            sent.await.map_err(NatsError::failed(ACTION))?;
        }
        Ok(())
    }
}
