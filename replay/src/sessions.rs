//! Checks the recorded sessions: which have no end, and which hold events older than the one before.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hookbus::event::Seq;
use hookbus::log::RecordedEvent;

/// How many sessions without an end are named; the rest is counted.
const MOST_NAMED: usize = 5;

/// What the checks need of one event.
#[derive(Debug, Clone, Copy)]
pub struct SessionMark {
    /// Hash of the session id.
    session: u64,
    at: i64,
    seq: Seq,
    boundary: Boundary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Boundary {
    Start,
    End,
    Inside,
}

/// The checks; keeps a few bytes for each session.
#[derive(Debug, Default)]
pub struct SessionChecks {
    sessions: HashMap<u64, SessionState>,
    out_of_order: u64,
    first_out_of_order: Option<Seq>,
}

#[derive(Debug)]
struct SessionState {
    latest: i64,
    /// Position of the session's start, until it ends.
    started_at: Option<Seq>,
}

impl SessionMark {
    pub(crate) fn new(row: &RecordedEvent) -> Self {
        let mut hasher = DefaultHasher::new();
        row.session.hash(&mut hasher);
        let boundary = match row.kind.as_str() {
            "session.start" => Boundary::Start,
            "session.end" => Boundary::End,
            _ => Boundary::Inside,
        };
        Self { session: hasher.finish(), at: row.at.micros(), seq: row.seq, boundary }
    }
}

impl SessionChecks {
    /// Adds the next event in log order.
    pub fn add(&mut self, mark: SessionMark) {
        let state = SessionState { latest: mark.at, started_at: None };
        let state = self.sessions.entry(mark.session).or_insert(state);
        if mark.at < state.latest {
            self.out_of_order += 1;
            self.first_out_of_order.get_or_insert(mark.seq);
        }
        state.latest = state.latest.max(mark.at);
        match mark.boundary {
            Boundary::Start => state.started_at = state.started_at.or(Some(mark.seq)),
            Boundary::End => state.started_at = None,
            Boundary::Inside => {}
        }
    }

    /// Remarks for the report, after the last event.
    pub fn remarks(&self) -> Vec<String> {
        self.order_remark().into_iter().chain(self.end_remark()).collect()
    }

    fn order_remark(&self) -> Option<String> {
        let first = self.first_out_of_order?;
        let events = match self.out_of_order {
            1 => "1 event is".to_owned(),
            many => format!("{many} events are"),
        };
        Some(format!(
            "{events} older than the event before it in its session (the first at {first}): replayed \
             in the order of the log"
        ))
    }

    fn end_remark(&self) -> Option<String> {
        let open = self.sessions.values().filter_map(|state| Some(state.started_at?.as_i64()));
        let mut open: Vec<i64> = open.collect();
        open.sort_unstable();
        let first = open.first()?;
        let sessions = match open.len() {
            1 => format!("the session that starts at {first} has no end"),
            many => {
                let named: Vec<String> =
                    open.iter().take(MOST_NAMED).map(ToString::to_string).collect();
                let more = if many > MOST_NAMED { ", …" } else { "" };
                format!("{many} sessions have no end (they start at {}{more})", named.join(", "))
            }
        };
        Some(format!("{sessions}: replayed up to the last recorded event"))
    }
}
