//! The sessions of a log, the most recently active one first, found without reading the whole log: the latest rows are walked
//! backwards, and if they are of few sessions, the index of sessions is skipped through.

use std::collections::HashSet;

use rusqlite::OptionalExtension;

use super::bus_row::BUS_AGENT;
use super::{ENDINGS, LogReader, Query, ReadError, Row};
use crate::event::{Seq, Time};

/// How many rows are walked before the index is used.
const WALK: usize = 20_000;

/// How many of them are read in one query.
const STEP: usize = 1000;

/// How many rows from the start of a session can be before its first prompt.
const FIRST_ROWS: usize = 300;

/// How far a listing of sessions is.
#[derive(Debug)]
pub struct SessionCursor {
    /// How many rows are walked without a new session, before the index is used.
    most_walked: usize,
    seen: HashSet<String>,
    before: Option<Seq>,
    walked: usize,
    /// The sessions that are left, the latest last; none while rows are walked.
    left: Option<Vec<String>>,
}

impl Default for SessionCursor {
    fn default() -> Self {
        Self { most_walked: WALK, seen: HashSet::new(), before: None, walked: 0, left: None }
    }
}

/// Where a session begins and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionBounds {
    /// Its first event.
    pub first: Row,
    /// Its first prompt, if that is among its first rows.
    pub prompt: Option<Row>,
    /// The time of its last event.
    pub last: Time,
}

/// How many rows of which kind a session has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Events, without decisions.
    pub events: usize,
    /// Decisions.
    pub decisions: usize,
    /// Whether the session has more rows than were counted.
    pub has_more: bool,
}

impl LogReader {
    /// The next sessions of a listing, at most `count`; none if there are no more.
    pub fn next_sessions(
        &self,
        cursor: &mut SessionCursor,
        count: usize,
    ) -> Result<Vec<String>, ReadError> {
        let mut found = Vec::new();
        while found.len() < count && cursor.left.is_none() {
            if cursor.walked >= cursor.most_walked {
                cursor.left = Some(self.sessions_by_index(&cursor.seen)?);
                break;
            }
            let rows = self.row_sessions(cursor.before)?;
            let is_end = rows.len() < STEP;
            for (seq, session) in rows {
                cursor.before = Some(seq);
                cursor.walked += 1;
                if let Some(session) = session.filter(|session| !cursor.seen.contains(session)) {
                    cursor.seen.insert(session.clone());
                    found.push(session);
                    cursor.walked = 0;
                    if found.len() == count {
                        return Ok(found);
                    }
                }
            }
            if is_end {
                cursor.left = Some(Vec::new());
            }
        }
        let left = cursor.left.get_or_insert_default();
        while found.len() < count
            && let Some(session) = left.pop()
        {
            found.push(session);
        }
        Ok(found)
    }

    /// The session that was active last.
    pub fn last_session(&self) -> Result<Option<String>, ReadError> {
        Ok(self.next_sessions(&mut SessionCursor::default(), 1)?.pop())
    }

    /// The sessions of the rows before `before`, the latest first; none for a row about the bus itself.
    fn row_sessions(&self, before: Option<Seq>) -> Result<Vec<(Seq, Option<String>)>, ReadError> {
        let mut statement = self.db.prepare_cached(
            "SELECT seq, session, agent FROM events WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2",
        )?;
        let before = before.map_or(i64::MAX, Seq::as_i64);
        let rows = statement.query_map((before, whole(STEP)), |row| {
            let is_of_bus = row.get_ref(2)?.as_bytes().is_ok_and(|it| it == BUS_AGENT.as_bytes());
            let session = if is_of_bus { None } else { Some(row.get(1)?) };
            Ok((Seq::from_i64(row.get(0)?), session))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Every session that was not seen yet, the latest last: skips from session to session in the index.
    fn sessions_by_index(&self, seen: &HashSet<String>) -> Result<Vec<String>, ReadError> {
        let mut next = self.db.prepare("SELECT min(session) FROM events WHERE session > ?1")?;
        let mut last = self.db.prepare("SELECT max(seq) FROM events WHERE session = ?1")?;
        let own = "SELECT max(seq) FROM events WHERE session = '' AND agent <> 'hookbus'";
        let mut all: Vec<(i64, String)> = Vec::new();
        let nameless: Option<i64> = self.db.query_row(own, [], |row| row.get(0))?;
        all.extend(nameless.filter(|_| !seen.contains("")).map(|seq| (seq, String::new())));
        let mut session = String::new();
        while let Some(found) = next.query_row([&session], |row| row.get::<_, Option<String>>(0))? {
            if !seen.contains(&found) {
                all.push((last.query_row([&found], |row| row.get(0))?, found.clone()));
            }
            session = found;
        }
        all.sort_unstable();
        Ok(all.into_iter().map(|(_, session)| session).collect())
    }

    /// Where a session begins and ends; none if it has no event.
    pub fn session_bounds(&self, session: &str) -> Result<Option<SessionBounds>, ReadError> {
        let query = Query { session: Some(session.to_owned()), ..Query::default() };
        let mut first = self.after(&query, None, 1)?;
        if first.first().is_some_and(|row| row.agent == BUS_AGENT) {
            let rows = self.after(&query, None, FIRST_ROWS)?;
            first = rows.into_iter().filter(|row| row.agent != BUS_AGENT).take(1).collect();
        }
        let Some(first) = first.pop() else { return Ok(None) };
        let sql = "SELECT seq FROM (SELECT seq, kind FROM events WHERE session = ?1 \
                   ORDER BY seq LIMIT ?2) WHERE kind IN ('turn.start', 'agent.start') LIMIT 1";
        let mut statement = self.db.prepare_cached(sql)?;
        let prompt: Option<i64> =
            statement.query_row((session, whole(FIRST_ROWS)), |row| row.get(0)).optional()?;
        let prompt = match prompt {
            Some(seq) => {
                let query = Query { seq: Some(Seq::from_i64(seq)), ..Query::default() };
                self.last(&query, 1)?.pop()
            }
            None => None,
        };
        let last = "SELECT time FROM events WHERE session = ?1 AND agent <> 'hookbus' \
                    ORDER BY seq DESC LIMIT 1";
        let last: i64 = self.db.prepare_cached(last)?.query_row([session], |row| row.get(0))?;
        Ok(Some(SessionBounds { first, prompt, last: Time::from_micros(last) }))
    }

    /// How many rows a session has before `before` (up to now if none), among the latest `most`.
    pub fn session_counts(
        &self,
        session: &str,
        before: Option<Seq>,
        most: usize,
    ) -> Result<RowCounts, ReadError> {
        let mut statement = self.db.prepare_cached(
            "SELECT count(*), coalesce(sum(kind = 'decision'), 0), coalesce(sum(agent = 'hookbus'), 0) \
             FROM (SELECT kind, agent FROM events WHERE session = ?1 AND seq < ?3 \
             ORDER BY seq DESC LIMIT ?2)",
        )?;
        let before = before.map_or(i64::MAX, Seq::as_i64);
        let counts = statement.query_row((session, whole(most), before), |row| {
            let number = |column: usize| {
                Ok::<_, rusqlite::Error>(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
            };
            let (all, decisions, of_bus) = (number(0)?, number(1)?, number(2)?);
            let events = all.saturating_sub(decisions + of_bus);
            Ok(RowCounts { events, decisions, has_more: all == most })
        })?;
        Ok(counts)
    }

    /// The latest rows of a session before `before` (up to now if none) that tell how things ended.
    pub fn session_endings(
        &self,
        session: &str,
        before: Option<Seq>,
        most: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let kinds = ENDINGS.to_vec();
        let query = Query { session: Some(session.to_owned()), kinds, ..Query::default() };
        self.before(&query, before, most)
    }

    /// Every session for which `is_meant` holds, at most `most`.
    pub fn sessions_where(
        &self,
        is_meant: impl Fn(&str) -> bool,
        most: usize,
    ) -> Result<Vec<String>, ReadError> {
        let all = self.sessions_by_index(&HashSet::new())?;
        Ok(all.into_iter().rev().filter(|session| is_meant(session)).take(most).collect())
    }
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventId, Kind};
    use crate::log::open::{self, Durability, WriterRole};
    use crate::log::{LogPath, RowHead};

    /// A log with a row for each session, in this order; `bus` is a row of the bus itself.
    fn log(sessions: &[&str]) -> (tempfile::TempDir, LogReader) {
        let home = tempfile::tempdir().expect("a home");
        let path = LogPath::in_home(home.path());
        let writable = open::for_writing(
            &path,
            Durability::ProcessDeath,
            WriterRole::Client,
            Time::from_micros(1),
        );
        let db = writable.expect("a log").db;
        for (seq, session) in (1_i64..).zip(sessions) {
            let (session, agent) =
                if *session == "bus" { ("", "hookbus") } else { (*session, "hermes") };
            let id = EventId::mint(Time::from_micros(seq));
            let kind = if seq % 3 == 0 { "decision" } else { "turn.start" };
            db.execute(
                "INSERT INTO events (seq, id, time, agent, session, name, kind, payload, hash) \
                 VALUES (?1, ?2, ?1, ?3, ?4, 'x', ?5, '{}', zeroblob(32))",
                (seq, id.as_bytes(), agent, session, kind),
            )
            .expect("a row");
        }
        drop(db);
        (home, LogReader::open(&path).expect("a log"))
    }

    #[test]
    fn sessions_are_listed_latest_first_however_they_are_found() {
        let rows = ["a", "b", "", "a", "c", "bus", "b", "d", "d", "d", "bus"];
        let (_home, log) = log(&rows);
        for most_walked in [0, 1, 3, WALK] {
            for count in [1, 2, 10] {
                let mut cursor = SessionCursor { most_walked, ..SessionCursor::default() };
                let mut all = Vec::new();
                loop {
                    let page = log.next_sessions(&mut cursor, count).expect("sessions");
                    assert!(page.len() <= count);
                    if page.is_empty() {
                        break;
                    }
                    all.extend(page);
                }
                assert_eq!(all, ["d", "b", "c", "a", ""], "{most_walked} {count}");
            }
        }
        assert_eq!(log.last_session().expect("a session").as_deref(), Some("d"));
        let ends = log.sessions_where(|session| session > "b", 9).expect("sessions");
        assert_eq!(ends, ["d", "c"]);
    }

    #[test]
    fn a_session_is_counted_up_to_a_limit() {
        let (_home, log) = log(&["a"; 9]);
        let all = log.session_counts("a", None, 100).expect("counts");
        assert_eq!((all.events, all.decisions, all.has_more), (6, 3, false));
        assert!(log.session_counts("a", None, 5).expect("counts").has_more);
        let early = log.session_counts("a", Some(Seq::from_i64(4)), 100).expect("counts");
        assert_eq!((early.events, early.decisions), (2, 1));
        let bounds = log.session_bounds("a").expect("bounds").expect("a session");
        assert_eq!((bounds.first.seq, bounds.last), (Seq::FIRST, Time::from_micros(9)));
        assert!(bounds.prompt.is_some());
        assert_eq!(log.session_bounds("b").expect("bounds"), None);
        assert_eq!(log.session_endings("a", None, 2).expect("rows").len(), 2);
        let early = log.session_endings("a", Some(Seq::from_i64(6)), 9).expect("rows");
        assert_eq!(early.iter().map(|row| row.seq.as_i64()).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn the_end_of_the_log_is_read_without_payloads_and_endings_with_them() {
        let (_home, log) = log(&["a", "b", "a", "bus", "a", "b"]);
        let seqs = |heads: &[RowHead]| -> Vec<i64> {
            heads.iter().map(|head| head.seq.as_i64()).collect()
        };
        let last = log.last_heads(3).expect("heads");
        assert_eq!((seqs(&last), last[0].is_event()), (vec![4, 5, 6], false));
        let next = log.heads_after(Seq::from_i64(2), 2).expect("heads");
        assert_eq!((seqs(&next), next[0].kind), (vec![3, 4], Kind::Decision));
        let endings = log.endings_of(&last).expect("rows");
        let endings: Vec<i64> =
            endings.iter().flatten().map(|row: &Row| row.seq.as_i64()).collect();
        assert_eq!(endings, [6], "only of these rows");
        assert!(log.endings_of(&[]).expect("rows").is_empty());
    }
}
