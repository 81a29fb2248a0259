//! Watches sessions go by: which have no end, which hold events that are older than the one before.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hookbus::event::Seq;
use hookbus::log::Case;

/// So many are named; the rest is counted.
const NAMED: usize = 5;

/// What has to be remembered of one event.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    session: u64,
    at: i64,
    seq: Seq,
    edge: Edge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Start,
    End,
    Inside,
}

/// Keeps a few bytes for each session.
#[derive(Debug, Default)]
pub struct SessionWatch {
    sessions: HashMap<u64, Seen>,
    out_of_order: u64,
    first_out_of_order: Option<Seq>,
}

#[derive(Debug)]
struct Seen {
    last: i64,
    /// Where it began, while it goes on.
    open: Option<Seq>,
}

impl Mark {
    pub(crate) fn of(case: &Case) -> Self {
        let mut hasher = DefaultHasher::new();
        case.session.hash(&mut hasher);
        let edge = match case.kind.as_str() {
            "session.start" => Edge::Start,
            "session.end" => Edge::End,
            _ => Edge::Inside,
        };
        Self { session: hasher.finish(), at: case.at.micros(), seq: case.seq, edge }
    }
}

impl SessionWatch {
    /// The next event, in recorded order.
    pub fn pass(&mut self, mark: Mark) {
        let seen = self.sessions.entry(mark.session).or_insert(Seen { last: mark.at, open: None });
        if mark.at < seen.last {
            self.out_of_order += 1;
            self.first_out_of_order.get_or_insert(mark.seq);
        }
        seen.last = seen.last.max(mark.at);
        match mark.edge {
            Edge::Start => seen.open = seen.open.or(Some(mark.seq)),
            Edge::End => seen.open = None,
            Edge::Inside => {}
        }
    }

    /// What has to be said at the end.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(first) = self.first_out_of_order {
            remarks.push(format!(
                "{} older than the event before it in its session (the first at {first}): replayed \
                 in the order of the log",
                if self.out_of_order == 1 {
                    "1 event is".to_owned()
                } else {
                    format!("{} events are", self.out_of_order)
                },
            ));
        }
        let mut open: Vec<i64> =
            self.sessions.values().filter_map(|seen| Some(seen.open?.as_i64())).collect();
        open.sort_unstable();
        if let Some(first) = open.first() {
            let which = match open.len() {
                1 => format!("the session that begins at {first} has no end"),
                many => {
                    let named: Vec<String> =
                        open.iter().take(NAMED).map(ToString::to_string).collect();
                    let more = if many > NAMED { ", …" } else { "" };
                    format!(
                        "{many} sessions have no end (they begin at {}{more})",
                        named.join(", ")
                    )
                }
            };
            remarks.push(format!("{which}: replayed as far as it was recorded"));
        }
        remarks
    }
}
