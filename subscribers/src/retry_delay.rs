//! The delays between the tries of something that keeps failing, with the back-off of the bus.

use std::time::Duration;

use hookbus::backoff::Backoff;

/// No delay between attempts is longer, unless the observer's own `wait` is.
const LONGEST_BETWEEN_ATTEMPTS: Duration = Duration::from_mins(1);

/// The next delay of a back-off: it doubles with every failure until it is reset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryDelay {
    backoff: Backoff,
    failures: u32,
}

impl RetryDelay {
    /// Between two attempts to deliver one event; `wait` is the observer's setting of that name.
    pub(crate) fn between_attempts(wait: Duration) -> Self {
        Self::new(Backoff { first: wait, longest: wait.max(LONGEST_BETWEEN_ATTEMPTS) })
    }

    /// After the source or the store failed, or while the observer is not ready to run.
    pub(crate) const fn between_claims() -> Self {
        Self::new(Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(4) })
    }

    const fn new(backoff: Backoff) -> Self {
        Self { backoff, failures: 0 }
    }

    /// The delay before the next try.
    pub(crate) fn next(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.backoff.delay(self.failures)
    }

    /// Starts again with the first delay.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_start_again_after_a_reset() {
        let mut delay = RetryDelay::between_claims();
        let delays: Vec<u128> = (0..5).map(|_| delay.next().as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 4000]);
        delay.reset();
        assert_eq!(delay.next(), Duration::from_millis(500));
    }

    #[test]
    fn a_configured_wait_above_the_longest_delay_is_kept() {
        let mut delay = RetryDelay::between_attempts(Duration::from_mins(10));
        let delays: Vec<u64> = (0..3).map(|_| delay.next().as_secs()).collect();
        assert_eq!(delays, [600, 600, 600]);
    }
}
