//! A worker: claims a partition as soon as it is free, works on it, and releases it.

use std::time::{Duration, Instant};

use super::held_partition::{HeldPartition, LeaveReason};
use super::observe::{RunContext, stopped};
use super::processor::Processor;
use super::retry_state::RetryState;
use crate::analytics::AnalyticsError;
use crate::assignment::ReadFrom;
use crate::error::ObserverError;
use crate::partition::Partition;
use crate::store::LEASE;

/// How often a stand-by worker checks whether the partition is free.
const CLAIM_EVERY: Duration = Duration::from_millis(500);

/// How long a worker leaves a partition that it released over quota to others.
const LEAVE_TO_OTHERS: Duration = Duration::from_secs(2);

/// How a worker ended.
#[derive(Debug)]
pub(super) enum WorkerOutcome {
    /// It was stopped, or every event is handled.
    Finished,
    /// With `--drain`: another worker holds the partition.
    HeldElsewhere,
    /// With `--drain`: it could not go on.
    Failed(ObserverError),
}

/// The worker of one partition.
#[derive(Debug)]
pub(super) struct Worker {
    context: RunContext,
    partition: Partition,
    processor: Processor,
    retry: RetryState,
}

impl Worker {
    pub(super) fn new(context: RunContext, partition: Partition) -> Self {
        let processor = Processor::new(context.clone(), partition);
        Self { context, partition, processor, retry: RetryState::new() }
    }

    /// Works until it is stopped or, with `--drain`, done.
    pub(super) async fn run(mut self) -> WorkerOutcome {
        let outcome = self.run_until_stopped().await;
        self.processor.delivery.close().await;
        outcome
    }

    async fn run_until_stopped(&mut self) -> WorkerOutcome {
        let (drain, started) = (self.context.assignment.exit_when_drained, Instant::now());
        while !*self.context.stop.borrow() {
            if !self.context.quota.try_acquire() {
                self.sleep(CLAIM_EVERY).await;
                continue;
            }
            let reason = self.claim_and_work().await;
            if !matches!(reason, LeaveReason::OverQuota) {
                self.context.quota.release();
            }
            let pause = match reason {
                LeaveReason::Finished => return WorkerOutcome::Finished,
                // A worker that was killed holds its partition until its lease ends.
                LeaveReason::HeldElsewhere if drain && started.elapsed() > LEASE * 2 => {
                    return WorkerOutcome::HeldElsewhere;
                }
                LeaveReason::HeldElsewhere => {
                    self.stand_by();
                    CLAIM_EVERY
                }
                LeaveReason::OverQuota => LEAVE_TO_OTHERS,
                // The partition is claimed again, and read from where the new database is.
                LeaveReason::Failed(ObserverError::Analytics(AnalyticsError::Rebuilt)) => {
                    Duration::ZERO
                }
                LeaveReason::Failed(error) if drain => return WorkerOutcome::Failed(error),
                LeaveReason::Failed(error) => self.failed(&error),
            };
            self.sleep(pause).await;
        }
        WorkerOutcome::Finished
    }

    /// Sleeps, unless the observer is stopped.
    async fn sleep(&mut self, pause: Duration) {
        drop(tokio::time::timeout(pause, stopped(&mut self.context.stop)).await);
    }

    async fn claim_and_work(&mut self) -> LeaveReason {
        // A worker that cannot deliver must not hold the partition: another one may be able to.
        let now = self.context.assignment.clock.now();
        if let Err(error) = self.processor.delivery.check_ready(now) {
            return ObserverError::NotReady(error).into();
        }
        match self.claim().await {
            Ok(Some(held)) => self.work(held).await,
            Ok(None) => LeaveReason::HeldElsewhere,
            Err(error) => error.into(),
        }
    }

    async fn claim(&mut self) -> Result<Option<HeldPartition>, ObserverError> {
        let Some((claim, position)) = self.processor.store.claim(self.partition).await? else {
            return Ok(None);
        };
        let now = self.context.assignment.clock.now();
        let own = self.processor.delivery.own_position(now).map_err(ObserverError::NotReady)?;
        let position = own.or(position);
        let position = position.map_or_else(|| self.context.assignment.first_position(), Ok)?;
        Ok(Some(HeldPartition::new(claim, position)))
    }

    /// Works on a claimed partition, then releases it.
    async fn work(&mut self, mut held: HeldPartition) -> LeaveReason {
        let (observer, partition) = (self.context.assignment.observer.name(), self.partition.key());
        self.context.status.claimed();
        self.processor.count_dead_letters().await;
        tracing::info!(observer, partition, "working");
        let reason = self.process_with_retries(&mut held).await;
        self.context.status.released();
        if !matches!(reason, LeaveReason::HeldElsewhere) {
            held.release(&mut self.processor.store).await;
        }
        reason
    }

    /// Keeps the partition through short failures of the source.
    async fn process_with_retries(&mut self, held: &mut HeldPartition) -> LeaveReason {
        self.retry.start();
        loop {
            let (Ok(reason) | Err(reason)) = self.processor.process(held, &mut self.retry).await;
            let LeaveReason::Failed(error) = &reason else { return reason };
            // A target that cannot be written is no failure of the source: reading goes on to succeed.
            let is_of_target =
                matches!(error, ObserverError::Archive(_) | ObserverError::Analytics(_));
            if !self.retry.is_brief() || is_of_target {
                return reason;
            }
            let pause = self.failed(error);
            self.sleep(pause).await;
        }
    }

    /// Reports an error; returns how long to wait before the next try.
    fn failed(&mut self, error: &ObserverError) -> Duration {
        let pause = self.retry.failed(self.context.assignment.observer.name(), error);
        self.context.status.failing(error);
        pause
    }

    /// Next to a log, the working process writes the status file that both share. Over NATS the working process
    /// may be on another machine, so this one reports itself.
    fn stand_by(&self) {
        if matches!(self.context.assignment.read_from, ReadFrom::Nats(_)) {
            self.context.status.standing_by();
        }
    }
}
