//! Divides the partitions of an observer among its workers: each process holds at most its fair share and
//! releases what exceeds it, so that a worker that starts later gets partitions too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::observe::{StopSignal, stopped};
use crate::store::ObserverStore;

/// How often the workers are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// How many partitions this process holds, and how many it may hold.
#[derive(Debug, Clone)]
pub(super) struct PartitionQuota(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    partitions: usize,
    held: AtomicUsize,
    allowed: AtomicUsize,
}

impl PartitionQuota {
    pub(super) fn new(partitions: usize) -> Self {
        let (held, allowed) = (AtomicUsize::new(0), AtomicUsize::new(partitions));
        Self(Arc::new(Counts { partitions, held, allowed }))
    }

    /// Reserves one more partition if the quota allows it.
    pub(super) fn try_acquire(&self) -> bool {
        let allowed = self.0.allowed.load(Ordering::Relaxed);
        let one_more = |held: usize| (held < allowed).then_some(held + 1);
        self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Returns one partition.
    pub(super) fn release(&self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns one partition if this process holds more than it may.
    pub(super) fn release_excess(&self) -> bool {
        let allowed = self.0.allowed.load(Ordering::Relaxed);
        let one_less = |held: usize| (held > allowed).then(|| held - 1);
        self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Counts the workers every second and adjusts the quota, until stopped.
    pub(super) async fn keep_fair(self, mut store: ObserverStore, mut stop: StopSignal) {
        while !*stop.borrow() {
            match store.count_workers().await {
                Ok(workers) => {
                    let allowed = self.0.partitions.div_ceil(workers.max(1));
                    self.0.allowed.store(allowed, Ordering::Relaxed);
                }
                Err(error) => tracing::debug!(%error, "cannot count the workers"),
            }
            drop(tokio::time::timeout(COUNT_EVERY, stopped(&mut stop)).await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_no_more_partitions_than_its_quota() {
        let quota = PartitionQuota::new(8);
        quota.0.allowed.store(3, Ordering::Relaxed);
        assert_eq!((0..8).filter(|_| quota.try_acquire()).count(), 3);
        quota.0.allowed.store(2, Ordering::Relaxed);
        assert!(quota.release_excess());
        assert!(!quota.release_excess() && !quota.try_acquire());
    }
}
