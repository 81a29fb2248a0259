//! Legal hold: sessions that are never pruned, until the user releases them. Both are rows of the log, so that they cannot
//! be changed without a trace.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use crate::event::{Kind, Time};
use crate::log::bus_row::{BUS_AGENT, SessionHold};
use crate::log::payload;

/// A session that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Which session, why, and who held it.
    pub hold: SessionHold,
    /// Since when.
    pub since: Time,
}

/// The held sessions, as they are known while a prune runs. Sessions that are held meanwhile are added; one that is
/// released meanwhile stays until the next run.
#[derive(Debug)]
pub(in crate::log) struct HeldSessions {
    sessions: BTreeSet<String>,
    /// The rows up to this one were looked at.
    seen_up_to: i64,
}

impl HeldSessions {
    pub(in crate::log) fn read(db: &Connection) -> rusqlite::Result<Self> {
        // Before the holds: a row that is appended in between is looked at twice.
        let seen_up_to = head(db)?;
        let sessions = holds(db)?.into_iter().map(|it| it.hold.session).collect();
        Ok(Self { sessions, seen_up_to })
    }

    /// Adds the sessions that were held since. Only the rows since then are read: agents may be waiting.
    pub(in crate::log) fn update(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let now = head(db)?;
        let mut statement = db.prepare_cached(&format!(
            "SELECT payload FROM events WHERE seq > ?1 AND +session = '' AND agent = '{BUS_AGENT}' \
             AND kind = 'session.held'"
        ))?;
        let mut rows = statement.query([self.seen_up_to])?;
        while let Some(row) = rows.next()? {
            let json = serde_json::from_slice(&payload::from_sql(row.get_ref(0)?)).ok();
            let hold = json.and_then(|json| SessionHold::from_json(&json));
            self.sessions.extend(hold.map(|hold| hold.session));
        }
        self.seen_up_to = now;
        Ok(())
    }

    pub(in crate::log) fn contains(&self, session: &str) -> bool {
        self.sessions.contains(session)
    }
}

fn head(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))
}

/// The sessions that are held, by id.
pub(in crate::log) fn holds(db: &Connection) -> rusqlite::Result<Vec<Hold>> {
    // Rows of the bus itself have no session, and sessions are indexed. By time: a row from the spool can come late.
    let mut statement = db.prepare_cached(&format!(
        "SELECT kind, time, payload FROM events WHERE session = '' AND agent = '{BUS_AGENT}' \
         AND kind IN ('session.held', 'session.released') ORDER BY time, seq"
    ))?;
    let mut rows = statement.query([])?;
    let mut held = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let json = serde_json::from_slice(&payload::from_sql(row.get_ref(2)?)).ok();
        let Some(hold) = json.and_then(|json| SessionHold::from_json(&json)) else { continue };
        if row.get::<_, String>(0)? == Kind::SessionHeld.as_str() {
            let since = Time::from_micros(row.get(1)?);
            held.entry(hold.session.clone()).or_insert(Hold { hold, since });
        } else {
            held.remove(&hold.session);
        }
    }
    Ok(held.into_values().collect())
}
