//! How far an observer is: the last handled event of each bus, and where that event was in the stream.
//!
//! The sequence numbers of the stream come from the server: the mark says where to read next, and counts only
//! while the stream still holds the same message there. A stream that was emptied or restored from a backup
//! is read again; then the position per bus says which of its rows were handled before. The seq in it is what
//! the sender of a message wrote, so it alone never makes the observer skip a row: see [`BusPosition::covers`].

use std::collections::BTreeMap;
use std::time::Duration;

use hookbus::event::{BusId, EventId, Seq, Time};
use hookbus::log::Row;
use serde_json::{Map, Value, json};

/// The clocks of a bus and of an observer may differ by this much.
const CLOCK_SKEW: Duration = Duration::from_secs(2);

/// A message of the stream: its sequence number, and the event in it. A message that is not an event has an id
/// made from its bytes.
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
    /// The sequence number of its message, if it came from the stream.
    pub(crate) place: Option<u64>,
    /// When the observer was done with it, by its own clock.
    pub(crate) handled: Option<Time>,
}

impl BusPosition {
    /// Whether a row of a stream that is read again was handled before: its seq is not later, and it was
    /// recorded before the position was reached. Without the time, one forged seq would make the observer
    /// skip everything that the bus publishes later.
    pub(crate) fn covers(&self, row: &Row) -> bool {
        let is_older = self.handled.is_none_or(|handled| row.at.before(CLOCK_SKEW) <= handled);
        row.seq <= self.seq && is_older
    }

    /// Whether this position was reached before another one of the same bus. The seq decides only where a
    /// position of an earlier version has no time.
    fn is_before(&self, other: &Self) -> bool {
        match (self.handled, other.handled) {
            (Some(own), Some(theirs)) => own < theirs,
            (None, _) | (_, None) => self.seq < other.seq,
        }
    }
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

    /// Whether a row of a bus without a position is older than the start time.
    pub(crate) fn is_before_start(&self, row: &Row) -> bool {
        self.earliest().is_some_and(|earliest| row.at < earliest)
    }

    /// Marks everything up to this row as done.
    pub(crate) fn advance(&mut self, bus: BusId, row: &Row, mark: Option<StreamMark>, now: Time) {
        if self.of(bus).is_none_or(|last| row.seq > last.seq) {
            self.set_handled(bus, row, mark, now);
        }
        self.move_mark(mark);
    }

    /// Sets the position to a row that was handled just now, also if an earlier message had a later seq: one of
    /// the two is forged, and only the lower seq makes the observer skip nothing.
    pub(crate) fn set_handled(
        &mut self,
        bus: BusId,
        row: &Row,
        mark: Option<StreamMark>,
        now: Time,
    ) {
        let place = mark.map(|mark| mark.sequence);
        let done = BusPosition { seq: row.seq, id: Some(row.id), place, handled: Some(now) };
        self.buses.insert(bus, done);
        self.move_mark(mark);
    }

    /// Marks everything up to this message as done; without one, the mark stays.
    pub(crate) fn move_mark(&mut self, mark: Option<StreamMark>) {
        self.mark = mark.or(self.mark);
    }

    /// Sets the position in one bus, forwards or backwards.
    pub(crate) fn set(&mut self, bus: BusId, seq: Seq, id: Option<EventId>) {
        self.buses.insert(bus, BusPosition { seq, id, place: None, handled: None });
    }

    /// Combines two positions that are both correct: per bus, the later one.
    pub(crate) fn furthest(mut self, other: &Self) -> Self {
        for (bus, position) in &other.buses {
            if self.of(*bus).is_none_or(|own| own.is_before(position)) {
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
                if theirs.is_before(position) {
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
        let position = |at: &BusPosition| {
            json!({
                "seq": at.seq.as_i64(),
                "id": at.id.map(|id| id.to_string()),
                "place": at.place,
                "handled": at.handled.map(Time::micros),
            })
        };
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
            Some(BusPosition {
                seq: Seq::from_i64(value["seq"].as_i64()?),
                id: id(&value["id"]),
                place: value["place"].as_u64(),
                handled: value["handled"].as_i64().map(Time::from_micros),
            })
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
        position.advance(
            bus(2),
            &row(3, now),
            Some(StreamMark { sequence: 9, id: EventId::mint(now) }),
            now,
        );
        position.mark = Some(StreamMark { sequence: 12, id: EventId::mint(now) });
        assert_eq!(ObserverPosition::from_json(&position.to_json()), position);
    }

    fn row(seq: i64, at: Time) -> Row {
        Row {
            seq: Seq::from_i64(seq),
            id: EventId::mint(at),
            at,
            agent: "hermes".to_owned(),
            session: String::new(),
            turn: None,
            name: "agent:step".to_owned(),
            kind: "agent.step".to_owned(),
            tool: None,
            tool_class: None,
            cause: None,
            context: None,
            payload: Vec::new(),
            removed: None,
            redaction: None,
            hash: [0; 32],
            origin: None,
            identity: None,
        }
    }

    #[test]
    fn a_position_of_an_earlier_version_is_read() {
        let id = EventId::mint(Time::from_micros(1));
        let old = json!({"buses": {bus(1).to_string(): {"seq": 7, "id": id.to_string()}}});
        let read = ObserverPosition::from_json(&old).of(bus(1)).expect("a position");
        assert_eq!((read.seq, read.id), (Seq::from_i64(7), Some(id)));
        assert!(
            read.covers(&row(7, Time::from_micros(1)))
                && !read.covers(&row(8, Time::from_micros(1)))
        );
    }

    #[test]
    fn a_large_seq_does_not_cover_rows_that_were_recorded_later() {
        let (now, minute) = (1_700_000_000_000_000, 60_000_000);
        let mut position = ObserverPosition::start();
        position.advance(
            bus(1),
            &row(1_000_000, Time::from_micros(now)),
            None,
            Time::from_micros(now),
        );
        let reached = position.of(bus(1)).expect("a position");
        assert!(reached.covers(&row(43, Time::from_micros(now))));
        assert!(!reached.covers(&row(43, Time::from_micros(now + 2 * minute))));
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
