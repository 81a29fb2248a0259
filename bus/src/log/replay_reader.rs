//! Reads the log for a replay: events together with the recorded decisions about them, in ranges that
//! several threads can read at once. A damaged row is reported and skipped; the rest is read.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{OptionalExtension, params_from_iter};

use super::payload::PayloadReader;
use super::read::{LogReader, Query, condition};
use super::row::HooksSnapshot;
use super::{ReadError, payload};
use crate::event::{BusId, EventId, Seq, Time};

/// The limits of one page: rows, and bytes because payloads may be large.
const PAGE_ROWS: usize = 512;
const PAGE_BYTES: usize = 4 << 20;

const COLUMNS: &str = "seq, id, time, agent, session, kind, context, payload, \
     (SELECT d.payload FROM events d WHERE d.seq = events.seq + 1 AND d.cause = events.seq)";

/// The bus and the seq there that an event comes from. Only an archive has them.
const OWN: &str = "NULL, NULL";
const ARCHIVED: &str = "(SELECT bus FROM origins o WHERE o.seq = events.seq), \
     (SELECT bus_seq FROM origins o WHERE o.seq = events.seq)";

/// Which events to read. A field that is not set does not restrict.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The conditions; `session` is not used, see `sessions`.
    pub query: Query,
    /// Events of these sessions (complete ids); of all sessions if empty.
    pub sessions: Vec<String>,
    /// Only this many events, the last ones.
    pub last: Option<usize>,
}

/// A recorded event with the decision about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The event's seq.
    pub seq: Seq,
    /// The event's id.
    pub id: EventId,
    /// When it happened.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The kind that was recorded.
    pub kind: String,
    /// JSON: the working directory, the agent's session variables, marks.
    pub context: Option<String>,
    /// The bytes that the agent sent; empty if they were removed.
    pub payload: Vec<u8>,
    /// Whether the payload was removed on purpose.
    pub is_removed: bool,
    /// The payload of the decision about it; none if no hook gave a verdict.
    pub decision: Option<Vec<u8>>,
    /// The bus that recorded it and its seq there, if this log is an archive.
    pub origin: Option<(BusId, Seq)>,
}

impl RecordedEvent {
    /// Its seq in the log that recorded it, and the bus of that log if it is not this one.
    pub fn origin(&self) -> (Option<BusId>, Seq) {
        self.origin.map_or((None, self.seq), |(bus, seq)| (Some(bus), seq))
    }
}

/// A version of the hooks, and the seq at which it became active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedHooks {
    /// The bus, if this log is an archive.
    pub bus: Option<BusId>,
    /// The seq in the log of that bus.
    pub seq: Seq,
    /// The hooks; none if the row is damaged.
    pub hooks: Option<HooksSnapshot>,
}

/// One row that was read.
#[derive(Debug)]
pub enum ScannedRow {
    /// A selected event.
    Selected(RecordedEvent),
    /// An event that was not selected, from [`ReplayReader::scan_with_unselected`].
    Unselected(RecordedEvent),
    /// A row that cannot be read.
    Damaged {
        /// Its seq.
        seq: Seq,
        /// What is wrong with it.
        why: String,
    },
}

/// The decisions that are not in the row right after their event. Most decisions are, and are read
/// with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetachedDecisions {
    /// The seq of an event and that of its decision, sorted by event.
    seqs: Vec<(i64, i64)>,
    /// Decisions whose event is not in the log.
    pub without_cause: Vec<Seq>,
}

impl DetachedDecisions {
    fn about(&self, event: Seq) -> Option<i64> {
        let found = self.seqs.binary_search_by_key(&event.as_i64(), |(cause, _)| *cause).ok()?;
        self.seqs.get(found).map(|(_, decision)| *decision)
    }
}

/// Reads a log for a replay.
#[derive(Debug, Clone, Copy)]
pub struct ReplayReader<'a> {
    log: &'a LogReader,
}

impl<'a> ReplayReader<'a> {
    pub(super) const fn new(log: &'a LogReader) -> Self {
        Self { log }
    }

    /// The range of seqs that holds every selected event.
    pub fn selected_range(self, selection: &Selection) -> Result<RangeInclusive<i64>, ReadError> {
        let number = |sql: &str, values: &[&str]| -> Result<Option<i64>, ReadError> {
            let found: Option<Option<i64>> = self
                .log
                .db
                .prepare_cached(sql)?
                .query_row(params_from_iter(values), |row| row.get(0))
                .optional()?;
            Ok(found.flatten())
        };
        let (mut first, mut last) = (i64::MAX, 0);
        if selection.sessions.is_empty() {
            first = number("SELECT min(seq) FROM events", &[])?.unwrap_or(first);
            last = number("SELECT max(seq) FROM events", &[])?.unwrap_or(last);
        }
        for session in &selection.sessions {
            let ends = [
                number("SELECT min(seq) FROM events WHERE session = ?", &[session])?,
                number("SELECT max(seq) FROM events WHERE session = ?", &[session])?,
            ];
            if let [Some(from), Some(to)] = ends {
                (first, last) = (first.min(from), last.max(to));
            }
        }
        let range = self.log.seq_range(&selection.query)?;
        let (mut first, mut last) = (first.max(*range.start()), last.min(*range.end()));
        if let Some(only) = selection.query.seq.map(Seq::as_i64) {
            (first, last) = (first.max(only), last.min(only));
        }
        if let Some(count) = selection.last {
            let (condition, values) = events_of(selection, &(first..=last));
            let offset = count.saturating_sub(1);
            let sql = format!(
                "SELECT seq FROM events WHERE {condition} ORDER BY seq DESC LIMIT 1 OFFSET {offset}"
            );
            let from = self.log.db.query_row(&sql, params_from_iter(values), |row| row.get(0));
            first = from.optional()?.unwrap_or(first);
        }
        Ok(first..=last)
    }

    /// Calls `each` with every selected event in `range`, in log order, outside of any transaction. If
    /// the file itself is damaged, the range is halved until the readable rows are found.
    pub fn scan(
        self,
        selection: &Selection,
        range: RangeInclusive<i64>,
        far: &DetachedDecisions,
        each: &mut dyn FnMut(ScannedRow),
    ) {
        let mut range = range;
        loop {
            let page = match self.page(selection, &range, far) {
                Ok(page) => page,
                Err(error) => {
                    match halves(&range) {
                        Some((first, second)) => {
                            self.scan(selection, first, far, each);
                            self.scan(selection, second, far, each);
                        }
                        None => each(ScannedRow::Damaged {
                            seq: Seq::from_i64(*range.start()),
                            why: describe(&error),
                        }),
                    }
                    return;
                }
            };
            let Some(last) = page.last().map(ScannedRow::seq) else { return };
            page.into_iter().for_each(&mut *each);
            range = last.next().as_i64()..=*range.end();
        }
    }

    /// Calls `each` with every event in `range`, in log order: as [`ScannedRow::Selected`] if it is selected and
    /// not before `from`, else as [`ScannedRow::Unselected`].
    pub fn scan_with_unselected(
        self,
        selection: &Selection,
        from: i64,
        range: RangeInclusive<i64>,
        far: &DetachedDecisions,
        each: &mut dyn FnMut(ScannedRow),
    ) {
        let wanted = from.max(*range.start())..=*range.end();
        // The file is damaged; reading the selected events in pages reports where.
        let Ok(selected) = self.selected(selection, &wanted) else {
            return self.scan(selection, wanted, far, each);
        };
        self.scan(&Selection::default(), range, far, &mut |found| match found {
            ScannedRow::Selected(event) if !selected.contains(&event.seq.as_i64()) => {
                each(ScannedRow::Unselected(event));
            }
            ScannedRow::Selected(_) | ScannedRow::Unselected(_) | ScannedRow::Damaged { .. } => {
                each(found);
            }
        });
    }

    fn selected(
        self,
        selection: &Selection,
        range: &RangeInclusive<i64>,
    ) -> Result<HashSet<i64>, ReadError> {
        let (condition, values) = events_of(selection, range);
        let sql = format!("SELECT seq FROM events WHERE {condition}");
        let mut statement = self.log.db.prepare_cached(&sql)?;
        let seqs = statement.query_map(params_from_iter(values), |row| row.get(0))?;
        Ok(seqs.collect::<Result<_, _>>()?)
    }

    /// The first seq of any session that has a selected event in `range`. Events without a session id
    /// are not considered.
    pub fn first_seq_of_sessions(
        self,
        selection: &Selection,
        range: &RangeInclusive<i64>,
    ) -> Result<Option<Seq>, ReadError> {
        let (condition, values) = events_of(selection, range);
        let sql = format!(
            "SELECT min(first) FROM (SELECT (SELECT min(e.seq) FROM events e WHERE e.session = s.session) AS first \
             FROM (SELECT DISTINCT session FROM events WHERE {condition}) s WHERE s.session <> '')"
        );
        let first: Option<i64> =
            self.log.db.query_row(&sql, params_from_iter(values), |row| row.get(0))?;
        Ok(first.map(Seq::from_i64))
    }

    fn page(
        self,
        selection: &Selection,
        range: &RangeInclusive<i64>,
        far: &DetachedDecisions,
    ) -> Result<Vec<ScannedRow>, ReadError> {
        let (condition, values) = events_of(selection, range);
        let sql = format!(
            "SELECT {COLUMNS}, {}, {}, {} FROM events WHERE {condition} ORDER BY seq LIMIT {PAGE_ROWS}",
            if self.log.is_archive() { ARCHIVED } else { OWN },
            self.log.packed(),
            self.log.removed()
        );
        let mut statement = self.log.db.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let payloads = self.log.payloads();
        let (mut page, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let seq = Seq::from_i64(row.get(0)?);
            page.push(match read_event(seq, row, &payloads) {
                Ok(mut event) => {
                    if let (None, Some(decision)) = (&event.decision, far.about(seq)) {
                        event.decision = self.payload_at(decision)?;
                    }
                    bytes += event.payload.len() + event.decision.as_ref().map_or(0, Vec::len);
                    ScannedRow::Selected(event)
                }
                Err(why) => ScannedRow::Damaged { seq, why },
            });
            if bytes > PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }

    fn payload_at(self, seq: i64) -> Result<Option<Vec<u8>>, ReadError> {
        let found = self
            .log
            .db
            .prepare_cached("SELECT payload FROM events WHERE seq = ?1")?
            .query_row([seq], |row| Ok(payload::from_sql(row.get_ref(0)?)));
        Ok(found.optional()?)
    }

    /// The decisions from the start of `range` on that are not in the row right after their event: while
    /// a command hook runs, other rows are appended. Unreadable rows are left out; [`Self::scan`]
    /// reports them.
    pub fn detached_decisions(
        self,
        selection: &Selection,
        range: &RangeInclusive<i64>,
    ) -> Result<DetachedDecisions, ReadError> {
        let head = self.log.head()?.map_or(0, |(seq, _)| seq.as_i64());
        let mut far = DetachedDecisions::default();
        let mut unread = vec![*range.start()..=head];
        while let Some(range) = unread.pop() {
            match (self.detached_decisions_in(selection, &range), halves(&range)) {
                (Ok(more), _) => {
                    far.seqs.extend(more.seqs);
                    far.without_cause.extend(more.without_cause);
                }
                (Err(_), Some((first, second))) => unread.extend([second, first]),
                (Err(_), None) => {}
            }
        }
        far.seqs.sort_unstable();
        Ok(far)
    }

    fn detached_decisions_in(
        self,
        selection: &Selection,
        range: &RangeInclusive<i64>,
    ) -> Result<DetachedDecisions, ReadError> {
        let (sessions, session_ids) = in_sessions(selection);
        let mut values = vec![Value::Integer(*range.start()), Value::Integer(*range.end())];
        values.extend(session_ids);
        let mut statement = self.log.db.prepare(&format!(
            "SELECT seq, cause, NOT EXISTS (SELECT 1 FROM events c WHERE c.seq = events.cause) \
             FROM events WHERE kind = 'decision' AND seq >= ? AND seq <= ? {sessions} \
             AND (cause IS NOT seq - 1 \
                  OR NOT EXISTS (SELECT 1 FROM events c WHERE c.seq = events.cause))"
        ))?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut far = DetachedDecisions::default();
        while let Some(row) = rows.next()? {
            let (seq, cause): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
            match cause {
                Some(cause) if !row.get(2)? => far.seqs.push((cause, seq)),
                // The event is missing, but it would be before this range.
                Some(cause) if cause < *range.start() => {}
                Some(_) | None => far.without_cause.push(Seq::from_i64(seq)),
            }
        }
        Ok(far)
    }

    /// Every recorded version of the hooks, in log order.
    pub fn hooks_loaded(self) -> Result<Vec<LoadedHooks>, ReadError> {
        let origins = if self.log.is_archive() { ARCHIVED } else { OWN };
        let mut statement = self.log.db.prepare(&format!(
            "SELECT seq, {origins} FROM events WHERE kind = 'hooks.loaded' ORDER BY seq"
        ))?;
        let rows = statement.query_map([], |row| {
            let bus = row.get::<_, Option<[u8; 16]>>(1)?.map(BusId::from_bytes);
            Ok((row.get::<_, i64>(0)?, bus, row.get::<_, Option<i64>>(2)?))
        })?;
        let mut loaded = Vec::new();
        for row in rows {
            let (seq, bus, bus_seq) = row?;
            let content = self.payload_at(seq).ok().flatten();
            let content = content.and_then(|content| serde_json::from_slice(&content).ok());
            let hooks = content.and_then(|content| HooksSnapshot::from_json(&content));
            loaded.push(LoadedHooks { bus, seq: Seq::from_i64(bus_seq.unwrap_or(seq)), hooks });
        }
        Ok(loaded)
    }

    /// The seq of the event at `seq`, or of the event that the decision at `seq` is about.
    pub fn event_at(self, seq: Seq) -> Result<Option<Seq>, ReadError> {
        let found = self
            .log
            .db
            .query_row(
                "SELECT coalesce(cause, seq) FROM events WHERE seq = ?1 AND agent <> 'hookbus'",
                [seq.as_i64()],
                |row| row.get(0).map(Seq::from_i64),
            )
            .optional()?;
        Ok(found)
    }
}

impl ScannedRow {
    const fn seq(&self) -> Seq {
        match self {
            Self::Selected(event) | Self::Unselected(event) => event.seq,
            Self::Damaged { seq, .. } => *seq,
        }
    }
}

/// Without the advice, which is for the log as a whole.
fn describe(error: &ReadError) -> String {
    match error {
        ReadError::Sqlite(error) => error.to_string(),
        ReadError::Open(_) | ReadError::Ambiguous { .. } | ReadError::NoSession(_) => {
            error.to_string()
        }
    }
}

/// Both halves of a range with more than one seq.
fn halves(range: &RangeInclusive<i64>) -> Option<(RangeInclusive<i64>, RangeInclusive<i64>)> {
    let (first, last) = (*range.start(), *range.end());
    let middle = first + last.checked_sub(first).filter(|more| *more > 0)? / 2;
    Some((first..=middle, middle + 1..=last))
}

/// The SQL condition for the selected events in `range`.
fn events_of(selection: &Selection, range: &RangeInclusive<i64>) -> (String, Vec<Value>) {
    let (mut condition, mut values) = condition(&selection.query, range, None);
    let (sessions, session_ids) = in_sessions(selection);
    condition.push_str(" AND kind <> 'decision' AND agent <> 'hookbus'");
    condition.push_str(&sessions);
    values.extend(session_ids);
    (condition, values)
}

fn in_sessions(selection: &Selection) -> (String, Vec<Value>) {
    if selection.sessions.is_empty() {
        return (String::new(), Vec::new());
    }
    let placeholders = vec!["?"; selection.sessions.len()].join(", ");
    let values = selection.sessions.iter().map(|session| Value::Text(session.clone()));
    (format!(" AND session IN ({placeholders})"), values.collect())
}

fn origin(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<(BusId, Seq)>> {
    let bus: Option<[u8; 16]> = row.get(9)?;
    let seq: Option<i64> = row.get(10)?;
    Ok(bus.map(BusId::from_bytes).zip(seq.map(Seq::from_i64)))
}

fn read_event(
    seq: Seq,
    row: &rusqlite::Row<'_>,
    payloads: &PayloadReader<'_>,
) -> Result<RecordedEvent, String> {
    let column = |at: usize| row.get_ref(at).map_err(|error| error.to_string());
    let text = |at: usize, what: &str| match column(at)? {
        ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
            Err(format!("its {what} is not text"))
        }
    };
    let id = match column(1)? {
        ValueRef::Blob(bytes) => <[u8; 16]>::try_from(bytes)
            .map_err(|_| format!("its id has {} bytes instead of 16", bytes.len()))?,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => {
            return Err("its id is not a blob".to_owned());
        }
    };
    let is_removed = column(12)? != ValueRef::Null;
    Ok(RecordedEvent {
        seq,
        id: EventId::from_bytes(id),
        at: Time::from_micros(row.get(2).map_err(|error| error.to_string())?),
        agent: text(3, "agent")?,
        session: text(4, "session")?,
        kind: text(5, "kind")?,
        context: if column(6)? == ValueRef::Null { None } else { Some(text(6, "context")?) },
        payload: if is_removed {
            Vec::new()
        } else {
            payloads.read(column(7)?, column(11)?).map_err(|error| error.to_string())?
        },
        is_removed,
        decision: Some(column(8)?).filter(|it| *it != ValueRef::Null).map(payload::from_sql),
        origin: origin(row).map_err(|error| error.to_string())?,
    })
}
