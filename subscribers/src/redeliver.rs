//! Delivers recorded events to an observer again: a replay, or a dead letter. No position moves, and in a
//! replay the event and the environment say that it is one.

use std::sync::Arc;

use hookbus::config::NatsSettings;
use hookbus::event::BusId;
use hookbus::log::{Row, StoredPayload};
use hookbus::relay::{BUCKET, StreamForm};

use crate::assignment::Assignment;
use crate::connection::NatsConnection;
use crate::dead_letter::DeadLetter;
use crate::deliver::{Attempt, Delivery};
use crate::error::{DeliveryError, ObserverError};
use crate::observer::Observer;
use crate::position::ObserverPosition;
use crate::replay_publisher::{bucket_of, stream_and_root};
use crate::retry_delay::RetryDelay;
use crate::runtime::{ObserveSummary, StopSignal};
use crate::source::{FetchError, SourceEvent, StreamSource, fetch_payload};

/// How many events of a published replay are read per batch.
const BATCH: usize = 256;

/// An observer that is given recorded events.
#[derive(Debug)]
pub struct Redelivery {
    assignment: Assignment,
    delivery: Delivery,
}

impl Redelivery {
    /// For the observer of this assignment.
    pub fn new(assignment: Assignment) -> Self {
        let delivery = assignment.delivery().for_replay();
        Self { assignment, delivery }
    }

    /// The observer.
    pub fn observer(&self) -> &Observer {
        &self.assignment.observer
    }

    /// Delivers a row if it matches the observer; says whether it did. A row has as many attempts as a live
    /// event, but does not become a dead letter.
    pub async fn deliver(&mut self, bus: BusId, row: &Row) -> Result<bool, DeliveryError> {
        let observer = Arc::clone(&self.assignment.observer);
        let Some(hook) = observer.matching_entry(row) else { return Ok(false) };
        let bus = row.origin.map_or(bus, |origin| origin.bus);
        let event = SourceEvent { bus, row: row.clone(), mark: None, stored: None };
        let mut delay = RetryDelay::between_attempts(observer.settings().wait);
        let mut number = 1;
        loop {
            let attempt = Attempt { number, now: self.assignment.clock.now() };
            match self.delivery.deliver(hook, &event, attempt).await {
                Ok(()) => return Ok(true),
                Err(error) if number >= observer.settings().tries => return Err(error),
                Err(error) => tracing::warn!(%error, attempt = number, "a replayed event failed"),
            }
            tokio::time::sleep(delay.next()).await;
            number += 1;
        }
    }
}

/// Delivers the events that were published as replay `run` to an observer, and returns at their end.
pub async fn observe_replay(
    assignment: Assignment,
    run: &str,
    stop: StopSignal,
) -> Result<ObserveSummary, ObserverError> {
    let connection = assignment.connection().ok_or(ObserverError::NoServer)?;
    let (stream, root) = stream_and_root(&connection.settings, run);
    let form = StreamForm { bucket: bucket_of(&stream), root, holds_every_row: false };
    let subjects = vec![format!("{}.>", form.root)];
    let mut source = StreamSource::of_form(connection.for_stream(stream), subjects, form);
    let (mut position, mut summary) = (ObserverPosition::start(), ObserveSummary::default());
    let mut redelivery = Redelivery::new(assignment);
    while !*stop.borrow() {
        let Some(batch) = source.next_until_end(&position, BATCH).await? else { break };
        position.move_mark(batch.end);
        summary.refused += batch.refused.len() as u64;
        for SourceEvent { bus, row, .. } in batch.events {
            match redelivery.deliver(bus, &row).await {
                Ok(true) => summary.handled += 1,
                Ok(false) => {}
                Err(error) => {
                    summary.failed += 1;
                    tracing::warn!(%error, seq = row.seq.as_i64(), "a replayed event failed");
                }
            }
        }
    }
    redelivery.delivery.close().await;
    if position == ObserverPosition::start() {
        return Err(ObserverError::NoSuchReplay(run.to_owned()));
    }
    Ok(summary)
}

/// Makes one more attempt to deliver a dead letter. The caller deletes it after success. `nats` is the configured
/// server, which may hold the payload even if the observer reads the log now.
pub async fn retry_dead_letter(
    assignment: &Assignment,
    nats: Option<&NatsSettings>,
    letter: &DeadLetter,
) -> Result<(), DeliveryError> {
    let mut event = letter.event().map_err(DeliveryError::Unreadable)?;
    if let Some(stored) = &event.stored {
        let configured = || nats.map(|nats| NatsConnection::new(nats.clone()));
        let connection = assignment.connection().or_else(configured);
        let connection = connection.ok_or(DeliveryError::NoServerForPayload)?;
        if stored.object != StoredPayload::object(BUCKET, event.row.id) {
            let object = stored.object.clone();
            let reason = "hookbus did not write it".to_owned();
            return Err(DeliveryError::Payload(FetchError::Refused { object, reason }));
        }
        let fetched = fetch_payload(&connection, stored).await;
        event.row.payload = fetched.map_err(DeliveryError::Payload)?;
    }
    let hook = assignment.observer.matching_entry(&event.row).ok_or(DeliveryError::NotWanted)?;
    let event = SourceEvent { bus: event.bus, row: event.row, mark: None, stored: event.stored };
    let mut delivery = assignment.delivery();
    let attempt = Attempt { number: letter.tries + 1, now: assignment.clock.now() };
    let delivered = delivery.deliver(hook, &event, attempt).await;
    delivery.close().await;
    delivered
}
