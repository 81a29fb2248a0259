//! The state of an observer on NATS: a key-value bucket with an entry per partition, and a stream of
//! dead letters.
//!
//! An entry holds the id of a worker and its position. Every save names the revision before it, so the
//! server refuses a worker that was replaced. A worker that saves nothing for [`LEASE`] counts as dead.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::kv::{self, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt;
use hookbus::event::{Clock, EventId, SystemClock, encode_token};
use serde_json::{Value, json};

use crate::connection::{NatsConnection, NatsError, within};
use crate::dead_letter::DeadLetter;
use crate::error::{ObserverError, SaveError};
use crate::partition::Partition;
use crate::position::ObserverPosition;

/// A worker that saved nothing for this long counts as dead, and its partition is free.
pub(crate) const LEASE: Duration = Duration::from_secs(6);

/// The registration of a worker that was not renewed for this long is deleted.
const REGISTRATION_EXPIRES: Duration = Duration::from_mins(5);

/// How long the server may take to answer: less than [`LEASE`], so that a save can be retried in time.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// The header with the metadata of a dead letter.
const METADATA_HEADER: &str = "Hookbus-Dead";

#[derive(Debug)]
pub(super) struct NatsStore {
    connection: NatsConnection,
    name: String,
    /// The id of this worker, unique among all machines.
    worker: String,
    open: Option<(Context, Store)>,
    /// Partitions of other workers: the last revision seen, and when it was first seen.
    watched: HashMap<Partition, (u64, Instant)>,
}

/// A partition that belongs to this worker while its entry has this revision.
#[derive(Debug)]
pub(crate) struct NatsClaim {
    pub(super) partition: Partition,
    key: String,
    revision: u64,
    renewed: Instant,
}

impl NatsStore {
    pub(super) fn new(connection: NatsConnection, name: &str) -> Self {
        Self {
            connection,
            name: name.to_owned(),
            worker: EventId::mint(SystemClock.now()).to_string(),
            open: None,
            watched: HashMap::new(),
        }
    }

    /// Claims a partition, and returns its position; `None` while another worker holds it.
    pub(super) async fn claim(
        &mut self,
        partition: Partition,
    ) -> Result<Option<(NatsClaim, Option<ObserverPosition>)>, ObserverError> {
        let key = self.key(partition);
        let (_, store) = self.open().await?.clone();
        let entry = call("ask which worker holds the partition", store.entry(key.as_str())).await?;
        let (revision, position) = match entry {
            Some(entry) if entry.operation == Operation::Put => {
                let value: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
                if !self.is_free(partition, &value, entry.revision) {
                    return Ok(None);
                }
                (entry.revision, position_in(&value))
            }
            Some(entry) => (entry.revision, None),
            None => (0, None),
        };
        let value = self.entry_value(Some(&self.worker), position.as_ref());
        match within(ANSWER_LIMIT, store.update(&key, value.into(), revision)).await? {
            Ok(revision) => {
                self.watched.remove(&partition);
                let claim = NatsClaim { partition, key, revision, renewed: Instant::now() };
                Ok(Some((claim, position)))
            }
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(NatsError::failed("claim the partition")(error).into()),
        }
    }

    /// The position of a partition that this worker has not claimed.
    pub(super) async fn position(&mut self, partition: Partition) -> Option<ObserverPosition> {
        let key = self.key(partition);
        let (_, store) = self.open().await.ok()?;
        let entry = call("read a position", store.entry(key.as_str())).await.ok()??;
        position_in(&serde_json::from_slice(&entry.value).ok()?)
    }

    /// Whether no live worker holds a partition: it was released, or its lease has ended.
    fn is_free(&mut self, partition: Partition, value: &Value, revision: u64) -> bool {
        let Some(worker) = value["worker"].as_str() else { return true };
        if worker == self.worker {
            return true;
        }
        let now = Instant::now();
        let (seen, since) = self.watched.entry(partition).or_insert((revision, now));
        if *seen != revision {
            (*seen, *since) = (revision, now);
        }
        since.elapsed() > LEASE
    }

    pub(super) async fn save(
        &mut self,
        claim: &mut NatsClaim,
        position: &ObserverPosition,
    ) -> Result<(), SaveError> {
        let value = self.entry_value(Some(&self.worker), Some(position));
        match self.update(claim, value).await {
            Ok(revision) => {
                (claim.revision, claim.renewed) = (revision, Instant::now());
                Ok(())
            }
            Err(SaveError::TakenOver) => Err(SaveError::TakenOver),
            Err(SaveError::Failed(_)) if claim.renewed.elapsed() > LEASE => {
                Err(SaveError::TakenOver)
            }
            Err(failed) => {
                self.disconnect().await;
                Err(failed)
            }
        }
    }

    async fn update(&mut self, claim: &NatsClaim, value: Vec<u8>) -> Result<u64, SaveError> {
        let failed = |error: NatsError| SaveError::Failed(error.into());
        let (_, store) = self.open().await.map_err(failed)?;
        let updated = store.update(&claim.key, value.into(), claim.revision);
        match within(ANSWER_LIMIT, updated).await.map_err(failed)? {
            Ok(revision) => Ok(revision),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {
                Err(SaveError::TakenOver)
            }
            Err(error) => Err(failed(NatsError::failed("save the position")(error))),
        }
    }

    pub(super) async fn release(&mut self, claim: NatsClaim, position: &ObserverPosition) {
        let value = self.entry_value(None, Some(position));
        if let Err(error) = self.update(&claim, value).await {
            tracing::debug!(%error, "not released; the next worker waits until the lease ends");
        }
    }

    /// Registers this worker, and counts the registrations that were renewed within the lease. Their times
    /// are all from the server's clock.
    pub(super) async fn count_workers(&mut self) -> Result<usize, ObserverError> {
        let action = "count the workers";
        let workers = format!("{}.worker.", self.observer_key());
        let (own, bucket) = (format!("{workers}{}", self.worker), self.bucket_name());
        let (context, store) = self.open().await?;
        call(action, store.put(&own, "here".into())).await?;
        let stream = call(action, context.get_stream_no_info(format!("KV_{bucket}"))).await?;
        let subjects = format!("$KV.{bucket}.{workers}*");
        let mut subjects = call(action, stream.info_with_subjects(subjects)).await?;
        let mut registered = Vec::new();
        while let Some(subject) = within(ANSWER_LIMIT, subjects.next()).await? {
            let (subject, _) = subject.map_err(NatsError::failed(action))?;
            let Some(key) = subject.strip_prefix(&format!("$KV.{bucket}.")) else { continue };
            let entry = call(action, store.entry(key)).await?;
            if let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) {
                registered.push((entry.key, entry.created.timestamp_millis()));
            }
        }
        let now = registered.iter().map(|(_, at)| *at).max().unwrap_or_default();
        let age = |at: i64| Duration::from_millis((now - at).unsigned_abs());
        for (key, _) in registered.iter().filter(|(_, at)| age(*at) > REGISTRATION_EXPIRES) {
            call(action, store.purge(key)).await?;
        }
        let alive = |(_, at): &&(String, i64)| age(*at) < LEASE;
        Ok(registered.iter().filter(alive).count().max(1))
    }

    pub(super) async fn add_dead_letter(
        &mut self,
        letter: &DeadLetter,
    ) -> Result<(), ObserverError> {
        let action = "store the dead letter";
        let subject = self.dead_letter_subject(letter)?;
        let mut headers = HeaderMap::new();
        // JSON without line breaks, as a header must be.
        headers.insert(METADATA_HEADER, letter.metadata().to_string().as_str());
        let (context, _) = self.open().await?;
        let envelope = letter.envelope.clone().into();
        let sent = call(action, context.publish_with_headers(subject, headers, envelope)).await?;
        call(action, sent.into_future()).await?;
        Ok(())
    }

    pub(super) async fn dead_letters(&mut self) -> Result<Vec<DeadLetter>, ObserverError> {
        self.dead_letters_on(self.dead_letter_subjects()).await
    }

    pub(super) async fn all_dead_letters(&mut self) -> Result<Vec<DeadLetter>, ObserverError> {
        self.dead_letters_on(format!("{}.>", self.dead_letter_root())).await
    }

    async fn dead_letters_on(
        &mut self,
        subjects: String,
    ) -> Result<Vec<DeadLetter>, ObserverError> {
        let action = "read the dead letters";
        let stream = self.dead_letter_stream();
        let (context, _) = self.open().await?;
        let stream = context.get_stream(stream).await.map_err(NatsError::failed(action))?;
        let config = OrderedConfig { filter_subject: subjects, ..OrderedConfig::default() };
        let mut consumer =
            stream.create_consumer(config).await.map_err(NatsError::failed(action))?;
        let pending = consumer.info().await.map_err(NatsError::failed(action))?.num_pending;
        let mut messages = consumer.messages().await.map_err(NatsError::failed(action))?;
        let mut letters = Vec::new();
        for _ in 0..pending {
            let Some(message) = within(ANSWER_LIMIT, messages.next()).await? else { break };
            let message = message.map_err(NatsError::failed(action))?;
            let metadata = message.headers.as_ref().and_then(|all| all.get(METADATA_HEADER));
            let metadata: Option<Value> =
                metadata.and_then(|metadata| serde_json::from_str(metadata.as_str()).ok());
            letters.extend(
                metadata.and_then(|metadata| {
                    DeadLetter::from_parts(&metadata, message.payload.to_vec())
                }),
            );
        }
        letters.sort_by_key(|letter| letter.at);
        Ok(letters)
    }

    pub(super) async fn count_dead_letters(&mut self) -> Result<usize, ObserverError> {
        let action = "count the dead letters";
        let (name, subjects) = (self.dead_letter_stream(), self.dead_letter_subjects());
        let (context, _) = self.open().await?;
        let stream = call(action, context.get_stream_no_info(name)).await?;
        let mut subjects = call(action, stream.info_with_subjects(subjects)).await?;
        let mut count = 0;
        while let Some(subject) = within(ANSWER_LIMIT, subjects.next()).await? {
            subject.map_err(NatsError::failed(action))?;
            count += 1;
        }
        Ok(count)
    }

    pub(super) async fn delete_dead_letter(
        &mut self,
        letter: &DeadLetter,
    ) -> Result<(), ObserverError> {
        let action = "delete the dead letter";
        let (stream, subject) = (self.dead_letter_stream(), self.dead_letter_subject(letter)?);
        let (context, _) = self.open().await?;
        let stream = context.get_stream(stream).await.map_err(NatsError::failed(action))?;
        match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(found) => {
                let deleted = stream.delete_message(found.sequence).await;
                deleted.map_err(NatsError::failed(action))?;
                Ok(())
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(()),
            Err(error) => Err(NatsError::failed(action)(error).into()),
        }
    }

    /// Drops the connection; the next call opens a new one.
    pub(super) async fn disconnect(&mut self) {
        self.open = None;
        self.connection.reset().await;
    }

    /// The bucket, and a context for the stream of dead letters; both are created if they are missing.
    async fn open(&mut self) -> Result<&(Context, Store), NatsError> {
        let opened = match self.open.take() {
            Some(opened) => opened,
            None => Box::pin(self.connect()).await?, // a large future
        };
        Ok(self.open.insert(opened))
    }

    async fn connect(&self) -> Result<(Context, Store), NatsError> {
        let context = jetstream::new(self.connection.client().await?);
        let store = self.bucket(&context).await?;
        let dead_letters = stream::Config {
            name: self.dead_letter_stream(),
            subjects: vec![format!("{}.>", self.dead_letter_root())],
            max_messages_per_subject: 1,
            num_replicas: self.connection.settings.replicas,
            ..stream::Config::default()
        };
        let created = context.get_or_create_stream(dead_letters);
        call("create the stream for dead letters", created).await?;
        Ok((context, store))
    }

    async fn bucket(&self, context: &Context) -> Result<Store, NatsError> {
        let bucket = self.bucket_name();
        if let Ok(store) = within(ANSWER_LIMIT, context.get_key_value(&bucket)).await? {
            return Ok(store);
        }
        let config = kv::Config {
            bucket,
            history: 1,
            num_replicas: self.connection.settings.replicas,
            ..kv::Config::default()
        };
        call("create the bucket for observers", context.create_key_value(config)).await
    }

    fn entry_value(&self, worker: Option<&str>, position: Option<&ObserverPosition>) -> Vec<u8> {
        json!({
            "observer": self.name,
            "worker": worker,
            "position": position.map(ObserverPosition::to_json),
        })
        .to_string()
        .into_bytes()
    }

    fn key(&self, partition: Partition) -> String {
        format!("{}.{}", self.observer_key(), partition.key())
    }

    /// The name as a token, with `=` for `%`: keys may not contain `%`, and tokens never contain `=`.
    fn observer_key(&self) -> String {
        encode_token(&self.name).replace('%', "=")
    }

    fn bucket_name(&self) -> String {
        format!("{}_OBSERVERS", self.connection.settings.stream)
    }

    fn dead_letter_stream(&self) -> String {
        format!("{}_DEAD", self.connection.settings.stream)
    }

    /// Not below `hookbus.>`, which the stream of events covers.
    fn dead_letter_root(&self) -> String {
        format!("hookbus-dead.{}", encode_token(&self.connection.settings.stream))
    }

    fn dead_letter_subjects(&self) -> String {
        format!("{}.{}.>", self.dead_letter_root(), encode_token(&self.name))
    }

    fn dead_letter_subject(&self, letter: &DeadLetter) -> Result<String, ObserverError> {
        let event = letter.event().map_err(ObserverError::Unreadable)?;
        Ok(format!("{}.{}.{}", self.dead_letter_root(), encode_token(&self.name), event.row.id))
    }
}

/// The position in an entry, if it has one.
fn position_in(value: &Value) -> Option<ObserverPosition> {
    Some(&value["position"]).filter(|it| !it.is_null()).map(ObserverPosition::from_json)
}

/// Waits for the server's answer to a call, within the limit.
async fn call<T, E: Display>(
    action: &str,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, NatsError> {
    within(ANSWER_LIMIT, answer).await?.map_err(NatsError::failed(action))
}
