//! The ledger on NATS: a key-value bucket with an entry for each part, and a stream of dead letters.
//!
//! An entry holds a worker and how far it got. Every save names the revision before it, so the server
//! refuses a worker that was replaced. A worker that stays silent for [`LEASE`] is taken for dead.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::kv::{self, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt;
use hookbus::event::{Clock, EventId, SystemClock, token};
use serde_json::{Value, json};

use super::{NotSaved, Trouble};
use crate::dead::DeadLetter;
use crate::line::Line;
use crate::part::Part;
use crate::position::Position;

/// A worker that has not said a word for this long is taken for dead.
pub(crate) const LEASE: Duration = Duration::from_secs(6);

/// The entry of a worker that has been silent for this long is cleared away.
const LONG_GONE: Duration = Duration::from_mins(5);

/// No server takes longer than this to answer.
const ANSWER: Duration = Duration::from_secs(3);

/// The header that says what is known about a dead letter.
const ABOUT: &str = "Hookbus-Dead";

#[derive(Debug)]
pub(super) struct Bucket {
    line: Line,
    name: String,
    /// Who we are, among the workers of the world.
    worker: String,
    open: Option<(Context, Store)>,
    /// Parts of others: the revision last seen, and since when.
    watched: HashMap<Part, (u64, Instant)>,
}

/// A part that is ours while its entry has this revision.
#[derive(Debug)]
pub(super) struct Claim {
    key: String,
    revision: u64,
    renewed: Instant,
}

impl Bucket {
    pub(super) fn new(line: Line, name: &str) -> Self {
        Self {
            line,
            name: name.to_owned(),
            worker: EventId::mint(SystemClock.now()).to_string(),
            open: None,
            watched: HashMap::new(),
        }
    }

    pub(super) async fn claim(
        &mut self,
        part: Part,
    ) -> Result<Option<(Claim, Option<Position>)>, Trouble> {
        let result = self.claim_or_trouble(part).await;
        self.or_start_over(result).await
    }

    async fn claim_or_trouble(
        &mut self,
        part: Part,
    ) -> Result<Option<(Claim, Option<Position>)>, Trouble> {
        let key = self.key(part);
        let (_, store) = self.open().await?;
        let store = store.clone();
        let entry = within(store.entry(key.as_str())).await?;
        let entry =
            entry.map_err(|error| Trouble(format!("cannot ask who is at work: {error}")))?;
        let (revision, position) = match entry {
            Some(entry) if entry.operation == Operation::Put => {
                let value: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
                if !self.is_free(part, &value, entry.revision) {
                    return Ok(None);
                }
                let position = Some(&value["position"]).filter(|position| !position.is_null());
                (entry.revision, position.map(Position::from_json))
            }
            Some(entry) => (entry.revision, None),
            None => (0, None),
        };
        let value = self.value(Some(&self.worker), position.as_ref());
        match within(store.update(&key, value.into(), revision)).await? {
            Ok(revision) => {
                self.watched.remove(&part);
                Ok(Some((Claim { key, revision, renewed: Instant::now() }, position)))
            }
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(Trouble(format!("cannot take up the work: {error}"))),
        }
    }

    /// How far a part is that we do not claim.
    pub(super) async fn position(&mut self, part: Part) -> Option<Position> {
        let key = self.key(part);
        let (_, store) = self.open().await.ok()?;
        let entry = within(store.entry(key.as_str())).await.ok()?.ok()??;
        let value: Value = serde_json::from_slice(&entry.value).ok()?;
        let position = Some(&value["position"]).filter(|position| !position.is_null());
        position.map(Position::from_json)
    }

    /// Whether nobody is at work on a part: it was let go, or its worker has been silent.
    fn is_free(&mut self, part: Part, value: &Value, revision: u64) -> bool {
        let Some(worker) = value["worker"].as_str() else { return true };
        if worker == self.worker {
            return true;
        }
        let now = Instant::now();
        let (seen, since) = self.watched.entry(part).or_insert((revision, now));
        if *seen != revision {
            (*seen, *since) = (revision, now);
        }
        since.elapsed() > LEASE
    }

    pub(super) async fn save(
        &mut self,
        claim: &mut Claim,
        position: &Position,
    ) -> Result<(), NotSaved> {
        let value = self.value(Some(&self.worker), Some(position));
        match self.update(claim, value).await {
            Ok(revision) => {
                (claim.revision, claim.renewed) = (revision, Instant::now());
                Ok(())
            }
            Err(NotSaved::Lost) => Err(NotSaved::Lost),
            Err(NotSaved::NotNow(_)) if claim.renewed.elapsed() > LEASE => Err(NotSaved::Lost),
            Err(not_now) => {
                self.give_up().await;
                Err(not_now)
            }
        }
    }

    async fn update(&mut self, claim: &Claim, value: Vec<u8>) -> Result<u64, NotSaved> {
        let not_now = |error: &dyn std::fmt::Display| NotSaved::NotNow(error.to_string());
        let (_, store) = self.open().await.map_err(|error| not_now(&error))?;
        let updated = within(store.update(&claim.key, value.into(), claim.revision)).await;
        match updated.map_err(|error| not_now(&error))? {
            Ok(revision) => Ok(revision),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Err(NotSaved::Lost),
            Err(error) => Err(not_now(&error)),
        }
    }

    pub(super) async fn release(&mut self, claim: Claim, position: &Position) {
        let value = self.value(None, Some(position));
        if let Err(error) = self.update(&claim, value).await {
            tracing::debug!(?error, "the next worker will have to wait for our lease to end");
        }
    }

    /// Each worker has an entry that it writes again and again; the server's own clock tells which
    /// of them are fresh.
    pub(super) async fn count_workers(&mut self) -> Result<usize, Trouble> {
        let trouble = |error: &dyn std::fmt::Display| Trouble(error.to_string());
        let workers = format!("{}.worker.", self.key_of_observer());
        let (own, bucket) = (format!("{workers}{}", self.worker), self.bucket_name());
        let (context, store) = self.open().await?;
        within(store.put(&own, "here".into())).await?.map_err(|error| trouble(&error))?;
        let stream = within(context.get_stream_no_info(format!("KV_{bucket}"))).await?;
        let stream = stream.map_err(|error| trouble(&error))?;
        let listed = stream.info_with_subjects(format!("$KV.{bucket}.{workers}*"));
        let mut listed = within(listed).await?.map_err(|error| trouble(&error))?;
        let mut seen = Vec::new();
        while let Some(subject) = within(listed.next()).await? {
            let (subject, _) = subject.map_err(|error| trouble(&error))?;
            let Some(key) = subject.strip_prefix(&format!("$KV.{bucket}.")) else { continue };
            let entry = within(store.entry(key)).await?.map_err(|error| trouble(&error))?;
            if let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) {
                seen.push((entry.key, entry.created.timestamp_millis()));
            }
        }
        let now = seen.iter().map(|(_, at)| *at).max().unwrap_or_default();
        let age = |at: i64| Duration::from_millis((now - at).unsigned_abs());
        for (key, _) in seen.iter().filter(|(_, at)| age(*at) > LONG_GONE) {
            within(store.purge(key)).await?.map_err(|error| trouble(&error))?;
        }
        let fresh = |(_, at): &&(String, i64)| age(*at) < LEASE;
        Ok(seen.iter().filter(fresh).count().max(1))
    }

    pub(super) async fn set_aside(&mut self, letter: &DeadLetter) -> Result<(), Trouble> {
        let subject = self.letter_subject(letter)?;
        let mut headers = HeaderMap::new();
        // A header is one line.
        headers.insert(ABOUT, letter.about().to_string().as_str());
        let (context, _) = self.open().await?;
        let envelope = letter.envelope.clone().into();
        let sent = within(context.publish_with_headers(subject, headers, envelope)).await?;
        let acknowledged = sent.map_err(|error| cannot_set_aside(&error))?;
        within(acknowledged.into_future()).await?.map_err(|error| cannot_set_aside(&error))?;
        Ok(())
    }

    pub(super) async fn dead_letters(&mut self) -> Result<Vec<DeadLetter>, Trouble> {
        self.dead_letters_on(self.letter_subjects()).await
    }

    pub(super) async fn dead_letters_of_all(&mut self) -> Result<Vec<DeadLetter>, Trouble> {
        self.dead_letters_on(format!("{}.>", self.dead_root())).await
    }

    async fn dead_letters_on(&mut self, subjects: String) -> Result<Vec<DeadLetter>, Trouble> {
        let trouble =
            |error: &dyn std::fmt::Display| Trouble(format!("cannot read dead letters: {error}"));
        let stream = self.dead_stream();
        let (context, _) = self.open().await?;
        let stream = context.get_stream(stream).await.map_err(|error| trouble(&error))?;
        let config = OrderedConfig { filter_subject: subjects, ..OrderedConfig::default() };
        let mut consumer = stream.create_consumer(config).await.map_err(|error| trouble(&error))?;
        let waiting = consumer.info().await.map_err(|error| trouble(&error))?.num_pending;
        let mut messages = consumer.messages().await.map_err(|error| trouble(&error))?;
        let mut letters = Vec::new();
        for _ in 0..waiting {
            let Some(message) = within(messages.next()).await? else { break };
            let message = message.map_err(|error| trouble(&error))?;
            let about = message.headers.as_ref().and_then(|headers| headers.get(ABOUT));
            let about = about.and_then(|about| serde_json::from_str(about.as_str()).ok());
            letters.extend(
                about.and_then(|about: Value| {
                    DeadLetter::from_parts(&about, message.payload.to_vec())
                }),
            );
        }
        letters.sort_by_key(|letter| letter.at);
        Ok(letters)
    }

    pub(super) async fn count_dead_letters(&mut self) -> Result<usize, Trouble> {
        let (name, subjects) = (self.dead_stream(), self.letter_subjects());
        let (context, _) = self.open().await?;
        let trouble = |error: &dyn std::fmt::Display| Trouble(error.to_string());
        let stream =
            within(context.get_stream_no_info(name)).await?.map_err(|error| trouble(&error))?;
        let listed = within(stream.info_with_subjects(subjects)).await?;
        let mut listed = listed.map_err(|error| trouble(&error))?;
        let mut count = 0;
        while let Some(subject) = within(listed.next()).await? {
            subject.map_err(|error| trouble(&error))?;
            count += 1;
        }
        Ok(count)
    }

    pub(super) async fn drop_letter(&mut self, letter: &DeadLetter) -> Result<(), Trouble> {
        let trouble = |error: &dyn std::fmt::Display| {
            Trouble(format!("cannot drop the dead letter: {error}"))
        };
        let (stream, subject) = (self.dead_stream(), self.letter_subject(letter)?);
        let (context, _) = self.open().await?;
        let stream = context.get_stream(stream).await.map_err(|error| trouble(&error))?;
        match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(found) => {
                let dropped = stream.delete_message(found.sequence).await;
                dropped.map(drop).map_err(|error| trouble(&error))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(()),
            Err(error) => Err(trouble(&error)),
        }
    }

    /// Hands a result on; after trouble the next one has a new connection.
    pub(super) async fn or_start_over<T>(
        &mut self,
        result: Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        if result.is_err() {
            self.give_up().await;
        }
        result
    }

    /// Starts over with a new connection.
    async fn give_up(&mut self) {
        self.open = None;
        self.line.give_up().await;
    }

    async fn open(&mut self) -> Result<&(Context, Store), Trouble> {
        if self.open.is_none() {
            let context = jetstream::new(self.line.client().await?);
            let store = self.bucket(&context).await?;
            let dead = stream::Config {
                name: self.dead_stream(),
                subjects: vec![format!("{}.>", self.dead_root())],
                max_messages_per_subject: 1,
                num_replicas: self.line.settings.replicas,
                ..stream::Config::default()
            };
            within(context.get_or_create_stream(dead)).await?.map_err(|error| {
                Trouble(format!("cannot make the stream for dead letters: {error}"))
            })?;
            self.open = Some((context, store));
        }
        self.open.as_ref().ok_or_else(|| Trouble("no connection".to_owned()))
    }

    async fn bucket(&self, context: &Context) -> Result<Store, Trouble> {
        let bucket = self.bucket_name();
        if let Ok(store) = within(context.get_key_value(&bucket)).await? {
            return Ok(store);
        }
        let config = kv::Config {
            bucket,
            history: 1,
            num_replicas: self.line.settings.replicas,
            ..kv::Config::default()
        };
        within(context.create_key_value(config))
            .await?
            .map_err(|error| Trouble(format!("cannot make the bucket for observers: {error}")))
    }

    fn value(&self, worker: Option<&str>, position: Option<&Position>) -> Vec<u8> {
        json!({
            "observer": self.name,
            "worker": worker,
            "position": position.map(Position::to_json),
        })
        .to_string()
        .into_bytes()
    }

    /// A key may not hold `%`, which is how a token escapes; `=` never occurs in one.
    fn key(&self, part: Part) -> String {
        format!("{}.{}", self.key_of_observer(), part.key())
    }

    fn key_of_observer(&self) -> String {
        token(&self.name).replace('%', "=")
    }

    fn bucket_name(&self) -> String {
        format!("{}_OBSERVERS", self.line.settings.stream)
    }

    fn dead_stream(&self) -> String {
        format!("{}_DEAD", self.line.settings.stream)
    }

    /// Outside of `hookbus.>`, which is the stream's own.
    fn dead_root(&self) -> String {
        format!("hookbus-dead.{}", token(&self.line.settings.stream))
    }

    fn letter_subjects(&self) -> String {
        format!("{}.{}.>", self.dead_root(), token(&self.name))
    }

    fn letter_subject(&self, letter: &DeadLetter) -> Result<String, Trouble> {
        let event = letter.event().map_err(|error| Trouble(error.to_string()))?;
        Ok(format!("{}.{}.{}", self.dead_root(), token(&self.name), event.row.id))
    }
}

fn cannot_set_aside(error: &dyn std::fmt::Display) -> Trouble {
    Trouble(format!("cannot set the event aside: {error}"))
}

async fn within<T>(asked: impl Future<Output = T>) -> Result<T, Trouble> {
    tokio::time::timeout(ANSWER, asked)
        .await
        .map_err(|_| Trouble("NATS does not answer".to_owned()))
}
