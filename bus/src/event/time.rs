//! Points in time, and the clock they come from.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// A point in time: UTC, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(i64);

impl Time {
    /// A time from microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970, as the log stores it.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The duration since `earlier`; zero if this is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The time `span` before this one.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The same time in chrono's type; 1970 if that cannot represent it.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }

    /// Seconds since 1970 and the nanoseconds after; zero for earlier times.
    pub(super) fn parts(self) -> (u64, u32) {
        let micros = u64::try_from(self.0).unwrap_or(0);
        (micros / 1_000_000, u32::try_from(micros % 1_000_000 * 1000).unwrap_or(0))
    }
}

impl From<DateTime<Utc>> for Time {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_micros())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_utc().to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

/// Where the bus gets the time from. Tests pass a clock of their own.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The present time.
    fn now(&self) -> Time;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
    fn now(&self) -> Time {
        Time::from(Utc::now())
    }
}
