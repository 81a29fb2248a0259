//! A partition that a worker holds, and why it lets it go.

use std::time::{Duration, Instant};

use crate::error::{ObserverError, SaveError};
use crate::position::ObserverPosition;
use crate::store::{Claim, LEASE, ObserverStore};

/// How often a worker renews its claim, however long one event takes.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(1500);

/// How often a position is saved while events keep coming.
const SAVE_EVERY: Duration = Duration::from_millis(200);

/// Why a worker stops working on a partition.
#[derive(Debug)]
pub(super) enum LeaveReason {
    /// It was stopped, or every event is handled.
    Finished,
    /// Another worker holds the partition.
    HeldElsewhere,
    /// This process holds more than its share; the quota has been returned already.
    OverQuota,
    /// Something failed that can be retried.
    Failed(ObserverError),
}

impl From<ObserverError> for LeaveReason {
    fn from(error: ObserverError) -> Self {
        Self::Failed(error)
    }
}

/// A claimed partition, and how far this worker is with it.
#[derive(Debug)]
pub(super) struct HeldPartition {
    pub(super) position: ObserverPosition,
    claim: Claim,
    saved: Instant,
    unsaved: bool,
}

impl HeldPartition {
    /// A new observer's starting position has to be saved too, so it counts as unsaved.
    pub(super) fn new(claim: Claim, position: ObserverPosition) -> Self {
        Self { position, claim, saved: Instant::now(), unsaved: true }
    }

    /// Marks the position as changed.
    pub(super) fn advanced(&mut self) {
        self.unsaved = true;
    }

    /// Whether the claim has to be renewed.
    pub(super) fn heartbeat_is_due(&self) -> bool {
        self.saved.elapsed() > HEARTBEAT
    }

    /// Whether the position has to be saved; at once while there is nothing else to do.
    pub(super) fn save_is_due(&self, idle: bool) -> bool {
        let due = idle || self.saved.elapsed() > SAVE_EVERY;
        self.heartbeat_is_due() || (self.unsaved && due)
    }

    /// Saves the position and renews the claim.
    pub(super) async fn save(&mut self, store: &mut ObserverStore) -> Result<(), LeaveReason> {
        match store.save(&mut self.claim, &self.position).await {
            Ok(()) => {
                (self.saved, self.unsaved) = (Instant::now(), false);
                Ok(())
            }
            Err(SaveError::TakenOver) => Err(LeaveReason::HeldElsewhere),
            Err(SaveError::Failed(error)) if self.saved.elapsed() + HEARTBEAT > LEASE => {
                Err(LeaveReason::Failed(error))
            }
            // Until the lease ends no other worker can take over, so the work goes on.
            Err(SaveError::Failed(error)) => {
                tracing::debug!(%error, "the position is not saved yet");
                Ok(())
            }
        }
    }

    /// Saves the position one last time and releases the claim.
    pub(super) async fn release(mut self, store: &mut ObserverStore) {
        if self.unsaved
            && let Err(SaveError::Failed(error)) = store.save(&mut self.claim, &self.position).await
        {
            tracing::debug!(%error, "the last events will be delivered again");
        }
        store.release(self.claim, &self.position).await;
    }
}
