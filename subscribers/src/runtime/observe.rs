//! Runs an observer: one worker per partition, until it is stopped or, with `--drain`, done.

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::rebalance::PartitionQuota;
use super::status_file::StatusFile;
use super::worker::{Worker, WorkerOutcome};
use crate::assignment::Assignment;
use crate::error::ObserverError;
use crate::partition::Partition;

/// Becomes `true` when the workers have to stop.
pub type StopSignal = watch::Receiver<bool>;

/// What a run of an observer did.
#[derive(Debug, Default)]
pub struct ObserveSummary {
    /// How many events it handled.
    pub handled: u64,
    /// How many events became dead letters or, in a replay, failed.
    pub failed: u64,
    /// Whether it gave up waiting for a partition that another worker holds.
    pub held_elsewhere: bool,
    /// Why it could not finish.
    pub error: Option<ObserverError>,
}

/// Runs an observer until `stop`, or until every event is handled if the assignment says so.
pub async fn observe(assignment: Assignment, stop: StopSignal) -> ObserveSummary {
    let partitions = Partition::all(assignment.observer.terms().shared);
    let status = StatusFile::new(&assignment, partitions.len());
    let quota = PartitionQuota::new(partitions.len());
    let connection = assignment.connection();
    let rebalancing = (partitions.len() > 1 && !assignment.exit_when_drained).then(|| {
        let store = assignment.store(connection.as_ref());
        tokio::spawn(quota.clone().keep_fair(store, stop.clone()))
    });
    let mut workers = JoinSet::new();
    for partition in partitions {
        let (assignment, status) = (assignment.clone(), status.clone());
        let worker = Worker::new(
            assignment,
            partition,
            connection.as_ref(),
            status,
            quota.clone(),
            stop.clone(),
        );
        workers.spawn(worker.run());
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
    (summary.handled, summary.failed) = status.counts();
    summary
}
