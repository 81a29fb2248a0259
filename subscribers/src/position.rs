//! How far an observer got: the last place of each bus, and where that was in the stream.
//!
//! The places per bus decide what has been seen. The place in the stream only says where to look
//! next, and is believed if the stream still holds the same event there: a stream that was emptied
//! or put back to an older state counts anew.

use std::collections::BTreeMap;
use std::time::Duration;

use hookbus::event::{BusId, EventId, Seq, Time};
use hookbus::log::Row;
use serde_json::{Map, Value, json};

/// The clocks of a bus and of an observer may differ by this much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(2);

/// A place in the stream, and what was found there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) place: u64,
    pub(crate) id: EventId,
}

/// The last place that was seen of a bus, and what was found there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) seq: Seq,
    pub(crate) id: Option<EventId>,
}

/// How far an observer got. Everything up to here is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Position {
    buses: BTreeMap<BusId, Place>,
    pub(crate) mark: Option<Mark>,
    /// What is older is not meant, of a bus that nothing was seen of; anything is where none.
    since: Option<Time>,
}

impl Position {
    /// Before everything.
    pub(crate) fn start() -> Self {
        Self::default()
    }

    /// Where a new observer starts, who means what comes from `since` on.
    pub(crate) fn since(since: Time) -> Self {
        Self { since: Some(since), ..Self::default() }
    }

    /// The earliest moment that is meant, where nothing was seen yet.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.since.map(|since| since.before(CLOCKS_DIFFER))
    }

    /// The last place that was seen of a bus.
    pub(crate) fn of(&self, bus: BusId) -> Option<Place> {
        self.buses.get(&bus).copied()
    }

    /// Whether a row was seen, or is older than what is meant.
    pub(crate) fn is_past(&self, bus: BusId, row: &Row) -> bool {
        match (self.of(bus), self.earliest()) {
            (Some(last), _) => row.seq <= last.seq,
            (None, Some(earliest)) => row.at < earliest,
            (None, None) => false,
        }
    }

    /// Everything up to this row is done.
    pub(crate) fn advance(&mut self, bus: BusId, row: &Row, mark: Option<Mark>) {
        if self.of(bus).is_none_or(|last| row.seq > last.seq) {
            self.place(bus, row.seq, Some(row.id));
        }
        self.mark = mark.or(self.mark);
    }

    /// Everything of `bus` up to `seq` is done.
    pub(crate) fn place(&mut self, bus: BusId, seq: Seq, id: Option<EventId>) {
        self.buses.insert(bus, Place { seq, id });
    }

    /// What is done if both of these are right: whichever is further.
    pub(crate) fn further(mut self, other: &Self) -> Self {
        for (bus, place) in &other.buses {
            if self.of(*bus).is_none_or(|own| own.seq < place.seq) {
                self.buses.insert(*bus, *place);
            }
        }
        let later = |mark: &Mark| self.mark.is_none_or(|own| own.place < mark.place);
        self.mark = other.mark.filter(later).or(self.mark);
        self
    }

    /// What is done if each of these is right about a part of the events only: the least of all.
    pub(crate) fn least(all: &[Self]) -> Option<Self> {
        let (first, rest) = all.split_first()?;
        let mut least = first.clone();
        for other in rest {
            least.buses.retain(|bus, place| {
                let Some(theirs) = other.of(*bus) else { return false };
                if theirs.seq < place.seq {
                    *place = theirs;
                }
                true
            });
            least.mark = match (least.mark, other.mark) {
                (Some(own), Some(theirs)) => {
                    Some(if theirs.place < own.place { theirs } else { own })
                }
                (Some(_) | None, Some(_) | None) => None,
            };
        }
        Some(least)
    }

    pub(crate) fn to_json(&self) -> Value {
        let place = |place: &Place| json!({"seq": place.seq.as_i64(), "id": place.id.map(|id| id.to_string())});
        let buses: Map<String, Value> =
            self.buses.iter().map(|(bus, at)| (bus.to_string(), place(at))).collect();
        json!({
            "buses": buses,
            "stream": self.mark.map(|mark| json!({"place": mark.place, "id": mark.id.to_string()})),
            "since": self.since.map(Time::micros),
        })
    }

    /// Reads it back; what cannot be read was never seen, so that nothing is skipped.
    pub(crate) fn from_json(value: &Value) -> Self {
        let id = |value: &Value| value.as_str().and_then(|id| id.parse().ok());
        let place = |value: &Value| {
            Some(Place { seq: Seq::from_i64(value["seq"].as_i64()?), id: id(&value["id"]) })
        };
        let buses = value["buses"].as_object().into_iter().flatten();
        let mark = &value["stream"];
        Self {
            buses: buses.filter_map(|(bus, at)| Some((bus.parse().ok()?, place(at)?))).collect(),
            mark: mark["place"]
                .as_u64()
                .and_then(|place| Some(Mark { place, id: id(&mark["id"])? })),
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

    fn at(places: &[(i64, i64)]) -> Position {
        let mut position = Position::start();
        for (of, seq) in places {
            position.place(bus(*of), Seq::from_i64(*seq), None);
        }
        position
    }

    #[test]
    fn a_position_comes_back_as_it_was() {
        let now = Time::from_micros(1_700_000_000_000_000);
        let mut position = Position::since(now);
        position.place(bus(1), Seq::from_i64(7), Some(EventId::mint(now)));
        position.mark = Some(Mark { place: 12, id: EventId::mint(now) });
        assert_eq!(Position::from_json(&position.to_json()), position);
    }

    #[test]
    fn two_positions_that_are_both_right_reach_as_far_as_either() {
        let both = at(&[(1, 5), (2, 9)]).further(&at(&[(1, 7), (3, 1)]));
        assert_eq!(both, at(&[(1, 7), (2, 9), (3, 1)]));
    }

    #[test]
    fn parts_together_reach_as_far_as_the_last_of_them() {
        let parts = [at(&[(1, 5), (2, 9)]), at(&[(1, 7)])];
        assert_eq!(Position::least(&parts), Some(at(&[(1, 5)])));
        assert_eq!(Position::least(&[]), None);
    }
}
