//! How far an observer is: the last handled event of each bus, and where that event was in the stream.
//!
//! The position per bus decides what has been handled. The stream mark only says where to read next,
//! and counts only while the stream still holds the same event there: a stream that was emptied or
//! restored from a backup restarts its numbering.

use std::collections::BTreeMap;
use std::time::Duration;

use hookbus::event::{BusId, EventId, Seq, Time};
use hookbus::log::Row;
use serde_json::{Map, Value, json};

/// The clocks of a bus and of an observer may differ by this much.
const CLOCK_SKEW: Duration = Duration::from_secs(2);

/// A message of the stream: its sequence number, and the event in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamMark {
    pub(crate) sequence: u64,
    pub(crate) id: EventId,
}

/// The last handled event of one bus. The id is unknown where only a starting point was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BusPosition {
    pub(crate) seq: Seq,
    pub(crate) id: Option<EventId>,
}

/// How far an observer is. Everything up to here is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObserverPosition {
    buses: BTreeMap<BusId, BusPosition>,
    pub(crate) mark: Option<StreamMark>,
    /// Of a bus without a position, events before this time are skipped; `None` skips nothing.
    since: Option<Time>,
}

impl ObserverPosition {
    /// Before the first event.
    pub(crate) fn start() -> Self {
        Self::default()
    }

    /// The position of a new observer that starts at this time.
    pub(crate) fn since(since: Time) -> Self {
        Self { since: Some(since), ..Self::default() }
    }

    /// The start time, less what the clocks may differ by.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.since.map(|since| since.before(CLOCK_SKEW))
    }

    /// The last handled event of a bus.
    pub(crate) fn of(&self, bus: BusId) -> Option<BusPosition> {
        self.buses.get(&bus).copied()
    }

    /// Whether a row was handled already, or is older than the start time.
    pub(crate) fn is_past(&self, bus: BusId, row: &Row) -> bool {
        match (self.of(bus), self.earliest()) {
            (Some(last), _) => row.seq <= last.seq,
            (None, Some(earliest)) => row.at < earliest,
            (None, None) => false,
        }
    }

    /// Marks everything up to this row as done.
    pub(crate) fn advance(&mut self, bus: BusId, row: &Row, mark: Option<StreamMark>) {
        if self.of(bus).is_none_or(|last| row.seq > last.seq) {
            self.set(bus, row.seq, Some(row.id));
        }
        self.mark = mark.or(self.mark);
    }

    /// Sets the position in one bus, forwards or backwards.
    pub(crate) fn set(&mut self, bus: BusId, seq: Seq, id: Option<EventId>) {
        self.buses.insert(bus, BusPosition { seq, id });
    }

    /// Combines two positions that are both correct: per bus, the later one.
    pub(crate) fn furthest(mut self, other: &Self) -> Self {
        for (bus, position) in &other.buses {
            if self.of(*bus).is_none_or(|own| own.seq < position.seq) {
                self.buses.insert(*bus, *position);
            }
        }
        let later = |mark: &StreamMark| self.mark.is_none_or(|own| own.sequence < mark.sequence);
        self.mark = other.mark.filter(later).or(self.mark);
        self
    }

    /// Combines the positions of all partitions: per bus, the earliest one.
    pub(crate) fn earliest_of(all: &[Self]) -> Option<Self> {
        let (first, rest) = all.split_first()?;
        let mut earliest = first.clone();
        for other in rest {
            earliest.buses.retain(|bus, position| {
                let Some(theirs) = other.of(*bus) else { return false };
                if theirs.seq < position.seq {
                    *position = theirs;
                }
                true
            });
            let marks = earliest.mark.zip(other.mark);
            earliest.mark = marks
                .map(|(own, theirs)| if theirs.sequence < own.sequence { theirs } else { own });
        }
        Some(earliest)
    }

    pub(crate) fn to_json(&self) -> Value {
        let position = |at: &BusPosition| json!({"seq": at.seq.as_i64(), "id": at.id.map(|id| id.to_string())});
        let buses: Map<String, Value> =
            self.buses.iter().map(|(bus, at)| (bus.to_string(), position(at))).collect();
        json!({
            "buses": buses,
            "stream": self.mark.map(|mark| json!({"place": mark.sequence, "id": mark.id.to_string()})),
            "since": self.since.map(Time::micros),
        })
    }

    /// Reads it back. What cannot be read counts as not handled, so that no event is skipped.
    pub(crate) fn from_json(value: &Value) -> Self {
        let id = |value: &Value| value.as_str().and_then(|id| id.parse().ok());
        let position = |value: &Value| {
            Some(BusPosition { seq: Seq::from_i64(value["seq"].as_i64()?), id: id(&value["id"]) })
        };
        let buses = value["buses"].as_object().into_iter().flatten();
        let mark = &value["stream"];
        Self {
            buses: buses.filter_map(|(bus, at)| Some((bus.parse().ok()?, position(at)?))).collect(),
            mark: mark["place"]
                .as_u64()
                .and_then(|sequence| Some(StreamMark { sequence, id: id(&mark["id"])? })),
            since: value["since"].as_i64().map(Time::from_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(number: i64) -> BusId {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        BusId::from_bytes(bytes)
    }

    fn at(positions: &[(i64, i64)]) -> ObserverPosition {
        let mut position = ObserverPosition::start();
        for (of, seq) in positions {
            position.set(bus(*of), Seq::from_i64(*seq), None);
        }
        position
    }

    #[test]
    fn a_position_reads_back_as_it_was_written() {
        let now = Time::from_micros(1_700_000_000_000_000);
        let mut position = ObserverPosition::since(now);
        position.set(bus(1), Seq::from_i64(7), Some(EventId::mint(now)));
        position.mark = Some(StreamMark { sequence: 12, id: EventId::mint(now) });
        assert_eq!(ObserverPosition::from_json(&position.to_json()), position);
    }

    #[test]
    fn the_furthest_of_two_positions_takes_the_later_one_per_bus() {
        let both = at(&[(1, 5), (2, 9)]).furthest(&at(&[(1, 7), (3, 1)]));
        assert_eq!(both, at(&[(1, 7), (2, 9), (3, 1)]));
    }

    #[test]
    fn partitions_together_are_as_far_as_the_slowest_of_them() {
        let partitions = [at(&[(1, 5), (2, 9)]), at(&[(1, 7)])];
        assert_eq!(ObserverPosition::earliest_of(&partitions), Some(at(&[(1, 5)])));
        assert_eq!(ObserverPosition::earliest_of(&[]), None);
    }
}
