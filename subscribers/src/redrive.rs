//! Recorded events, given to observers once more: outside of the live stream, without moving
//! anybody's position, and with a mark that lets an observer tell.

use std::collections::VecDeque;
use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::{self, Context, object_store, stream};
use hookbus::decide::Observer;
use hookbus::envelope;
use hookbus::event::{BusId, subject, token};
use hookbus::log::Row;
use hookbus::relay::{NatsSettings, connect, room_in, store_large};

use crate::deliver::{Delivery, Try};
use crate::ledger::Trouble;
use crate::position::Position;
use crate::setting::Assignment;
use crate::source::{Arrived, StreamTail};
use crate::work::{Stop, Tally};

/// The header that says which replay a message belongs to.
const RUN: &str = "Hookbus-Replay";

/// How many messages may be on their way at once.
const IN_FLIGHT: usize = 256;

/// How long the stream keeps what was re-driven.
const KEPT: std::time::Duration = std::time::Duration::from_hours(24 * 7);

/// One observer, to be given recorded events.
#[derive(Debug)]
pub struct Redelivery {
    assignment: Assignment,
    delivery: Delivery,
}

impl Redelivery {
    /// For the observer of this assignment.
    pub fn new(assignment: Assignment) -> Self {
        let delivery = Delivery::new(Arc::clone(&assignment.observer), Arc::clone(&assignment.env))
            .re_driven();
        Self { assignment, delivery }
    }

    /// Whose it is.
    pub fn observer(&self) -> &Observer {
        &self.assignment.observer
    }

    /// Gives it a row if it wants it; says whether it did. It is tried as often as a live one, and
    /// then it has failed: nothing is set aside.
    pub async fn deliver(&mut self, bus: BusId, row: &Row) -> Result<bool, String> {
        let observer = Arc::clone(&self.assignment.observer);
        let Some(hook) = observer.wants(row) else { return Ok(false) };
        let bus = row.origin.map_or(bus, |origin| origin.bus);
        let arrived = Arrived { bus, row: row.clone(), mark: None, stored: None };
        let (tries, mut wait) = (observer.terms().tries, observer.terms().wait);
        let mut attempt = 1;
        loop {
            let this = Try { attempt, now: self.assignment.clock.now() };
            match self.delivery.deliver(hook, &arrived, this).await {
                Ok(()) => return Ok(true),
                Err(error) if attempt >= tries => return Err(error),
                Err(error) => tracing::warn!(error, attempt, "a re-driven event failed"),
            }
            tokio::time::sleep(wait).await;
            (attempt, wait) = (attempt + 1, wait * 2);
        }
    }
}

/// The stream for what is re-driven, and the subjects of one replay in it.
fn place(settings: &NatsSettings, run: &str) -> (String, String) {
    let root = format!("hookbus-replay.{}", token(&settings.stream));
    (format!("{}_REPLAY", settings.stream), format!("{root}.{}", token(run)))
}

/// Publishes one replay.
#[derive(Debug)]
pub struct ReplayPublisher {
    context: Context,
    run: String,
    root: String,
    /// Where payloads go that do not fit a message.
    bucket: object_store::Config,
    room: usize,
    on_their_way: VecDeque<PublishAckFuture>,
}

impl ReplayPublisher {
    /// Connects, and makes the stream if it is not there.
    pub async fn start(settings: &NatsSettings, run: &str) -> Result<Self, Trouble> {
        let connection = connect(settings, "hookbus replay").await;
        let connection = connection.map_err(|error| Trouble(error.to_string()))?;
        let room = room_in(connection.client.server_info().max_payload);
        let context = jetstream::new(connection.client);
        let (name, root) = place(settings, run);
        let bucket = object_store::Config {
            bucket: format!("{name}_LARGE"),
            num_replicas: settings.replicas,
            max_age: KEPT,
            ..object_store::Config::default()
        };
        let config = stream::Config {
            name,
            subjects: vec![format!("hookbus-replay.{}.>", token(&settings.stream))],
            num_replicas: settings.replicas,
            max_age: KEPT,
            ..stream::Config::default()
        };
        context
            .get_or_create_stream(config)
            .await
            .map_err(|error| Trouble(format!("cannot make the stream for replays: {error}")))?;
        let (run, on_their_way) = (run.to_owned(), VecDeque::new());
        Ok(Self { context, run, root, bucket, room, on_their_way })
    }

    /// Where it goes.
    pub fn subjects(&self) -> String {
        format!("{}.>", self.root)
    }

    /// Publishes a row.
    pub async fn publish(&mut self, bus: BusId, row: &Row) -> Result<(), Trouble> {
        let bus = row.origin.map_or(bus, |origin| origin.bus);
        let live = subject(bus, &row.agent, &row.session, &row.name);
        let rest = live.strip_prefix("hookbus.").unwrap_or(&live);
        let mut headers = HeaderMap::new();
        headers.insert(RUN, self.run.as_str());
        let mut body = envelope::write(bus, row, None);
        if body.len() > self.room {
            let object = row.id.to_string();
            let stored =
                store_large(&self.context, self.bucket.clone(), &object, &row.payload).await;
            stored.map_err(|error| cannot(&error))?;
            let stored = format!("{}/{object}", self.bucket.bucket);
            body = envelope::write(bus, row, Some(&stored));
        }
        let sent = self.context.publish_with_headers(
            format!("{}.{rest}", self.root),
            headers,
            body.into(),
        );
        self.on_their_way.push_back(sent.await.map_err(|error| cannot(&error))?);
        if self.on_their_way.len() >= IN_FLIGHT
            && let Some(oldest) = self.on_their_way.pop_front()
        {
            oldest.await.map_err(|error| cannot(&error))?;
        }
        Ok(())
    }

    /// Waits until all of it is stored.
    pub async fn finish(mut self) -> Result<(), Trouble> {
        for sent in self.on_their_way.drain(..) {
            sent.await.map_err(|error| cannot(&error))?;
        }
        Ok(())
    }
}

fn cannot(error: &dyn std::fmt::Display) -> Trouble {
    Trouble(format!("cannot publish: {error}"))
}

/// Gives an observer what was published as replay `run`, and leaves.
pub async fn observe_replay(
    assignment: Assignment,
    run: &str,
    stop: Stop,
) -> Result<Tally, Trouble> {
    let Some(line) = assignment.line() else {
        return Err(Trouble("a published replay is read from NATS; name a server".to_owned()));
    };
    let (stream, root) = place(&line.settings, run);
    let mut tail = StreamTail::new(line.for_stream(stream), vec![format!("{root}.>")]);
    let (mut position, mut tally) = (Position::start(), Tally::default());
    let mut redelivery = Redelivery::new(assignment);
    while !*stop.borrow() {
        let Some(arrived) = tail.next_until_end(&position, IN_FLIGHT).await? else { break };
        for Arrived { bus, row, mark, .. } in arrived {
            match redelivery.deliver(bus, &row).await {
                Ok(true) => tally.handled += 1,
                Ok(false) => {}
                Err(error) => {
                    tally.set_aside += 1;
                    tracing::warn!(error, seq = row.seq.as_i64(), "a re-driven event failed");
                }
            }
            position.advance(bus, &row, mark);
        }
    }
    redelivery.delivery.close().await;
    if position == Position::start() {
        let why =
            format!("nothing was published as replay `{run}`, or it was more than a week ago");
        return Err(Trouble(why));
    }
    Ok(tally)
}
