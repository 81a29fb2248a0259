//! A moment, and where moments come from.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// A moment in UTC, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(i64);

impl Time {
    /// A moment read back from the log or handed in by a test.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970, as kept in the log.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// How long after `earlier` this is; nothing if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This moment less `span`.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }

    /// As chrono knows it; a moment outside its range becomes 1970.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }

    /// Whole seconds and the nanoseconds after them, not before 1970.
    pub(super) fn parts(self) -> (u64, u32) {
        let micros = u64::try_from(self.0).unwrap_or(0);
        (micros / 1_000_000, u32::try_from(micros % 1_000_000 * 1000).unwrap_or(0))
    }
}

impl From<DateTime<Utc>> for Time {
    fn from(moment: DateTime<Utc>) -> Self {
        Self(moment.timestamp_micros())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_utc().to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

/// Where the bus gets the time from. Tests hand in their own.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one clock")]
    fn now(&self) -> Time {
        Time::from(Utc::now())
    }
}
