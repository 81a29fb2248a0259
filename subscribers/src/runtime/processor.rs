//! Processes the events of a held partition: reads a batch, delivers each event with retries, turns events that
//! fail every attempt into dead letters, and saves the position.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookbus::config::Hook;
use hookbus::envelope;
use hookbus::log::ArchiveError;

use super::held_partition::{HEARTBEAT, HeldPartition, LeaveReason};
use super::observe::{RunContext, stopped};
use super::retry_state::RetryState;
use crate::dead_letter::DeadLetter;
use crate::deliver::{Attempt, Delivery};
use crate::error::{DeliveryError, ObserverError};
use crate::observer::{Observer, ObserverAction};
use crate::partition::Partition;
use crate::refused::{RefusedMessage, RefusedMessages};
use crate::retry_delay::RetryDelay;
use crate::source::{EventSource, FetchError, SourceEvent};
use crate::store::ObserverStore;

/// How many events are read per batch.
const BATCH: usize = 256;

/// How long an event that is being delivered may take when the observer is stopped.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// How often dead letters are counted: the user may have retried or dropped some.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// What processes the events of one partition.
#[derive(Debug)]
pub(super) struct Processor {
    pub(super) store: ObserverStore,
    pub(super) delivery: Delivery,
    context: RunContext,
    observer: Arc<Observer>,
    partition: Partition,
    source: EventSource,
    /// When dead letters were last counted.
    counted: Instant,
}

impl Processor {
    pub(super) fn new(context: RunContext, partition: Partition) -> Self {
        let assignment = &context.assignment;
        let observer = Arc::clone(&assignment.observer);
        Self {
            store: context.store(),
            delivery: assignment.delivery(),
            source: assignment.source(context.connection.as_ref()),
            context,
            observer,
            partition,
            counted: Instant::now(),
        }
    }

    /// Reads, delivers and saves until there is a reason to leave the partition.
    pub(super) async fn process(
        &mut self,
        held: &mut HeldPartition,
        retry: &mut RetryState,
    ) -> Result<LeaveReason, LeaveReason> {
        // The start of a new observer is saved first, so that a restart does not move it.
        self.save(held).await?;
        loop {
            if *self.context.stop.borrow() {
                return Ok(LeaveReason::Finished);
            }
            let batch = tokio::select! {
                batch = self.source.next(&mut held.position, BATCH) => batch?,
                () = stopped(&mut self.context.stop) => return Ok(LeaveReason::Finished),
            };
            retry.succeeded();
            let idle = batch.is_empty();
            self.set_aside(&batch.refused);
            self.handle_batch(batch.events, held).await?;
            if !batch.refused.is_empty() {
                held.position.move_mark(batch.end);
                held.advanced();
            }
            if held.save_is_due(idle) {
                self.save(held).await?;
            }
            if idle && self.context.assignment.exit_when_drained && self.source.is_at_end() {
                return Ok(LeaveReason::Finished);
            }
            if self.context.quota.release_excess() {
                return Ok(LeaveReason::OverQuota);
            }
        }
    }

    async fn save(&mut self, held: &mut HeldPartition) -> Result<(), LeaveReason> {
        held.save(&mut self.store).await?;
        self.context.status.saved();
        self.report_lag(held).await;
        if self.counted.elapsed() > COUNT_EVERY {
            self.count_dead_letters().await;
        }
        Ok(())
    }

    /// Counts the dead letters for the status file.
    pub(super) async fn count_dead_letters(&mut self) {
        self.counted = Instant::now();
        self.context.status.dead_letters(self.store.count_dead_letters().await.ok());
    }

    async fn report_lag(&mut self, held: &HeldPartition) {
        self.context.status.lag(self.source.lag(&held.position).await);
    }

    async fn handle_batch(
        &mut self,
        events: Vec<SourceEvent>,
        held: &mut HeldPartition,
    ) -> Result<(), LeaveReason> {
        let delivered = self.deliver_together(&events);
        for mut event in events {
            let was_due = !delivered && self.deliver(&mut event, held).await?;
            let now = self.context.assignment.clock.now();
            if was_due {
                held.position.set_handled(event.bus, &event.row, event.mark, now);
            } else {
                held.position.advance(event.bus, &event.row, event.mark, now);
            }
            held.advanced();
            if *self.context.stop.borrow() {
                return Err(LeaveReason::Finished);
            }
        }
        Ok(())
    }

    /// Delivers all events of a batch in one transaction, if the target can; says whether it did.
    fn deliver_together(&mut self, events: &[SourceEvent]) -> bool {
        let incomplete = events.iter().any(|event| event.stored.is_some());
        if events.len() < 2 || incomplete || !self.delivery.takes_batches() {
            return false;
        }
        let wanted = |event: &&SourceEvent| {
            self.partition.contains(&event.row.session)
                && self.observer.matching_entry(&event.row).is_some()
        };
        let now = self.context.assignment.clock.now();
        // Analytics has no filters.
        if matches!(self.observer.action(), ObserverAction::Analytics(_)) {
            let delivered = self.delivery.deliver_batch(events, now);
            for event in events.iter().filter(|_| delivered) {
                self.context.status.handled(event.row.at);
            }
            return delivered;
        }
        let wanted: Vec<SourceEvent> = events.iter().filter(wanted).cloned().collect();
        let delivered = self.delivery.deliver_batch(&wanted, now);
        if delivered {
            for event in &wanted {
                self.context.status.handled(event.row.at);
            }
        }
        delivered
    }

    /// Whether an event is in this partition and was not handled yet. Archives and analytics get handled events too:
    /// they recognise them, and report one that differs from what they hold.
    async fn is_due(
        &mut self,
        event: &SourceEvent,
        held: &HeldPartition,
    ) -> Result<bool, LeaveReason> {
        if !self.partition.contains(&event.row.session) {
            return Ok(false);
        }
        if self.delivery.takes_batches() {
            return Ok(true);
        }
        let handled = self.source.is_handled(&held.position, event).await;
        Ok(!handled.map_err(ObserverError::from)?)
    }

    /// Delivers an event that matches the observer and was not handled before; says whether it had to.
    async fn deliver(
        &mut self,
        event: &mut SourceEvent,
        held: &mut HeldPartition,
    ) -> Result<bool, LeaveReason> {
        if !self.observer.may_match(&event.row) || !self.is_due(event, held).await? {
            return Ok(false);
        }
        self.deliver_with_retries(event, held).await?;
        Ok(!self.delivery.takes_batches())
    }

    /// Delivers an event until an attempt succeeds or `tries` is reached.
    async fn deliver_with_retries(
        &mut self,
        event: &mut SourceEvent,
        held: &mut HeldPartition,
    ) -> Result<(), LeaveReason> {
        let observer = Arc::clone(&self.observer);
        let attempts = observer.settings().tries;
        self.context.status.delivering(event.row.at);
        let mut delay = RetryDelay::between_attempts(observer.settings().wait);
        for attempt in 1..=attempts {
            let error = match self.fetch_payload(event, held).await? {
                Err(error) => DeliveryError::Payload(error),
                Ok(()) => {
                    // Filters may look at the payload, which is here only now.
                    let Some(hook) = observer.matching_entry(&event.row) else { return Ok(()) };
                    let Err(error) = self.attempt(hook, event, attempt, held).await? else {
                        self.context.status.handled(event.row.at);
                        return Ok(());
                    };
                    error
                }
            };
            // A full disk is not the event's fault.
            if let DeliveryError::Archive(error @ ArchiveError::Append(_)) = error {
                return Err(ObserverError::Archive(error).into());
            }
            // What cannot be counted is never given up: the figures would be wrong from then on.
            if let DeliveryError::Analytics(error) = error {
                return Err(ObserverError::Analytics(error).into());
            }
            if error.is_wrong_event() {
                return self.set_event_aside(event, attempt, &error).await;
            }
            // The user withdrew the approval in between: the event is not to blame, so it does not become a
            // dead letter.
            self.delivery.check_approved().map_err(ObserverError::NotReady)?;
            let seq = event.row.seq.as_i64();
            tracing::warn!(observer = observer.name(), seq, attempt, %error, "an event failed");
            if attempt == attempts {
                return self.dead_letter(event, attempt, &error).await;
            }
            self.context.status.failing(&error);
            self.report_lag(held).await;
            self.pause(delay.next(), held).await?;
        }
        Ok(())
    }

    /// Fetches the payload of an event that came without it, and renews the claim meanwhile: otherwise another worker would
    /// take over and begin with the first attempt, again and again.
    async fn fetch_payload(
        &mut self,
        event: &mut SourceEvent,
        held: &mut HeldPartition,
    ) -> Result<Result<(), FetchError>, LeaveReason> {
        let mut fetching = std::pin::pin!(self.source.complete(event));
        loop {
            tokio::select! {
                result = &mut fetching => return Ok(result),
                () = stopped(&mut self.context.stop) => return Err(LeaveReason::Finished),
                () = tokio::time::sleep(HEARTBEAT) => held.save(&mut self.store).await?,
            }
        }
    }

    /// Makes one attempt, and renews the claim meanwhile. If the partition is lost, the attempt is aborted.
    async fn attempt(
        &mut self,
        hook: &Hook,
        event: &SourceEvent,
        number: u32,
        held: &mut HeldPartition,
    ) -> Result<Result<(), DeliveryError>, LeaveReason> {
        if held.heartbeat_is_due() {
            held.save(&mut self.store).await?;
        }
        let attempt = Attempt { number, now: self.context.assignment.clock.now() };
        let mut delivering = std::pin::pin!(self.delivery.deliver(hook, event, attempt));
        loop {
            tokio::select! {
                result = &mut delivering => return Ok(result),
                () = stopped(&mut self.context.stop) => {
                    // If it does not end in time, the next worker delivers the event again.
                    let ended = tokio::time::timeout(STOP_LIMIT, &mut delivering).await;
                    return ended.map_err(|_| LeaveReason::Finished);
                }
                () = tokio::time::sleep(HEARTBEAT) => {
                    held.save(&mut self.store).await?;
                    self.context.status.lag(self.source.lag(&held.position).await);
                }
            }
        }
    }

    /// Waits before the next attempt, and renews the claim meanwhile.
    async fn pause(
        &mut self,
        delay: Duration,
        held: &mut HeldPartition,
    ) -> Result<(), LeaveReason> {
        let end = Instant::now() + delay;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let stopped = stopped(&mut self.context.stop);
            if tokio::time::timeout(left.min(HEARTBEAT), stopped).await.is_ok() {
                return Err(LeaveReason::Finished); // the next worker delivers the event again
            }
            if left <= HEARTBEAT {
                return Ok(());
            }
            held.save(&mut self.store).await?;
            self.report_lag(held).await;
        }
    }

    /// Keeps messages of the stream that cannot be what they say, for the user to look at.
    fn set_aside(&self, refused: &[RefusedMessage]) {
        if refused.is_empty() {
            return;
        }
        let store = RefusedMessages::of(&self.context.assignment.home, self.observer.name());
        if let Err(error) = store.keep(refused) {
            tracing::warn!(%error, "cannot keep the refused messages");
        }
        self.context.status.refused(refused.len());
    }

    /// Sets an event aside that no further attempt would deliver: as a refused message, or as a dead letter if
    /// it comes from the log of this home, which holds no forged rows.
    async fn set_event_aside(
        &mut self,
        event: &SourceEvent,
        tries: u32,
        error: &DeliveryError,
    ) -> Result<(), LeaveReason> {
        match event.refused(error.to_string()) {
            Some(refused) => {
                self.set_aside(&[refused]);
                Ok(())
            }
            None => self.dead_letter(event, tries, error).await,
        }
    }

    async fn dead_letter(
        &mut self,
        event: &SourceEvent,
        tries: u32,
        error: &DeliveryError,
    ) -> Result<(), LeaveReason> {
        let envelope = envelope::write(event.bus, &event.row, event.stored.as_ref());
        let (name, now) = (self.observer.name(), self.context.assignment.clock.now());
        let letter = DeadLetter::new(name, now, tries, &error.to_string(), envelope);
        self.store.add_dead_letter(&letter).await?;
        self.context.status.dead_lettered(error);
        Ok(())
    }
}
