//! Queries on the log. Readers page by `seq` and hold no long transactions, which would keep the
//! writer from checkpointing.

use std::ops::RangeInclusive;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::append::{last_hooks, last_late_hooks};
use super::bus_row::{BUS_AGENT, BusRow, RecordedApproval};
use super::identity::KnownIdentities;
use super::payload::{Change, PayloadReader, ReadParts};
use super::prune::{self, Hold};
use super::replay_reader::ReplayReader;
use super::row::{HooksSnapshot, Origin, Row};
use super::{LogPath, OpenError, ReadError, open, schema};
use crate::event::{BusId, BusIdentity, EventId, Kind, Seq, Time};
use crate::json::read_leniently;

const COLUMNS: &str = "seq, id, time, agent, session, turn, name, kind, tool, tool_class, cause, \
                       context, payload, hash, {packed}, {digest}, {redaction}";

/// The origin of each row, and the table. Only an archive has origins.
const OWN_ROWS: &str = "NULL, NULL, NULL FROM events";
const ARCHIVED_ROWS: &str =
    "origins.bus, bus_seq, bus_cause FROM events LEFT JOIN origins USING (seq)";

/// How many rows are read in one query.
const PAGE: usize = 500;

/// How many of the last rows are asked who recorded them.
const LATEST: usize = 20;

/// Which rows to read. A field that is not set does not restrict.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Only the row with this seq.
    pub seq: Option<Seq>,
    /// Rows of this session (a complete id).
    pub session: Option<String>,
    /// Rows of this bus, in an archive.
    pub bus: Option<BusId>,
    /// Rows of this agent.
    pub agent: Option<String>,
    /// Rows of this kind; `*` matches any characters.
    pub kind: Option<String>,
    /// Rows with this event name; `*` matches any characters.
    pub name: Option<String>,
    /// Rows with this tool or tool class.
    pub tool: Option<String>,
    /// Rows at or after this time.
    pub since: Option<Time>,
    /// Rows before this time.
    pub until: Option<Time>,
}

/// One session, as `hookbus sessions` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The agent's session id; empty for events that have none.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The time of its first row.
    pub first: Time,
    /// The time of its last row.
    pub last: Time,
    /// The number of events, without decisions.
    pub events: i64,
    /// How many events were blocked or stopped.
    pub blocked: i64,
    /// The bus that recorded its first row, if this log is an archive.
    pub bus: Option<BusId>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {seq} is damaged ({why})")]
pub struct DamagedRow {
    /// Its seq.
    pub seq: Seq,
    /// What is wrong with it.
    pub why: String,
}

/// A connection that only reads.
#[derive(Debug)]
pub struct LogReader {
    pub(super) db: Connection,
    is_archive: bool,
    /// The column of packed payloads.
    packed: String,
    /// The column with the digests of removed payloads.
    digest: String,
    /// The columns about redaction.
    redaction: String,
    /// What is not NULL if the payload was removed.
    removed: String,
    read_parts: ReadParts,
    identities: KnownIdentities,
}

impl LogReader {
    /// Opens the log at `log`.
    pub fn open(log: &LogPath) -> Result<Self, OpenError> {
        let db = open::for_reading(log)?;
        let is_archive = schema::is_archive(&db)?;
        let packed = schema::packed_column(&db, "events")?;
        let digest = schema::digest_column(&db, "events")?;
        let redaction = schema::redaction_columns(&db, "events")?;
        let removed = schema::removed_expression(&db, "events")?;
        let (read_parts, identities) = (ReadParts::default(), KnownIdentities::new(&db)?);
        Ok(Self { db, is_archive, packed, digest, redaction, removed, read_parts, identities })
    }

    /// The column of packed payloads.
    pub(super) fn packed(&self) -> &str {
        &self.packed
    }

    /// What is not NULL if the payload was removed.
    pub(super) fn removed(&self) -> &str {
        &self.removed
    }

    /// The columns that [`read_row`] reads, and the tables that have them.
    fn columns(&self) -> String {
        let columns = COLUMNS
            .replace("{packed}", &self.packed)
            .replace("{digest}", &self.digest)
            .replace("{redaction}", &self.redaction);
        let from = if self.is_archive { ARCHIVED_ROWS } else { OWN_ROWS };
        format!("{columns}, {from}")
    }

    /// Reads payloads.
    pub(super) const fn payloads(&self) -> PayloadReader<'_> {
        PayloadReader::new(&self.db, &self.read_parts)
    }

    /// The buses whose rows the log holds, with the last seq of each.
    pub fn buses(&self) -> Result<Vec<(BusId, Option<Seq>)>, ReadError> {
        if !self.is_archive {
            return Ok(vec![(self.bus()?, self.head()?.map(|(seq, _)| seq))]);
        }
        let mut statement =
            self.db.prepare("SELECT bus, max(bus_seq) FROM origins GROUP BY bus")?;
        let buses = statement.query_map([], |row| {
            Ok((BusId::from_bytes(row.get(0)?), row.get::<_, Option<i64>>(1)?.map(Seq::from_i64)))
        })?;
        Ok(buses.collect::<Result<_, _>>()?)
    }

    /// Who recorded the last rows of `bus`; none if none of the last few tells.
    pub fn identity_of(&self, bus: BusId) -> Result<Option<Arc<BusIdentity>>, ReadError> {
        // By the place there: rows can come to an archive in another order.
        let rows = if self.is_archive {
            format!(
                "SELECT {} WHERE seq IN (SELECT seq FROM origins WHERE bus = ?1 ORDER BY bus_seq DESC \
                 LIMIT {LATEST}) ORDER BY bus_seq DESC",
                self.columns()
            )
        } else {
            format!(
                "SELECT {} WHERE ?1 IS NOT NULL ORDER BY seq DESC LIMIT {LATEST}",
                self.columns()
            )
        };
        let rows = self.rows(&rows, vec![Value::Blob(bus.as_bytes().to_vec())])?;
        Ok(rows.into_iter().find_map(|row| row.identity))
    }

    /// Whether the log is an archive of other buses.
    pub const fn is_archive(&self) -> bool {
        self.is_archive
    }

    /// The bus that this log belongs to.
    pub fn bus(&self) -> Result<BusId, ReadError> {
        Ok(open::bus_id(&self.db)?)
    }

    /// The seq and the time of the last row.
    pub fn head(&self) -> Result<Option<(Seq, Time)>, ReadError> {
        Ok(self
            .db
            .query_row("SELECT seq, time FROM events ORDER BY seq DESC LIMIT 1", [], |row| {
                Ok((Seq::from_i64(row.get(0)?), Time::from_micros(row.get(1)?)))
            })
            .optional()?)
    }

    /// The time of the first row after `seq`, or of the first of all.
    pub fn time_after(&self, seq: Option<Seq>) -> Result<Option<Time>, ReadError> {
        let next = "SELECT time FROM events WHERE seq > ?1 ORDER BY seq LIMIT 1";
        let row = self.db.query_row(next, [seq.map_or(0, Seq::as_i64)], |row| row.get(0));
        Ok(row.optional()?.map(Time::from_micros))
    }

    /// The seq of the row with this id.
    pub fn seq_of(&self, id: EventId) -> Result<Option<Seq>, ReadError> {
        self.seq_by_id("SELECT seq FROM events WHERE id = ?1", id)
    }

    /// The lowest seq of a row with a later id, whether or not the log holds this id. Ids sort by
    /// time.
    pub fn first_after(&self, id: EventId) -> Result<Option<Seq>, ReadError> {
        self.seq_by_id("SELECT min(seq) FROM events WHERE id > ?1", id.of_decision())
    }

    fn seq_by_id(&self, sql: &str, id: EventId) -> Result<Option<Seq>, ReadError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let found = statement.query_row([id.as_bytes()], |row| row.get::<_, Option<i64>>(0));
        Ok(found.optional()?.flatten().map(Seq::from_i64))
    }

    /// The hooks recorded last for the user's own file, or for this project's file.
    pub fn last_hooks(&self, project: Option<&str>) -> Result<Option<HooksSnapshot>, ReadError> {
        match last_hooks(&self.db, project)? {
            Some(hooks) => Ok(Some(hooks)),
            None => Ok(last_late_hooks(&self.db, project)?),
        }
    }

    /// The last `count` rows with the user's own hooks, in log order.
    pub fn user_hooks(&self, count: usize) -> Result<Vec<Row>, ReadError> {
        let mut rows = self.rows(
            &format!(
                "SELECT {} WHERE kind = 'hooks.loaded' AND context IS NULL \
                 ORDER BY seq DESC LIMIT {count}",
                self.columns()
            ),
            Vec::new(),
        )?;
        rows.reverse();
        Ok(rows)
    }

    /// Every approval and every revocation, by its own time: a row from the spool can come after later ones.
    pub fn approvals(&self) -> Result<Vec<BusRow>, ReadError> {
        // Rows of the bus itself have no session, and sessions are indexed.
        let rows = self.rows(
            &format!(
                "SELECT {} WHERE session = '' AND agent = '{BUS_AGENT}' \
                 AND kind IN ('hooks.approved', 'hooks.revoked') ORDER BY time, seq",
                self.columns()
            ),
            Vec::new(),
        )?;
        let approval = |row: &Row| {
            let approval = RecordedApproval::from_json(&row.payload_json())?;
            Some(if row.kind == Kind::HooksApproved.as_str() {
                BusRow::HooksApproved(approval)
            } else {
                BusRow::HooksRevoked(approval)
            })
        };
        Ok(rows.iter().filter_map(approval).collect())
    }

    /// The sessions that are held.
    pub fn holds(&self) -> Result<Vec<Hold>, ReadError> {
        Ok(prune::holds(&self.db)?)
    }

    /// Whether the row with this seq was removed on purpose.
    pub fn is_removed(&self, seq: Seq) -> Result<bool, ReadError> {
        if !schema::has_removals(&self.db)? {
            return Ok(false);
        }
        let sql = "SELECT last FROM removed WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
        let mut statement = self.db.prepare_cached(sql)?;
        let last = statement.query_row([seq.as_i64()], |row| row.get::<_, i64>(0)).optional()?;
        Ok(last.is_some_and(|last| seq.as_i64() <= last))
    }

    /// Calls `each` with every matching row after `after`, in log order, until it fails. Returns the
    /// seq up to which rows were read, to continue from.
    pub fn each<E: From<ReadError>>(
        &self,
        query: &Query,
        after: Option<Seq>,
        mut each: impl FnMut(Row) -> Result<(), E>,
    ) -> Result<Option<Seq>, E> {
        let head = self.head()?.map(|(seq, _)| seq);
        let range = self.seq_range(query)?;
        let mut last = after;
        loop {
            let page = self.page(query, &range, last, Order::OldestFirst, PAGE)?;
            let full = page.len() == PAGE;
            for row in page {
                last = Some(row.seq);
                each(row)?;
            }
            if !full {
                return Ok(last.max(head));
            }
        }
    }

    /// The next `count` matching rows after `after`, in log order.
    pub fn after(
        &self,
        query: &Query,
        after: Option<Seq>,
        count: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let range = self.seq_range(query)?;
        self.page(query, &range, after, Order::OldestFirst, count)
    }

    /// Like [`after`](Self::after), but a damaged row is returned as an error of its own.
    pub fn after_with_damage(
        &self,
        query: &Query,
        after: Option<Seq>,
        count: usize,
    ) -> Result<Vec<Result<Row, DamagedRow>>, ReadError> {
        let range = self.seq_range(query)?;
        let (sql, values) = self.page_sql(query, &range, after, Order::OldestFirst, count);
        let mut statement = self.db.prepare_cached(&sql)?;
        let payloads = self.payloads();
        let rows = statement.query_map(params_from_iter(values), |row| {
            let seq = Seq::from_i64(row.get(0)?);
            let row = read_row(row, &payloads).and_then(|row| self.identified(row));
            Ok(row.map_err(|error| DamagedRow { seq, why: error.to_string() }))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The last `count` matching rows, in log order.
    pub fn last(&self, query: &Query, count: usize) -> Result<Vec<Row>, ReadError> {
        let range = self.seq_range(query)?;
        let mut rows = self.page(query, &range, None, Order::LatestFirst, count)?;
        rows.reverse();
        Ok(rows)
    }

    /// The range of seqs that holds every row in the query's time range, found in the index of ids,
    /// which sort by time. Rows that were appended late make the range larger, never smaller.
    pub(super) fn seq_range(&self, query: &Query) -> Result<RangeInclusive<i64>, ReadError> {
        if query.since.is_none() && query.until.is_none() {
            return Ok(1..=i64::MAX);
        }
        let from = query.since.map_or([0; 16], |since| *EventId::lower_bound(since).as_bytes());
        let to = query.until.map_or([255; 16], |until| *EventId::lower_bound(until).as_bytes());
        let (lowest, highest): (Option<i64>, Option<i64>) = self.db.query_row(
            "SELECT min(seq), max(seq) FROM events INDEXED BY events_by_id WHERE id >= ?1 AND id < ?2",
            (from, to),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        // No row in the time range: an empty range of seqs.
        Ok(lowest.unwrap_or(1)..=highest.unwrap_or(0))
    }

    fn page(
        &self,
        query: &Query,
        range: &RangeInclusive<i64>,
        after: Option<Seq>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let (sql, values) = self.page_sql(query, range, after, order, limit);
        self.rows(&sql, values)
    }

    fn page_sql(
        &self,
        query: &Query,
        range: &RangeInclusive<i64>,
        after: Option<Seq>,
        order: Order,
        limit: usize,
    ) -> (String, Vec<Value>) {
        let (condition, values) = condition(query, range, after);
        let order = match order {
            Order::OldestFirst => "ASC",
            Order::LatestFirst => "DESC",
        };
        let columns = self.columns();
        let sql = format!("SELECT {columns} WHERE {condition} ORDER BY seq {order} LIMIT {limit}");
        (sql, values)
    }

    fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, ReadError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let payloads = self.payloads();
        let rows = statement.query_map(params_from_iter(values), |row| {
            read_row(row, &payloads).and_then(|row| self.identified(row))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The row with who recorded it.
    fn identified(&self, row: Row) -> rusqlite::Result<Row> {
        let Some(key) = row.identity_key() else { return Ok(row) };
        Ok(Row { identity: self.identities.get(&self.db, key)?, ..row })
    }

    /// Every session, the most recently active one last.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>, ReadError> {
        // Skips from session to session in the index, instead of scanning it. An archive can hold decisions that
        // no bus made, whose payload is not JSON; they block nothing.
        let bus = if self.is_archive {
            "(SELECT bus FROM origins WHERE origins.seq = e.seq)"
        } else {
            "NULL"
        };
        let sql = "WITH RECURSIVE each_session (session) AS ( \
                 SELECT min(session) FROM events \
                 UNION ALL \
                 SELECT (SELECT min(session) FROM events WHERE session > each_session.session) \
                 FROM each_session WHERE session IS NOT NULL \
             ) \
             SELECT s.session, e.agent, e.time, \
                    (SELECT time FROM events WHERE session = s.session AND agent <> 'hookbus' \
                       ORDER BY seq DESC LIMIT 1), \
                    (SELECT count(*) FROM events WHERE session = s.session \
                       AND kind <> 'decision' AND agent <> 'hookbus'), \
                    (SELECT count(*) FROM events WHERE session = s.session AND kind = 'decision' \
                       AND CASE WHEN json_valid(CAST(payload AS TEXT)) \
                           THEN CAST(payload AS TEXT) ->> '$.outcome' END IN ('block', 'stop')), \
                    {bus} \
             FROM each_session s JOIN events e ON e.seq = \
                    (SELECT min(seq) FROM events WHERE session = s.session AND agent <> 'hookbus') \
             WHERE s.session IS NOT NULL ORDER BY 4";
        let mut statement = self.db.prepare(&sql.replace("{bus}", bus))?;
        let sessions = statement.query_map([], |row| {
            Ok(SessionSummary {
                session: row.get(0)?,
                agent: row.get(1)?,
                first: Time::from_micros(row.get(2)?),
                last: Time::from_micros(row.get(3)?),
                events: row.get(4)?,
                blocked: row.get(5)?,
                bus: row.get::<_, Option<[u8; 16]>>(6)?.map(BusId::from_bytes),
            })
        })?;
        Ok(sessions.collect::<Result<_, _>>()?)
    }

    /// How many events of this name and session in a row, right before `seq` (before now if none), say that a hook had made
    /// the agent continue its turn (`stop_hook_active`). Counts up to `limit`.
    pub fn continuations_before(
        &self,
        session: &str,
        name: &str,
        seq: Option<Seq>,
        limit: u32,
    ) -> Result<u32, ReadError> {
        let mut statement = self.db.prepare_cached(&format!(
            "SELECT payload, {} FROM events WHERE session = ?1 AND name = ?2 AND seq < ?3 \
                 ORDER BY seq DESC LIMIT ?4",
            self.packed
        ))?;
        let before = seq.map_or(i64::MAX, Seq::as_i64);
        let mut rows = statement.query((session, name, before, limit))?;
        let (payloads, mut in_a_row) = (self.payloads(), 0);
        while let Some(row) = rows.next()? {
            let payload = payloads.read(row.get_ref(0)?, row.get_ref(1)?)?;
            let payload = read_leniently(&payload).unwrap_or_default();
            if payload.get("stop_hook_active") != Some(&serde_json::Value::Bool(true)) {
                break;
            }
            in_a_row += 1;
        }
        Ok(in_a_row)
    }

    /// The same log, as a replay reads it.
    pub const fn replay(&self) -> ReplayReader<'_> {
        ReplayReader::new(self)
    }

    /// The complete id of the one session that starts with `prefix`.
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
                return Ok(next); // an exact match is never ambiguous
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

#[derive(Debug, Clone, Copy)]
enum Order {
    OldestFirst,
    LatestFirst,
}

/// The SQL condition for the rows of `query` in `range` after `after`.
pub(super) fn condition(
    query: &Query,
    range: &RangeInclusive<i64>,
    after: Option<Seq>,
) -> (String, Vec<Value>) {
    let from = after.map_or(*range.start(), |after| after.next().as_i64().max(*range.start()));
    let mut parts = vec!["seq >= ?", "seq <= ?"];
    let mut values = vec![Value::Integer(from), Value::Integer(*range.end())];
    let mut add = |part, value| {
        parts.push(part);
        values.push(value);
    };
    let text = |text: &String| Value::Text(text.clone());
    // A GLOB pattern in which `*` is the only special character.
    let pattern = |text: &String| Value::Text(text.replace('[', "[[]").replace('?', "[?]"));
    if let Some(seq) = query.seq {
        add("seq = ?", Value::Integer(seq.as_i64()));
    }
    if let Some(session) = &query.session {
        add("session = ?", text(session));
    }
    if let Some(bus) = &query.bus {
        add("seq IN (SELECT seq FROM origins WHERE bus = ?)", Value::Blob(bus.as_bytes().to_vec()));
    }
    if let Some(agent) = &query.agent {
        add("agent = ?", text(agent));
    }
    if let Some(kind) = &query.kind {
        add("kind GLOB ?", pattern(kind));
    }
    if let Some(name) = &query.name {
        add("name GLOB ?", pattern(name));
    }
    if let Some(tool) = &query.tool {
        add("? IN (tool, tool_class)", text(tool));
    }
    if let Some(since) = query.since {
        add("id >= ?", Value::Blob(EventId::lower_bound(since).as_bytes().to_vec()));
    }
    if let Some(until) = query.until {
        add("id < ?", Value::Blob(EventId::lower_bound(until).as_bytes().to_vec()));
    }
    (parts.join(" AND "), values)
}

fn read_row(row: &rusqlite::Row<'_>, payloads: &PayloadReader<'_>) -> rusqlite::Result<Row> {
    let stored = (row.get_ref(12)?, row.get_ref(14)?);
    let of_columns = row.get::<_, Option<bool>>(17)?.unwrap_or(false);
    let Change { removed, redaction } =
        Change::of_columns(stored, row.get(15)?, row.get(16)?, of_columns);
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
        payload: match removed {
            Some(_) => Vec::new(),
            None => payloads.read(stored.0, stored.1)?,
        },
        removed,
        redaction,
        hash: row.get(13)?,
        origin: match row.get::<_, Option<[u8; 16]>>(18)? {
            Some(bus) => Some(Origin {
                bus: BusId::from_bytes(bus),
                seq: Seq::from_i64(row.get(19)?),
                cause: row.get::<_, Option<i64>>(20)?.map(Seq::from_i64),
            }),
            None => None,
        },
        identity: None,
    })
}
