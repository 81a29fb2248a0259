//! The one back-off of this crate: how long to wait before something that failed is tried again.

use std::time::Duration;

/// Delays that double: the first delay, then twice as long each time, up to a longest one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Between two attempts to deliver one event; `wait` is the observer's setting of that name.
    pub(crate) const fn between_attempts(wait: Duration) -> Self {
        Self::new(wait, Duration::from_mins(1))
    }

    /// After the source or the store failed, or while the observer is not ready to run.
    pub(crate) const fn between_claims() -> Self {
        Self::new(Duration::from_millis(500), Duration::from_secs(4))
    }

    const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// The delay before the next attempt.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.longest);
        delay
    }

    /// Starts again with the first delay.
    pub(crate) const fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_start_again_after_a_reset() {
        let mut backoff = Backoff::between_claims();
        let delays: Vec<u128> = (0..5).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 4000]);
        backoff.reset();
        assert_eq!(backoff.next_delay(), Duration::from_millis(500));
    }

    #[test]
    fn a_configured_wait_above_the_longest_delay_is_kept_for_the_first_retry() {
        let mut backoff = Backoff::between_attempts(Duration::from_mins(10));
        let delays: Vec<u64> = (0..3).map(|_| backoff.next_delay().as_secs()).collect();
        assert_eq!(delays, [600, 60, 60]);
    }
}
