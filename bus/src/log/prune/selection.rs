//! Which events a prune removes. Rows of the bus itself are never selected, because replay needs them; a decision goes with
//! its event; sessions on hold stay, and so does the session that was active last, unless it is named.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params_from_iter};
use serde_json::{Map, Value, json};

use super::hold::HeldSessions;
use super::seq_ranges::SeqRanges;
use crate::event::{EventId, Seq, Time};
use crate::log::Query;
use crate::log::read::condition;
use crate::log::schema::IS_REMOVED;

/// What is removed of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Its payload, and that of its decision. The rows stay, with the digests of the payloads.
    Payloads,
    /// Its row, and that of its decision. A hash stays for each range of rows.
    Rows,
}

impl Strength {
    /// The word in records and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payloads => "payloads",
            Self::Rows => "rows",
        }
    }
}

/// What the user wants to have removed.
#[derive(Debug, Clone)]
pub struct PruneRequest {
    /// The conditions: `session`, `agent`, `kind`, and `until` for the age.
    pub query: Query,
    /// What is removed of them.
    pub strength: Strength,
    /// Only events up to this row: those after it were not sent to NATS yet, where a stream holds every row.
    pub up_to: Option<Seq>,
    /// The oldest ones, until the log is not larger than this.
    pub max_bytes: Option<u64>,
    /// Who wants it: `user@host`.
    pub by: String,
    /// What to do while another process prunes, compacts or redacts.
    pub other_run: OtherRun,
}

/// What to do while another process prunes, compacts or redacts: only one does at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OtherRun {
    /// Wait for its end.
    #[default]
    WaitFor,
    /// Leave it to another time.
    GiveUp,
}

impl PruneRequest {
    /// Whether it restricts anything.
    pub(super) const fn is_restricted(&self) -> bool {
        let Query { session, agent, kind, until, .. } = &self.query;
        let by_column = session.is_some() || agent.is_some() || kind.is_some();
        by_column || until.is_some() || self.max_bytes.is_some()
    }

    /// The last row that may go.
    pub(super) fn last(&self) -> i64 {
        self.up_to.map_or(i64::MAX, Seq::as_i64)
    }

    /// What the record says about it.
    pub(super) fn to_json(&self) -> Value {
        let Query { session, agent, kind, until, .. } = &self.query;
        let mut selection = Map::new();
        for (key, value) in [
            ("session", json!(session)),
            ("agent", json!(agent)),
            ("kind", json!(kind)),
            ("before", json!(until.map(|until: Time| until.to_string()))),
            ("max_bytes", json!(self.max_bytes)),
        ] {
            if !value.is_null() {
                selection.insert(key.to_owned(), value);
            }
        }
        Value::Object(selection)
    }
}

/// The events that a request names.
#[derive(Debug, Default)]
pub(super) struct Selected {
    /// Their seqs, without those of their decisions.
    pub(super) events: SeqRanges,
    /// Sessions that would be pruned if they were not held.
    pub(super) held: BTreeSet<String>,
    /// The session that was active last, if it would be pruned otherwise.
    pub(super) latest: Option<String>,
}

impl Selected {
    /// Finds the events. Those that were pruned like that before are not found again.
    pub(super) fn find(
        db: &Connection,
        request: &PruneRequest,
        held: &HeldSessions,
    ) -> rusqlite::Result<Self> {
        let latest = match request.query.session {
            Some(_) => None,
            None => latest_session(db)?,
        };
        let (mut condition, values) = condition(&request.query, &(1..=request.last()), None);
        condition.push_str(" AND agent <> 'hookbus' AND kind <> 'decision'");
        if request.strength == Strength::Payloads {
            condition.push_str(&format!(" AND NOT {IS_REMOVED}"));
        }
        let sql = format!("SELECT seq, session FROM events WHERE {condition} ORDER BY seq");
        let mut statement = db.prepare(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut selected = Self::default();
        while let Some(row) = rows.next()? {
            let session: String = row.get(1)?;
            if held.contains(&session) {
                selected.held.insert(session);
            } else if latest.as_ref() == Some(&session) {
                selected.latest = Some(session);
            } else {
                selected.events.push(row.get(0)?);
            }
        }
        Ok(selected)
    }
}

/// The session of the last event of an agent.
fn latest_session(db: &Connection) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT session FROM events WHERE agent <> 'hookbus' ORDER BY seq DESC LIMIT 1";
    db.query_row(sql, [], |row| row.get(0)).optional()
}

/// The seq of the decision about the event with this id.
pub(super) fn decision_about(db: &Connection, event: EventId) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT seq FROM events WHERE id = ?1")?
        .query_row([event.of_decision().as_bytes()], |row| row.get(0))
        .optional()
}
