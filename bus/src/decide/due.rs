//! Events that plugins are still to be told of while nobody waits for it: whoever leaves waits for them a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// In all of this process: such a task belongs to no call and to no version of a hooks file.
static DUE: AtomicUsize = AtomicUsize::new(0);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Due(());

impl Due {
    pub(super) fn one() -> Self {
        DUE.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        DUE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until plugins were told of everything they are due, for `limit` at most; how much is left then.
pub async fn tell_the_rest(limit: Duration) -> usize {
    let all_told = async {
        while DUE.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    // How it ended shows in what is left.
    drop(tokio::time::timeout(limit, all_told).await);
    DUE.load(Ordering::Relaxed)
}
