//! Runs an observer: one worker per partition, until it is stopped or, with `--drain`, done.

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::rebalance::PartitionQuota;
use super::status_file::StatusFile;
use super::worker::{Worker, WorkerOutcome};
use crate::assignment::Assignment;
use crate::connection::NatsConnection;
use crate::error::ObserverError;
use crate::partition::Partition;
use crate::store::ObserverStore;

/// Becomes `true` when the workers have to stop.
pub type StopSignal = watch::Receiver<bool>;

/// Returns once the workers have to stop.
pub(super) async fn stopped(stop: &mut StopSignal) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// What a run of an observer did.
#[derive(Debug, Default)]
pub struct ObserveSummary {
    /// How many events it handled.
    pub handled: u64,
    /// How many events became dead letters or, in a replay, failed.
    pub failed: u64,
    /// How many messages of the stream it refused.
    pub refused: u64,
    /// Whether it gave up waiting for a partition that another worker holds.
    pub held_elsewhere: bool,
    /// Why it could not finish.
    pub error: Option<ObserverError>,
}

/// What all workers of the process share.
#[derive(Debug, Clone)]
pub(super) struct RunContext {
    pub(super) assignment: Assignment,
    pub(super) connection: Option<NatsConnection>,
    pub(super) status: StatusFile,
    pub(super) quota: PartitionQuota,
    pub(super) stop: StopSignal,
}

impl RunContext {
    /// A store with the shared connection.
    pub(super) fn store(&self) -> ObserverStore {
        self.assignment.store(self.connection.as_ref())
    }
}

/// Runs an observer until `stop`, or until every event is handled if the assignment says so.
pub async fn observe(assignment: Assignment, stop: StopSignal) -> ObserveSummary {
    let partitions = Partition::all(assignment.observer.settings().shared);
    let connection = assignment.connection();
    let status = StatusFile::new(&assignment, partitions.len());
    let quota = PartitionQuota::new(partitions.len());
    let context = RunContext { assignment, connection, status, quota, stop };
    let rebalancing = (partitions.len() > 1 && !context.assignment.exit_when_drained).then(|| {
        tokio::spawn(context.quota.clone().keep_fair(context.store(), context.stop.clone()))
    });
    let mut workers = JoinSet::new();
    for partition in partitions {
        workers.spawn(Worker::new(context.clone(), partition).run());
    }
    let mut summary = ObserveSummary::default();
    while let Some(ended) = workers.join_next().await {
        match ended {
            Ok(WorkerOutcome::Finished) | Err(_) => {}
            Ok(WorkerOutcome::HeldElsewhere) => summary.held_elsewhere = true,
            Ok(WorkerOutcome::Failed(error)) => summary.error = Some(error),
        }
    }
    if let Some(rebalancing) = rebalancing {
        rebalancing.abort();
    }
    (summary.handled, summary.failed, summary.refused) = context.status.counts();
    summary
}
