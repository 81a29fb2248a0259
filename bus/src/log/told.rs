//! What notices need from the log: what the user was told in a session, and which policy was in force when the last
//! session began.

use std::ops::RangeInclusive;

use rusqlite::OptionalExtension;

use super::read::LogReader;
use super::row::HooksSnapshot;
use super::{ReadError, payload};
use crate::event::{Agent, RecordedDecision};
use crate::files::sha256;
use crate::json::read_leniently;

/// How many rows are searched for the start of a session: an agent waits for it.
const FAR: i64 = 50_000;

impl LogReader {
    /// The problems that the user was told of in this session.
    pub fn told(&self, session: &str) -> Result<Vec<String>, ReadError> {
        let mut statement = self.db.prepare_cached(
            "SELECT payload FROM events WHERE session = ?1 AND kind = 'decision' \
             AND payload LIKE '%\"notice\":{%'",
        )?;
        let mut rows = statement.query([session])?;
        let mut told = Vec::new();
        while let Some(row) = rows.next()? {
            let json = read_leniently(&payload::from_sql(row.get_ref(0)?)).unwrap_or_default();
            let notice =
                RecordedDecision::from_json(json).ok().and_then(|decision| decision.notice);
            told.extend(notice.into_iter().flat_map(|notice| notice.about));
        }
        Ok(told)
    }

    /// The text of the user's own hooks at the start of the last session of `agent` other than `session`, if other
    /// hooks than `hash` were in force then. None if that session was the first to start with these hooks, or if
    /// there is no earlier session. Usually this reads one row: the hooks that were recorded last.
    pub fn policy_before(
        &self,
        agent: Agent,
        session: &str,
        hash: &str,
    ) -> Result<Option<String>, ReadError> {
        let mut last = self.db.prepare_cached(
            "SELECT seq, payload FROM events WHERE kind = 'hooks.loaded' AND context IS NULL \
             AND seq < ?1 ORDER BY seq DESC LIMIT 1",
        )?;
        let mut hooks_before = |seq: i64| {
            let found = last.query_row([seq], |row| {
                let payload = payload::from_sql(row.get_ref(1)?);
                let json = serde_json::from_slice(&payload).unwrap_or_default();
                Ok((row.get::<_, i64>(0)?, HooksSnapshot::from_json(&json)))
            });
            found.optional()
        };
        let no_file = || sha256(b"");
        let (changed_at, last) = match hooks_before(i64::MAX)? {
            Some((seq, Some(last))) => (seq, last.hash),
            // A damaged row: which hooks were in force is not known.
            Some((_, None)) => return Ok(None),
            // There has never been a hooks file.
            None => (0, no_file()),
        };
        let head = self.head()?.map_or(0, |(seq, _)| seq.as_i64());
        let start_in = |range: RangeInclusive<i64>, order: &str| {
            let sql = format!(
                "SELECT seq FROM events WHERE seq BETWEEN ?1 AND ?2 AND kind = 'session.start' \
                 AND agent = ?3 AND session <> ?4 ORDER BY seq {order} LIMIT 1"
            );
            let values = (range.start(), range.end(), agent.as_str(), session);
            let found = self.db.prepare_cached(&sql)?.query_row(values, |row| row.get(0));
            found.optional()
        };
        let mut until = head;
        if last == hash {
            // A session that began after the last change began with these hooks. Usually the next one is near.
            let is_known = start_in(changed_at + 1..=changed_at + FAR, "ASC")?.is_some()
                || start_in((head - FAR).max(changed_at + 1)..=head, "DESC")?.is_some();
            if is_known {
                return Ok(None);
            }
            until = changed_at;
        }
        let start: Option<i64> = start_in(until - FAR..=until, "DESC")?;
        let Some(start) = start else { return Ok(None) };
        Ok(match hooks_before(start)? {
            Some((_, Some(before))) => (before.hash != hash).then_some(before.content),
            Some((_, None)) => None,
            None => (no_file() != hash).then(String::new),
        })
    }
}
