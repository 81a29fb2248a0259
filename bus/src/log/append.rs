//! One group of rows, in one transaction: where a row gets its place and its hash.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::chain::{self, Hash, Identity};
use super::row::{Draft, HooksDraft};
use super::writer::{Job, Placed};
use super::{AppendError, open, payload, schema};
use crate::event::{Clock, EventId, Seq};

/// What this process wrote last, so that it need not ask the file what nobody else has changed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    head: Option<(Seq, Hash)>,
    hooks: LastHooks,
}

/// The hash of the hooks that were recorded last, of a person's own file and of each project's; none where
/// none ever were.
type LastHooks = HashMap<Option<String>, Option<String>>;

/// A transaction under way.
pub(super) struct Group<'a> {
    step: Transaction<'a>,
    memory: &'a mut Memory,
    clock: &'a dyn Clock,
    /// The last row of the log, inside this transaction.
    head: Option<(Seq, Hash)>,
    /// The last hooks, inside this transaction.
    hooks: LastHooks,
}

impl<'a> Group<'a> {
    pub(super) fn begin(
        db: &'a mut Connection,
        memory: &'a mut Memory,
        clock: &'a dyn Clock,
    ) -> Result<Self, AppendError> {
        let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let head = step
            .prepare_cached("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok((Seq::from_i64(row.get(0)?), row.get(1)?)))
            .optional()?;
        if memory.head.is_none() && schema::is_archive(&step)? {
            return Err(AppendError::IsArchive);
        }
        let mut hooks = std::mem::take(&mut memory.hooks);
        if head != memory.head {
            hooks.clear(); // another process wrote; its hooks may differ
        }
        Ok(Self { step, memory, clock, head, hooks })
    }

    pub(super) fn append_all(mut self, jobs: &[Job]) -> Result<Vec<Placed>, AppendError> {
        let placed = jobs.iter().map(|job| self.append(job)).collect::<Result<_, _>>()?;
        self.step.commit()?;
        self.memory.head = self.head;
        self.memory.hooks = self.hooks;
        Ok(placed)
    }

    fn append(&mut self, job: &Job) -> Result<Placed, AppendError> {
        match job {
            Job::Event { event, decision, hooks } => {
                for hooks in hooks {
                    self.append_hooks(hooks)?;
                }
                let seq = match self.seq_of(event.id)? {
                    Some(seq) => seq,
                    None => self.insert(event, None)?,
                };
                self.decide(event.id.of_decision(), seq, decision.as_deref())
            }
            Job::Decision { decision, cause } => self.decide(decision.id, *cause, Some(decision)),
            Job::Checkpoint => Ok(Placed { seq: Seq::FIRST, earlier_decision: None }),
        }
    }

    /// An event has one decision; the one that is there stays.
    fn decide(
        &mut self,
        id: EventId,
        seq: Seq,
        decision: Option<&Draft>,
    ) -> Result<Placed, AppendError> {
        let earlier_decision = self
            .step
            .prepare_cached("SELECT payload FROM events WHERE id = ?1")?
            .query_row([id.as_bytes()], |row| Ok(payload::from_sql(row.get_ref(0)?)))
            .optional()?;
        if let (None, Some(decision)) = (&earlier_decision, decision) {
            self.insert(decision, Some(seq))?;
        }
        Ok(Placed { seq, earlier_decision })
    }

    /// The hooks in force get a row when they are not what the last such row says.
    fn append_hooks(&mut self, hooks: &HooksDraft) -> Result<(), AppendError> {
        let project = hooks.of_project.then_some(hooks.path.as_str());
        let key = project.map(str::to_owned);
        let mut last = match self.hooks.get(&key) {
            Some(known) => known.clone(),
            None => last_hooks(&self.step, project)?.map(|last| last.hash),
        };
        // No file, and none before: nothing to tell.
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
            .step
            .prepare_cached("SELECT seq FROM events WHERE id = ?1")?
            .query_row([id.as_bytes()], |row| row.get(0).map(Seq::from_i64))
            .optional()?)
    }

    fn insert(&mut self, draft: &Draft, cause: Option<Seq>) -> Result<Seq, AppendError> {
        let (seq, before) = match self.head {
            Some((seq, hash)) => (seq.next(), hash),
            None => (Seq::FIRST, chain::genesis(open::bus_id(&self.step)?)),
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
        self.step
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

/// The hooks that were in force last: the person's own, or those of this project's file.
pub(super) fn last_hooks(
    db: &Connection,
    project: Option<&str>,
) -> rusqlite::Result<Option<HooksDraft>> {
    // The row says whose they are, so that many of others need not be read.
    let mut rows = db.prepare_cached(
        "SELECT payload FROM events WHERE kind = 'hooks.loaded' AND context IS ?1 ORDER BY seq DESC",
    )?;
    let mut rows = rows.query([project.map(HooksDraft::context)])?;
    while let Some(row) = rows.next()? {
        let payload = payload::from_sql(row.get_ref(0)?);
        let hooks = serde_json::from_slice(&payload).ok();
        let Some(hooks) = hooks.and_then(|json| HooksDraft::from_json(&json)) else {
            // One that cannot be read is as good as none, if it can be ours.
            return Ok(None);
        };
        // There are logs with a project's rows that do not say so beside the payload.
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

    fn draft(path: &str, content: &str, of_project: bool) -> HooksDraft {
        let (path, content) = (path.to_owned(), content.to_owned());
        HooksDraft { hash: format!("hash of {content}"), path, content, of_project }
    }

    fn log() -> (tempfile::TempDir, Connection) {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let (db, _) = open::to_write(
            &log,
            open::Durability::ProcessDeath,
            open::WrittenBy::Client,
            SystemClock.now(),
        )
        .expect("a log");
        (home, db)
    }

    fn append(db: &mut Connection, memory: &mut Memory, hooks: &[HooksDraft]) {
        let mut group = Group::begin(db, memory, &SystemClock).expect("a group");
        for hooks in hooks {
            group.append_hooks(hooks).expect("hooks");
        }
        group.append_all(&[]).expect("a commit");
    }

    #[test]
    fn the_last_hooks_of_one_are_found_without_reading_those_of_others() {
        let ((_home, mut db), mut memory) = (log(), Memory::default());
        let own = draft("/h/hookbus.yaml", "mine", false);
        let project = draft("/p/.hookbus/hookbus.yaml", "theirs", true);
        append(&mut db, &mut memory, &[own.clone(), project.clone()]);
        // Whoever reads this one stumbles.
        let at = Time::from_micros(1);
        let damaged = Draft {
            id: EventId::mint(at),
            payload: b"{".to_vec(),
            ..draft("/q/.hookbus/hookbus.yaml", "", true).to_row(at)
        };
        let mut group = Group::begin(&mut db, &mut memory, &SystemClock).expect("a group");
        group.insert(&damaged, None).expect("a row");
        group.append_all(&[]).expect("a commit");
        let last = |project: Option<&str>| last_hooks(&db, project).expect("an answer");
        assert_eq!(last(None), Some(own));
        assert_eq!(last(Some(&project.path)), Some(project.clone()));
        assert_eq!(last(Some("/q/.hookbus/hookbus.yaml")), None);
    }

    #[test]
    fn that_there_never_were_any_is_remembered() {
        let ((_home, mut db), mut memory) = (log(), Memory::default());
        append(&mut db, &mut memory, &[draft("/h/hookbus.yaml", "", false)]);
        assert_eq!(memory.hooks.get(&None), Some(&None));
        // What did not come to pass is not.
        let mut group = Group::begin(&mut db, &mut memory, &SystemClock).expect("a group");
        group.append_hooks(&draft("/h/hookbus.yaml", "mine", false)).expect("hooks");
        drop(group);
        append(&mut db, &mut memory, &[draft("/h/hookbus.yaml", "mine", false)]);
        assert!(last_hooks(&db, None).expect("an answer").is_some());
    }
}
