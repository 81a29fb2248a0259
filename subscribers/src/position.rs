//! How far an observer got: the last place of each bus, and where that was in the stream.
//!
//! The places per bus decide what has been seen. The place in the stream only says where to look
//! next, and is believed if the stream still holds the same event there: a stream that was emptied
//! or put back to an older state counts anew.

use std::collections::BTreeMap;

use hookbus::event::{BusId, EventId, Seq, Time};
use serde_json::{Map, Value, json};

/// A place in the stream, and what was found there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) place: u64,
    pub(crate) id: EventId,
}

/// How far an observer got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Position {
    buses: BTreeMap<BusId, Seq>,
    pub(crate) mark: Option<Mark>,
    /// Where a new observer starts in a stream it has seen nothing of; its beginning where none.
    pub(crate) since: Option<Time>,
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

    /// The last place that was seen of a bus.
    pub(crate) fn of(&self, bus: BusId) -> Option<Seq> {
        self.buses.get(&bus).copied()
    }

    /// Whether the row at `seq` was seen.
    pub(crate) fn has_seen(&self, bus: BusId, seq: Seq) -> bool {
        self.of(bus).is_some_and(|last| seq <= last)
    }

    /// Everything up to here is done.
    pub(crate) fn advance(&mut self, bus: BusId, seq: Seq, mark: Option<Mark>) {
        if !self.has_seen(bus, seq) {
            self.buses.insert(bus, seq);
        }
        self.mark = mark.or(self.mark);
    }

    pub(crate) fn to_json(&self) -> Value {
        let buses: Map<String, Value> =
            self.buses.iter().map(|(bus, seq)| (bus.to_string(), json!(seq.as_i64()))).collect();
        json!({
            "buses": buses,
            "stream": self.mark.map(|mark| json!({"place": mark.place, "id": mark.id.to_string()})),
            "since": self.since.map(Time::micros),
        })
    }

    /// Reads it back; what cannot be read was never seen, so that nothing is skipped.
    pub(crate) fn from_json(value: &Value) -> Self {
        let buses = value["buses"].as_object().into_iter().flatten();
        let mark = &value["stream"];
        Self {
            buses: buses
                .filter_map(|(bus, seq)| Some((bus.parse().ok()?, Seq::from_i64(seq.as_i64()?))))
                .collect(),
            mark: mark["place"]
                .as_u64()
                .and_then(|place| Some(Mark { place, id: mark["id"].as_str()?.parse().ok()? })),
            since: value["since"].as_i64().map(Time::from_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_as_it_was() {
        let at = Time::from_micros(1_700_000_000_000_000);
        let mut position = Position { since: Some(at), ..Position::start() };
        let mark = Mark { place: 12, id: EventId::mint(at) };
        position.advance(BusId::mint(at), Seq::from_i64(7), Some(mark));
        assert_eq!(Position::from_json(&position.to_json()), position);
    }

    #[test]
    fn it_never_goes_back() {
        let bus = BusId::mint(Time::from_micros(1));
        let mut position = Position::start();
        position.advance(bus, Seq::from_i64(7), None);
        position.advance(bus, Seq::from_i64(3), None);
        assert!(position.has_seen(bus, Seq::from_i64(7)));
        assert!(!position.has_seen(bus, Seq::from_i64(8)));
    }
}
