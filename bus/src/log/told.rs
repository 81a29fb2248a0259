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

    /// What happened to the user's own hooks since the last session of `agent` other than `session` began; `hash` is
    /// that of the hooks now. None if nothing did, or if there is no earlier session. If a session is too far back to be
    /// looked for, the last change counts. Usually this reads one row: the hooks that were recorded last.
    pub fn policy_change(
        &self,
        agent: Agent,
        session: &str,
        hash: &str,
    ) -> Result<Option<PolicyChange>, ReadError> {
        let last = self.own_hooks_before(i64::MAX)?;
        let (changed_at, is_recorded) = match &last {
            Some(last) => (last.seq, last.hash == hash),
            // There has never been a hooks file.
            None => (0, sha256(b"") == hash),
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
        if is_recorded {
            // A session that began after the last change began with these hooks. Usually the next one is near.
            let is_known = start_in(changed_at + 1..=changed_at + FAR, "ASC")?.is_some()
                || start_in((head - FAR).max(changed_at + 1)..=head, "DESC")?.is_some();
            if is_known {
                return Ok(None);
            }
            until = changed_at;
        }
        let start: Option<i64> = start_in(until - FAR..=until, "DESC")?;
        // Too far back to be looked for: the user hears of the last change, rather than of none.
        let far_back = (until > FAR).then_some(if is_recorded { changed_at } else { i64::MAX });
        let Some(start) = start.or(far_back) else { return Ok(None) };
        let before = self.own_hooks_before(start)?;
        let hash_before = before.as_ref().map_or_else(|| sha256(b""), |before| before.hash.clone());
        if hash_before != hash {
            let before = before.map(|before| before.content).unwrap_or_default();
            return Ok(Some(PolicyChange::Changed { before }));
        }
        // The same again: was it another one in between?
        let mut at = last;
        while let Some(hooks) = at.filter(|hooks| hooks.seq > start) {
            if hooks.hash != hash {
                return Ok(Some(PolicyChange::PutBack { meanwhile: hooks.content }));
            }
            at = self.own_hooks_before(hooks.seq)?;
        }
        Ok(None)
    }

    /// The user's own hooks that were recorded last before this place. A damaged row counts as one with other hooks.
    fn own_hooks_before(&self, seq: i64) -> Result<Option<RecordedHooks>, ReadError> {
        let mut statement = self.db.prepare_cached(
            "SELECT seq, payload FROM events WHERE kind = 'hooks.loaded' AND context IS NULL \
             AND seq < ?1 ORDER BY seq DESC LIMIT 1",
        )?;
        let found = statement.query_row([seq], |row| {
            let payload = payload::from_sql(row.get_ref(1)?);
            let json = serde_json::from_slice(&payload).unwrap_or_default();
            let (hash, content) = HooksSnapshot::from_json(&json)
                .map(|hooks| (hooks.hash, hooks.content))
                .unwrap_or_default();
            Ok(RecordedHooks { seq: row.get(0)?, hash, content })
        });
        Ok(found.optional()?)
    }
}

/// What happened to the user's own hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyChange {
    /// They are others.
    Changed {
        /// Their text before.
        before: String,
    },
    /// They are the same, but others were in force in between.
    PutBack {
        /// The text of those.
        meanwhile: String,
    },
}

/// A `hooks.loaded` row of the user's own file.
struct RecordedHooks {
    seq: i64,
    hash: String,
    content: String,
}
