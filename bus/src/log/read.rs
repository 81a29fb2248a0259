//! Asking the log. Readers hold no long transactions: they page by `seq`, so that the writer can
//! always tidy up behind them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::append::last_hooks;
use super::row::{HooksDraft, Row};
use super::{LogPath, OpenError, ReadError, open, payload};
use crate::event::{BusId, EventId, Seq, Time};

const COLUMNS: &str = "seq, id, time, agent, session, turn, name, kind, tool, tool_class, cause, \
                       context, payload, hash";

/// How many rows are read in one go.
const PAGE: usize = 500;

/// Which rows to read; everything where nothing is set.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// This row only.
    pub seq: Option<Seq>,
    /// Of this session (a whole id).
    pub session: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// Of this kind; one that ends in `*` stands for a family.
    pub kind: Option<String>,
    /// Of this event name; one that ends in `*` stands for a family.
    pub name: Option<String>,
    /// About this tool or tool class.
    pub tool: Option<String>,
    /// Not before.
    pub since: Option<Time>,
    /// Before.
    pub until: Option<Time>,
}

/// One session, as `hookbus sessions` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The agent's id for it; empty for events without one.
    pub session: String,
    /// Whose session it is.
    pub agent: String,
    /// Its first event.
    pub first: Time,
    /// Its last event.
    pub last: Time,
    /// How many events, decisions not counted.
    pub events: i64,
    /// How many of them were blocked or stopped.
    pub blocked: i64,
}

/// A connection that only reads.
#[derive(Debug)]
pub struct LogReader {
    db: Connection,
}

impl LogReader {
    /// Opens the log at `log`.
    pub fn open(log: &LogPath) -> Result<Self, OpenError> {
        Ok(Self { db: open::to_read(log)? })
    }

    /// The bus that this log belongs to.
    pub fn bus(&self) -> Result<BusId, ReadError> {
        Ok(open::bus_id(&self.db)?)
    }

    /// The last place in the log and when that was.
    pub fn head(&self) -> Result<Option<(Seq, Time)>, ReadError> {
        Ok(self
            .db
            .query_row("SELECT seq, time FROM events ORDER BY seq DESC LIMIT 1", [], |row| {
                Ok((Seq::from_i64(row.get(0)?), Time::from_micros(row.get(1)?)))
            })
            .optional()?)
    }

    /// The hooks that were in force last.
    pub fn last_hooks(&self) -> Result<Option<HooksDraft>, ReadError> {
        Ok(last_hooks(&self.db)?)
    }

    /// Every row that fits, in log order, one at a time; stops where `each` fails.
    pub fn each<E: From<ReadError>>(
        &self,
        query: &Query,
        after: Option<Seq>,
        mut each: impl FnMut(Row) -> Result<(), E>,
    ) -> Result<Option<Seq>, E> {
        let mut last = after;
        loop {
            let page = self.page(query, last)?;
            let full = page.len() == PAGE;
            for row in page {
                last = Some(row.seq);
                each(row)?;
            }
            if !full {
                return Ok(last);
            }
        }
    }

    /// The last `count` rows that fit, in log order.
    pub fn last(&self, query: &Query, count: usize) -> Result<Vec<Row>, ReadError> {
        let (condition, values) = condition(query, None);
        let sql = format!(
            "SELECT {COLUMNS} FROM events WHERE {condition} ORDER BY seq DESC LIMIT {count}"
        );
        let mut rows = self.rows(&sql, values)?;
        rows.reverse();
        Ok(rows)
    }

    fn page(&self, query: &Query, after: Option<Seq>) -> Result<Vec<Row>, ReadError> {
        let (condition, values) = condition(query, after);
        let sql =
            format!("SELECT {COLUMNS} FROM events WHERE {condition} ORDER BY seq LIMIT {PAGE}");
        self.rows(&sql, values)
    }

    fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, ReadError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params_from_iter(values), read_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Every session, the latest last.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>, ReadError> {
        // Steps from session to session in the index instead of reading all of it.
        let mut statement = self.db.prepare(
            "WITH RECURSIVE each_session (session) AS ( \
                 SELECT min(session) FROM events \
                 UNION ALL \
                 SELECT (SELECT min(session) FROM events WHERE session > each_session.session) \
                 FROM each_session WHERE session IS NOT NULL \
             ) \
             SELECT s.session, e.agent, e.time, \
                    (SELECT time FROM events WHERE session = s.session ORDER BY seq DESC LIMIT 1), \
                    (SELECT count(*) FROM events WHERE session = s.session AND kind <> 'decision'), \
                    (SELECT count(*) FROM events WHERE session = s.session AND kind = 'decision' \
                       AND payload ->> '$.outcome' IN ('block', 'stop')) \
             FROM each_session s JOIN events e ON e.seq = \
                    (SELECT min(seq) FROM events WHERE session = s.session AND agent <> 'hookbus') \
             WHERE s.session IS NOT NULL ORDER BY 4",
        )?;
        let sessions = statement.query_map([], |row| {
            Ok(SessionSummary {
                session: row.get(0)?,
                agent: row.get(1)?,
                first: Time::from_micros(row.get(2)?),
                last: Time::from_micros(row.get(3)?),
                events: row.get(4)?,
                blocked: row.get(5)?,
            })
        })?;
        Ok(sessions.collect::<Result<_, _>>()?)
    }

    /// The whole id of the session that starts with `prefix`.
    pub fn find_session(&self, prefix: &str) -> Result<String, ReadError> {
        let mut candidates = Vec::new();
        let mut statement = self.db.prepare(
            "SELECT min(session) FROM events WHERE session > ?1 OR (session = ?1 AND ?2)",
        )?;
        let mut from = (prefix.to_owned(), true);
        while let Some(next) =
            statement.query_row((&from.0, from.1), |row| row.get::<_, Option<String>>(0))?
        {
            if !next.starts_with(prefix) {
                break;
            }
            if next == prefix {
                return Ok(next); // whole ids are never ambiguous
            }
            candidates.push(next.clone());
            if candidates.len() > 5 {
                break;
            }
            from = (next, false);
        }
        match candidates.as_slice() {
            [] => Err(ReadError::NoSession(prefix.to_owned())),
            [only] => Ok(only.clone()),
            [..] => Err(ReadError::Ambiguous { prefix: prefix.to_owned(), candidates }),
        }
    }
}

/// The rows of `query` after `after`, as SQL.
fn condition(query: &Query, after: Option<Seq>) -> (String, Vec<Value>) {
    let mut parts = vec!["seq > ?"];
    let mut values = vec![Value::Integer(after.map_or(0, Seq::as_i64))];
    let mut add = |part, value| {
        parts.push(part);
        values.push(value);
    };
    let text = |text: &String| Value::Text(text.clone());
    // A name is turned into a pattern where `*` is the only special character.
    let family = |text: &String| Value::Text(text.replace('[', "[[]").replace('?', "[?]"));
    if let Some(seq) = query.seq {
        add("seq = ?", Value::Integer(seq.as_i64()));
    }
    if let Some(session) = &query.session {
        add("session = ?", text(session));
    }
    if let Some(agent) = &query.agent {
        add("agent = ?", text(agent));
    }
    if let Some(kind) = &query.kind {
        add("kind GLOB ?", family(kind));
    }
    if let Some(name) = &query.name {
        add("name GLOB ?", family(name));
    }
    if let Some(tool) = &query.tool {
        add("? IN (tool, tool_class)", text(tool));
    }
    // Ids sort by the time they were minted, so the index on them answers for time too.
    if let Some(since) = query.since {
        add("id >= ?", Value::Blob(EventId::lower_bound(since).as_bytes().to_vec()));
    }
    if let Some(until) = query.until {
        add("id < ?", Value::Blob(EventId::lower_bound(until).as_bytes().to_vec()));
    }
    (parts.join(" AND "), values)
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        seq: Seq::from_i64(row.get(0)?),
        id: EventId::from_bytes(row.get(1)?),
        at: Time::from_micros(row.get(2)?),
        agent: row.get(3)?,
        session: row.get(4)?,
        turn: row.get(5)?,
        name: row.get(6)?,
        kind: row.get(7)?,
        tool: row.get(8)?,
        tool_class: row.get(9)?,
        cause: row.get::<_, Option<i64>>(10)?.map(Seq::from_i64),
        context: row.get(11)?,
        payload: payload::from_sql(row.get_ref(12)?),
        hash: row.get(13)?,
    })
}
