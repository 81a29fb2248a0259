//! A worker: claims a partition as soon as it is free, works on it, and releases it.

use std::time::{Duration, Instant};

use super::held_partition::{HeldPartition, LeaveReason};
use super::observe::StopSignal;
use super::processor::Processor;
use super::rebalance::PartitionQuota;
use super::retry_state::RetryState;
use super::status_file::StatusFile;
use crate::assignment::{Assignment, ReadFrom};
use crate::connection::NatsConnection;
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
    /// It was told to stop, or every event is handled.
    Finished,
    /// Another worker holds the partition, and this one was not to wait for ever.
    HeldElsewhere,
    /// It could not go on, and was not to wait for ever.
    Failed(ObserverError),
}

/// The worker of one partition.
#[derive(Debug)]
pub(super) struct Worker {
    assignment: Assignment,
    partition: Partition,
    processor: Processor,
    status: StatusFile,
    quota: PartitionQuota,
    stop: StopSignal,
    retry: RetryState,
}

impl Worker {
    pub(super) fn new(
        assignment: Assignment,
        partition: Partition,
        connection: Option<&NatsConnection>,
        status: StatusFile,
        quota: PartitionQuota,
        stop: StopSignal,
    ) -> Self {
        let processor = Processor::new(
            &assignment,
            partition,
            connection,
            status.clone(),
            quota.clone(),
            stop.clone(),
        );
        Self { assignment, partition, processor, status, quota, stop, retry: RetryState::new() }
    }

    /// Works until it is stopped or, with `--drain`, done.
    pub(super) async fn run(mut self) -> WorkerOutcome {
        let outcome = self.run_until_stopped().await;
        self.processor.delivery.close().await;
        outcome
    }

    async fn run_until_stopped(&mut self) -> WorkerOutcome {
        let (drain, started) = (self.assignment.exit_when_drained, Instant::now());
        while !*self.stop.borrow() {
            if !self.quota.try_acquire() {
                self.sleep(CLAIM_EVERY).await;
                continue;
            }
            let reason = self.claim_and_work().await;
            if !matches!(reason, LeaveReason::OverQuota) {
                self.quota.release();
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
                LeaveReason::Failed(error) if drain => return WorkerOutcome::Failed(error),
                LeaveReason::Failed(error) => self.failed(&error),
            };
            self.sleep(pause).await;
        }
        WorkerOutcome::Finished
    }

    /// Sleeps, unless the observer is stopped.
    async fn sleep(&mut self, pause: Duration) {
        drop(tokio::time::timeout(pause, self.stop.changed()).await);
    }

    async fn claim_and_work(&mut self) -> LeaveReason {
        // A worker that cannot deliver must not hold the partition: another one may be able to.
        let now = self.assignment.clock.now();
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
        let position = position.map_or_else(|| self.assignment.first_position(), Ok)?;
        Ok(Some(HeldPartition::new(claim, position)))
    }

    /// Works on a claimed partition, then releases it.
    async fn work(&mut self, mut held: HeldPartition) -> LeaveReason {
        let (observer, partition) = (self.assignment.observer.name(), self.partition.key());
        self.status.claimed();
        self.processor.count_dead_letters().await;
        tracing::info!(observer, partition, "working");
        let reason = self.process_with_retries(&mut held).await;
        self.status.released();
        if !matches!(reason, LeaveReason::HeldElsewhere) {
            held.release(&mut self.processor.store).await;
        }
        reason
    }

    /// Keeps the partition through short failures of the source.
    async fn process_with_retries(&mut self, held: &mut HeldPartition) -> LeaveReason {
        self.retry.start();
        loop {
            match self.processor.process(held, &mut self.retry).await {
                LeaveReason::Failed(error) if self.retry.is_brief() => {
                    let pause = self.failed(&error);
                    self.sleep(pause).await;
                }
                reason @ (LeaveReason::Finished
                | LeaveReason::HeldElsewhere
                | LeaveReason::OverQuota
                | LeaveReason::Failed(_)) => return reason,
            }
        }
    }

    /// Reports an error; returns how long to wait before the next try.
    fn failed(&mut self, error: &ObserverError) -> Duration {
        let pause = self.retry.failed(self.assignment.observer.name(), error);
        self.status.failing(error);
        pause
    }

    /// Over NATS the working process may be on another machine, so this one writes its own status. Next to
    /// a log the working process writes the same file.
    fn stand_by(&self) {
        if matches!(self.assignment.read_from, ReadFrom::Nats(_)) {
            self.status.standing_by();
        }
    }
}
