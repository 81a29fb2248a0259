//! What rows come to. [`Projection::add`] takes the rows of each bus in log order, with what they say, and keeps what
//! changed until it is written; sessions are read from the database when a row needs them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hookbus::event::{BusId, EventId, Kind, Seq};
use hookbus::log::Row;
use rusqlite::Connection;

use super::AnalyticsError;
use super::call::Call;
use super::count_event::{Finished, RowOfSession};
use super::figures::Figures;
use super::load;
use super::pruned::PrunedRows;
use super::reading::{DecisionSaid, RowReader, Said, Wanted};
use super::scope::Scopes;
use super::session::Session;
use super::turn::Turn;
use super::usage::UsageRow;
use crate::position::StreamMark;

/// How far a bus is.
#[derive(Debug, Clone)]
pub(super) struct BusState {
    pub(super) number: i64,
    pub(super) seq: Seq,
    /// The id of the row at `seq`.
    pub(super) row: EventId,
    pub(super) host: String,
    pub(super) is_changed: bool,
}

/// A decision with its verdicts, to be written.
#[derive(Debug)]
pub(super) struct DecisionRow {
    pub(super) bus: i64,
    pub(super) seq: i64,
    pub(super) cause: Option<i64>,
    pub(super) scope: i64,
    pub(super) session: String,
    pub(super) time: i64,
    pub(super) tool: Option<String>,
    pub(super) tool_class: Option<String>,
    /// None if the row is not one that this version can read.
    pub(super) decision: Option<DecisionSaid>,
}

/// Whether a row was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It was.
    Counted,
    /// It was counted before.
    Known,
}

/// What rows come to, and what of it is not written yet.
#[derive(Debug, Default)]
pub(super) struct Projection {
    pub(super) buses: HashMap<BusId, BusState>,
    pub(super) stream: Option<StreamMark>,
    pub(super) scopes: Scopes,
    pub(super) sessions: HashMap<(i64, String), Session>,
    pub(super) figures: Figures,
    pub(super) finished_calls: Vec<Call>,
    pub(super) finished_turns: Vec<Turn>,
    pub(super) finished_usage: Vec<UsageRow>,
    pub(super) decisions: Vec<DecisionRow>,
    /// Rows whose payloads were removed from the log, each with the number of its bus.
    pub(super) pruned: Vec<(i64, PrunedRows)>,
    /// Reads rows that were not read before.
    pub(super) reader: RowReader,
}

impl Projection {
    /// Counts a row, unless that was done before. `said` is what it says; none if it is still to be read.
    pub(super) fn add(
        &mut self,
        db: &Connection,
        bus: BusId,
        row: &Row,
        said: Option<Said>,
    ) -> Result<Added, AnalyticsError> {
        let next = i64::try_from(self.buses.len()).unwrap_or(i64::MAX).saturating_add(1);
        let state = match self.buses.entry(bus) {
            Entry::Occupied(known) => {
                if row.seq <= known.get().seq {
                    return Ok(Added::Known);
                }
                known.into_mut()
            }
            Entry::Vacant(new) => new.insert(BusState {
                number: next,
                seq: row.seq,
                row: row.id,
                host: String::new(),
                is_changed: true,
            }),
        };
        (state.seq, state.row, state.is_changed) = (row.seq, row.id, true);
        if let Some(identity) = &row.identity
            && identity.host != state.host
        {
            state.host.clone_from(&identity.host);
        }
        let kind = Kind::parse(&row.kind).unwrap_or(Kind::Other);
        if kind.is_of_bus() {
            let wanted = Wanted { project: false, model: false };
            if let Said::Bus(bus) = said.unwrap_or_else(|| self.reader.read(row, kind, wanted)) {
                state.host = bus.host.unwrap_or_else(|| std::mem::take(&mut state.host));
                self.pruned.extend(bus.pruned.into_iter().map(|rows| (state.number, rows)));
            }
            return Ok(Added::Counted);
        }
        let session = session(&mut self.sessions, db, state.number, &row.session)?;
        let wanted =
            Wanted { project: session.project.is_empty(), model: session.model.is_empty() };
        let said = said.unwrap_or_else(|| self.reader.read(row, kind, wanted));
        let row = RowOfSession { row, kind, bus: state.number, host: &state.host, session };
        match said {
            Said::Bus(_) => {}
            Said::Decision(decision) => {
                self.decisions.push(row.decision(decision, &mut self.scopes, &mut self.figures));
            }
            Said::Event(said) => {
                let mut finished = Finished {
                    calls: &mut self.finished_calls,
                    turns: &mut self.finished_turns,
                    usage: &mut self.finished_usage,
                    reader: &mut self.reader,
                };
                row.event(said, &mut self.scopes, &mut self.figures, &mut finished);
            }
        }
        Ok(Added::Counted)
    }
}

fn session<'a>(
    sessions: &'a mut HashMap<(i64, String), Session>,
    db: &Connection,
    bus: i64,
    name: &str,
) -> Result<&'a mut Session, AnalyticsError> {
    match sessions.entry((bus, name.to_owned())) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(new) => {
            let found = load::session(db, bus, name)?;
            let fresh = || Session { bus, name: name.to_owned(), ..Session::default() };
            Ok(new.insert(found.unwrap_or_else(fresh)))
        }
    }
}
