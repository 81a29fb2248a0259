//! Sharing out the parts of an observer among the workers that are there: each takes its fair share
//! and lets go of what is over it, so that a worker that comes later gets something to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::ledger::Ledger;
use crate::work::Stop;

/// How often workers are counted.
const COUNT: Duration = Duration::from_secs(1);

/// What this process holds, and what it may hold.
#[derive(Debug, Clone)]
pub(crate) struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    parts: usize,
    held: AtomicUsize,
    fair: AtomicUsize,
}

impl Shares {
    pub(crate) fn of(parts: usize) -> Self {
        Self(Arc::new(Inner { parts, held: AtomicUsize::new(0), fair: AtomicUsize::new(parts) }))
    }

    /// Whether one more part would still be fair; it is counted as held if so.
    pub(crate) fn take(&self) -> bool {
        let fair = self.0.fair.load(Ordering::Relaxed);
        let more = |held: usize| (held < fair).then_some(held + 1);
        self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives one back.
    pub(crate) fn give_back(&self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives one back if this process holds more than its share.
    pub(crate) fn give_back_if_too_many(&self) -> bool {
        let fair = self.0.fair.load(Ordering::Relaxed);
        let less = |held: usize| (held > fair).then(|| held - 1);
        self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Counts the workers now and then, until told to stop.
    pub(crate) async fn keep_fair(self, mut ledger: Ledger, mut stop: Stop) {
        while !*stop.borrow() {
            match ledger.count_workers().await {
                Ok(workers) => {
                    let fair = self.0.parts.div_ceil(workers.max(1));
                    self.0.fair.store(fair, Ordering::Relaxed);
                }
                Err(error) => tracing::debug!(%error, "cannot count the workers"),
            }
            drop(tokio::time::timeout(COUNT, stop.changed()).await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_more_than_is_fair() {
        let shares = Shares::of(8);
        shares.0.fair.store(3, Ordering::Relaxed);
        assert_eq!((0..8).filter(|_| shares.take()).count(), 3);
        shares.0.fair.store(2, Ordering::Relaxed);
        assert!(shares.give_back_if_too_many());
        assert!(!shares.give_back_if_too_many() && !shares.take());
    }
}
