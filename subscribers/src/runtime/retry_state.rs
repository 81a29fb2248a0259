//! How a worker is doing with its source and its store: the last error, and when to retry.

use std::time::{Duration, Instant};

use crate::error::ObserverError;
use crate::retry_delay::RetryDelay;
use crate::store::LEASE;

/// The last error of a worker, and the delay before its next try.
#[derive(Debug)]
pub(super) struct RetryState {
    last_error: Option<String>,
    delay: RetryDelay,
    last_success: Instant,
}

impl RetryState {
    pub(super) fn new() -> Self {
        let (delay, last_success) = (RetryDelay::between_claims(), Instant::now());
        Self { last_error: None, delay, last_success }
    }

    /// Starts counting the time of [`Self::is_brief`] now.
    pub(super) fn start(&mut self) {
        self.last_success = Instant::now();
    }

    /// The source was read.
    pub(super) fn succeeded(&mut self) {
        (self.last_error, self.last_success) = (None, Instant::now());
    }

    /// Whether the source failed for less than a lease: not long enough to give the partition away.
    pub(super) fn is_brief(&self) -> bool {
        self.last_success.elapsed() < LEASE
    }

    /// Logs the error, as a warning if it is a new one; returns how long to wait.
    pub(super) fn failed(&mut self, observer: &str, error: &ObserverError) -> Duration {
        let error = error.to_string();
        if self.last_error.as_ref() == Some(&error) {
            tracing::debug!(observer, error, "still interrupted");
        } else {
            tracing::warn!(observer, error, "interrupted; will retry");
            self.delay.reset();
            self.last_error = Some(error);
        }
        self.delay.next()
    }
}
