//! How long to wait before the next try of something that failed: the delay doubles with every
//! failure in a row, up to a limit. Pure, so that the relay and the supervisor of observers share it.

use std::time::Duration;

/// An exponential back-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// No delay is longer than this.
    pub longest: Duration,
}

impl Backoff {
    /// The delay after this many failures in a row; zero if nothing has failed.
    pub fn delay(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff =
        Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(2) };

    #[test]
    fn the_delay_doubles_with_every_failure_up_to_the_longest() {
        let delays = [0, 1, 2, 3, 4, 5, 6, 7].map(|failures| BACKOFF.delay(failures).as_millis());
        assert_eq!(delays, [0, 100, 200, 400, 800, 1600, 2000, 2000]);
    }

    #[test]
    fn many_failures_do_not_overflow() {
        for failures in [31, 32, 33, 34, 1000, u32::MAX] {
            assert_eq!(BACKOFF.delay(failures), BACKOFF.longest);
        }
        let endless = Backoff { longest: Duration::MAX, ..BACKOFF };
        assert!(endless.delay(u32::MAX) >= endless.delay(31));
    }
}
