//! Ids of events and buses, and positions in the log. Each has a type of its own with its rules.

use std::fmt;
use std::str::FromStr;

use uuid::{NoContext, Timestamp, Uuid};

use super::Time;

/// The id of an event: a `UUIDv7`, minted once by the client that receives the event, so that ids sort by
/// time. An event has an even id, and the decision about it has the odd id right after. So an event has
/// at most one decision, and finding it needs no further index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(Uuid);

impl EventId {
    /// A new id for an event at `at`.
    pub fn mint(at: Time) -> Self {
        let (seconds, nanos) = at.parts();
        let fresh = Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos));
        Self(Uuid::from_u128(fresh.as_u128() & !1))
    }

    /// The id of the decision about this event.
    #[must_use]
    pub const fn of_decision(self) -> Self {
        Self(Uuid::from_u128(self.0.as_u128() | 1))
    }

    /// The smallest id that an event at `at` or later can have, to look up events by time.
    pub fn lower_bound(at: Time) -> Self {
        let millis = at.millis().clamp(0, (1 << 48) - 1);
        Self(Uuid::from_u128(u128::from(millis.unsigned_abs()) << 80))
    }

    /// When it was minted, to the millisecond.
    pub fn minted(self) -> Time {
        let millis = i64::try_from(self.0.as_u128() >> 80).unwrap_or(0);
        Time::from_micros(millis.saturating_mul(1000))
    }

    /// The sixteen bytes that the log stores.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// An id read from the log or the socket.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EventId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// The id of a bus, minted when its log is created. The pair of bus and seq identifies a row globally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BusId(Uuid);

impl BusId {
    /// A new id for a log created at `at`.
    pub fn mint(at: Time) -> Self {
        Self(EventId::mint(at).0)
    }

    /// The beginning of the id that none of the `others` shares, at least eight digits long. Ids begin with their time, so
    /// buses that were made together begin alike.
    pub fn short(&self, others: &[Self]) -> String {
        const LEAST: usize = 8;
        let id = self.to_string();
        let common = |other: &Self| {
            let other = other.to_string();
            id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count() + 1
        };
        let others = others.iter().filter(|other| *other != self);
        let length = others.map(common).max().unwrap_or(0).clamp(LEAST, id.len());
        id[..length].trim_end_matches('-').to_owned()
    }

    /// The sixteen bytes that the log stores.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// An id read from the log.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for BusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BusId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// The number of a row in the log. Numbers start at `FIRST` and have no gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(i64);

impl Seq {
    /// The number of the first row.
    pub const FIRST: Self = Self(1);

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// A number read from the log.
    pub const fn from_i64(value: i64) -> Self {
        Self(value)
    }

    /// The number as the log stores it.
    pub const fn as_i64(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_has_the_id_right_after_its_event() {
        let event = EventId::mint(Time::from_micros(1_700_000_000_000_000));
        assert!(event < event.of_decision());
        assert_eq!(event.of_decision(), event.of_decision().of_decision());
        assert_ne!(event, EventId::mint(Time::from_micros(1_700_000_000_000_000)));
    }

    #[test]
    fn a_short_id_is_as_long_as_it_must_be_to_be_the_only_one() {
        let bus = |text: &str| text.parse::<BusId>().expect("an id");
        let first = bus("019a0000-1111-7000-8000-000000000000");
        let second = bus("019a0000-1112-7000-8000-000000000000");
        let third = bus("019a0000-1112-7000-8000-000000000001");
        assert_eq!(first.short(&[first]), "019a0000");
        assert_eq!(first.short(&[first, second]), "019a0000-1111");
        assert_eq!(third.short(&[first, second, third]), third.to_string());
    }

    #[test]
    fn ids_can_be_looked_up_by_time() {
        let at = Time::from_micros(1_700_000_000_123_000);
        let later = Time::from_micros(1_700_000_000_124_000);
        let id = EventId::mint(at);
        assert!(EventId::lower_bound(at) <= id);
        assert!(id < EventId::lower_bound(later));
    }
}
