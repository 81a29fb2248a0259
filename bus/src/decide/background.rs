//! Counts notifications to plugins that are still in flight, so that shutdown can drain them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One counter for the whole process: a notification outlives its call and its version of the hooks file.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

const POLL_EVERY: Duration = Duration::from_millis(20);

/// One notification in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct InFlight(());

impl InFlight {
    pub(super) fn start() -> Self {
        IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until no notification is in flight, for `limit` at most; returns how many are left.
pub(crate) async fn drain_notifications(limit: Duration) -> usize {
    let drained = async {
        while IN_FLIGHT.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    // Whether it timed out shows in the number that is left.
    drop(tokio::time::timeout(limit, drained).await);
    IN_FLIGHT.load(Ordering::Relaxed)
}
