//! Appends a group of jobs in one transaction. Each new row gets its seq and its hash here.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::chain::{self, Hash, Identity};
use super::row::{HooksSnapshot, RowDraft};
use super::writer::{Appended, Job};
use super::{AppendError, open, payload, schema};
use crate::event::{Clock, EventId, Seq};

/// What this process wrote last. Saves queries for as long as no other process has written.
#[derive(Debug, Default)]
pub(super) struct AppendCache {
    head: Option<(Seq, Hash)>,
    hooks: LastHooks,
}

/// The hash of the hooks recorded last, by project file (`None`: the user's own file). The value is
/// `None` if no hooks were ever recorded for that file.
type LastHooks = HashMap<Option<String>, Option<String>>;

/// An open transaction. The cache is updated only when it commits.
pub(super) struct AppendTransaction<'a> {
    transaction: Transaction<'a>,
    cache: &'a mut AppendCache,
    clock: &'a dyn Clock,
    /// The last row of the log, as seen by this transaction.
    head: Option<(Seq, Hash)>,
    /// The last hooks, as seen by this transaction.
    hooks: LastHooks,
}

impl<'a> AppendTransaction<'a> {
    pub(super) fn begin(
        db: &'a mut Connection,
        cache: &'a mut AppendCache,
        clock: &'a dyn Clock,
    ) -> Result<Self, AppendError> {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let head = transaction
            .prepare_cached("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok((Seq::from_i64(row.get(0)?), row.get(1)?)))
            .optional()?;
        if cache.head.is_none() && schema::is_archive(&transaction)? {
            return Err(AppendError::IsArchive);
        }
        let mut hooks = std::mem::take(&mut cache.hooks);
        if head != cache.head {
            hooks.clear(); // another process has written, and its hooks may differ
        }
        Ok(Self { transaction, cache, clock, head, hooks })
    }

    pub(super) fn append_all(mut self, jobs: &[Job]) -> Result<Vec<Appended>, AppendError> {
        let appended = jobs.iter().map(|job| self.append(job)).collect::<Result<_, _>>()?;
        self.transaction.commit()?;
        self.cache.head = self.head;
        self.cache.hooks = self.hooks;
        Ok(appended)
    }

    fn append(&mut self, job: &Job) -> Result<Appended, AppendError> {
        match job {
            Job::Event { event, decision, hooks } => {
                for hooks in hooks {
                    self.append_hooks(hooks)?;
                }
                let seq = match self.seq_of(event.id)? {
                    Some(seq) => seq,
                    None => self.insert(event, None)?,
                };
                self.append_decision(event.id.of_decision(), seq, decision.as_deref())
            }
            Job::Decision { decision, cause } => {
                self.append_decision(decision.id, *cause, Some(decision))
            }
            Job::Checkpoint => Ok(Appended { seq: Seq::FIRST, earlier_decision: None }),
        }
    }

    /// Appends the decision about the event at `seq`, unless there is one already: an event has at
    /// most one decision.
    fn append_decision(
        &mut self,
        id: EventId,
        seq: Seq,
        decision: Option<&RowDraft>,
    ) -> Result<Appended, AppendError> {
        let earlier_decision = self
            .transaction
            .prepare_cached("SELECT payload FROM events WHERE id = ?1")?
            .query_row([id.as_bytes()], |row| Ok(payload::from_sql(row.get_ref(0)?)))
            .optional()?;
        if let (None, Some(decision)) = (&earlier_decision, decision) {
            self.insert(decision, Some(seq))?;
        }
        Ok(Appended { seq, earlier_decision })
    }

    /// Records the active hooks if they differ from the last recorded ones of the same file.
    fn append_hooks(&mut self, hooks: &HooksSnapshot) -> Result<(), AppendError> {
        let project = hooks.of_project.then_some(hooks.path.as_str());
        let key = project.map(str::to_owned);
        let mut last = match self.hooks.get(&key) {
            Some(known) => known.clone(),
            None => last_hooks(&self.transaction, project)?.map(|last| last.hash),
        };
        // There is no file, and there never was one: nothing to record.
        let never_any = last.is_none() && hooks.content.is_empty();
        if !never_any && last.as_ref() != Some(&hooks.hash) {
            self.insert(&hooks.to_row(self.clock.now()), None)?;
            last = Some(hooks.hash.clone());
        }
        self.hooks.insert(key, last);
        Ok(())
    }

    fn seq_of(&self, id: EventId) -> Result<Option<Seq>, AppendError> {
        Ok(self
            .transaction
            .prepare_cached("SELECT seq FROM events WHERE id = ?1")?
            .query_row([id.as_bytes()], |row| row.get(0).map(Seq::from_i64))
            .optional()?)
    }

    fn insert(&mut self, draft: &RowDraft, cause: Option<Seq>) -> Result<Seq, AppendError> {
        let (seq, before) = match self.head {
            Some((seq, hash)) => (seq.next(), hash),
            None => (Seq::FIRST, chain::genesis(open::bus_id(&self.transaction)?)),
        };
        let identity = Identity {
            seq,
            id: draft.id,
            at: draft.at,
            agent: &draft.agent,
            name: &draft.name,
            cause,
            context: draft.context.as_deref(),
        };
        let hash = chain::link(&before, &identity, &draft.payload);
        self.transaction
            .prepare_cached(
                "INSERT INTO events (seq, id, time, agent, session, turn, name, kind, tool, \
                 tool_class, cause, context, payload, hash) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(rusqlite::params![
                seq.as_i64(),
                draft.id.as_bytes(),
                draft.at.micros(),
                draft.agent,
                draft.session,
                draft.turn,
                draft.name,
                draft.kind.as_str(),
                draft.tool,
                draft.tool_class,
                cause.map(Seq::as_i64),
                draft.context,
                payload::to_sql(&draft.payload),
                hash,
            ])?;
        self.head = Some((seq, hash));
        Ok(seq)
    }
}

/// The hooks recorded last for the user's own file, or for this project's file.
pub(super) fn last_hooks(
    db: &Connection,
    project: Option<&str>,
) -> rusqlite::Result<Option<HooksSnapshot>> {
    // `context` names the project, so that the payloads of other projects need not be read.
    let mut rows = db.prepare_cached(
        "SELECT payload FROM events WHERE kind = 'hooks.loaded' AND context IS ?1 ORDER BY seq DESC",
    )?;
    let mut rows = rows.query([project.map(HooksSnapshot::context)])?;
    while let Some(row) = rows.next()? {
        let payload = payload::from_sql(row.get_ref(0)?);
        let hooks = serde_json::from_slice(&payload).ok();
        let Some(hooks) = hooks.and_then(|json| HooksSnapshot::from_json(&json)) else {
            // A damaged row that may be ours counts as none: the hooks are then recorded again.
            return Ok(None);
        };
        // In logs of early versions a project's row has no context; only its payload names the file.
        if project == hooks.of_project.then_some(hooks.path.as_str()) {
            return Ok(Some(hooks));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{SystemClock, Time};
    use crate::log::LogPath;

    fn draft(path: &str, content: &str, of_project: bool) -> HooksSnapshot {
        let (path, content) = (path.to_owned(), content.to_owned());
        HooksSnapshot { hash: format!("hash of {content}"), path, content, of_project }
    }

    fn log() -> (tempfile::TempDir, Connection) {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let (db, _) = open::for_writing(
            &log,
            open::Durability::ProcessDeath,
            open::WriterRole::Client,
            SystemClock.now(),
        )
        .expect("a log");
        (home, db)
    }

    fn begin<'a>(db: &'a mut Connection, cache: &'a mut AppendCache) -> AppendTransaction<'a> {
        AppendTransaction::begin(db, cache, &SystemClock).expect("a transaction")
    }

    fn append(db: &mut Connection, cache: &mut AppendCache, hooks: &[HooksSnapshot]) {
        let mut transaction = begin(db, cache);
        for hooks in hooks {
            transaction.append_hooks(hooks).expect("hooks");
        }
        transaction.append_all(&[]).expect("a commit");
    }

    #[test]
    fn the_last_hooks_of_a_file_are_found_without_reading_rows_of_other_projects() {
        let ((_home, mut db), mut cache) = (log(), AppendCache::default());
        let own = draft("/h/hookbus.yaml", "mine", false);
        let project = draft("/p/.hookbus/hookbus.yaml", "theirs", true);
        append(&mut db, &mut cache, &[own.clone(), project.clone()]);
        // Reading this row fails.
        let at = Time::from_micros(1);
        let damaged = RowDraft {
            id: EventId::mint(at),
            payload: b"{".to_vec(),
            ..draft("/q/.hookbus/hookbus.yaml", "", true).to_row(at)
        };
        let mut transaction = begin(&mut db, &mut cache);
        transaction.insert(&damaged, None).expect("a row");
        transaction.append_all(&[]).expect("a commit");
        let last = |project: Option<&str>| last_hooks(&db, project).expect("an answer");
        assert_eq!(last(None), Some(own));
        assert_eq!(last(Some(&project.path)), Some(project.clone()));
        assert_eq!(last(Some("/q/.hookbus/hookbus.yaml")), None);
    }

    #[test]
    fn the_cache_remembers_that_there_are_no_hooks_and_forgets_what_was_rolled_back() {
        let ((_home, mut db), mut cache) = (log(), AppendCache::default());
        append(&mut db, &mut cache, &[draft("/h/hookbus.yaml", "", false)]);
        assert_eq!(cache.hooks.get(&None), Some(&None));
        // Dropping the transaction rolls it back.
        let mut transaction = begin(&mut db, &mut cache);
        transaction.append_hooks(&draft("/h/hookbus.yaml", "mine", false)).expect("hooks");
        drop(transaction);
        append(&mut db, &mut cache, &[draft("/h/hookbus.yaml", "mine", false)]);
        assert!(last_hooks(&db, None).expect("an answer").is_some());
    }
}
