//! Appends a group of jobs in one transaction. Each new row gets its seq and its hash here.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde_json::{Map, Value};

use super::bus_row::{BusRow, SettingsChange, changed_settings};
use super::chain::{self, Hash, Identity};
use super::identity;
use super::payload::{PayloadWriter, Stored};
use super::row::{HooksSnapshot, RowDraft};
use super::writer::{Appended, Arrival, Job};
use super::{AppendError, open, payload, schema};
use crate::event::{BusIdentity, Clock, EventId, IdentityKey, Kind, Payload, Seq};

/// What this process wrote last. Saves queries for as long as no other process has written.
#[derive(Debug, Default)]
pub(super) struct AppendCache {
    head: Option<(Seq, Hash)>,
    hooks: LastHooks,
    versions: KnownVersions,
    identities: HashSet<IdentityKey>,
    payloads: PayloadWriter,
}

/// The hooks recorded last, by project file (`None`: the user's own file). The value is `None` if no hooks
/// were ever recorded for that file.
type LastHooks = HashMap<Option<String>, Option<LastRecorded>>;

/// Path and hash of hooks that are certainly in the log.
type KnownVersions = HashSet<(String, String)>;

/// What is compared with the hooks in force.
#[derive(Debug, Clone, PartialEq)]
struct LastRecorded {
    hash: String,
    settings: Option<Map<String, Value>>,
}

/// An open transaction. The cache is updated only when it commits.
pub(super) struct AppendTransaction<'a> {
    transaction: Transaction<'a>,
    cache: &'a mut AppendCache,
    clock: &'a dyn Clock,
    /// The last row of the log, as seen by this transaction.
    head: Option<(Seq, Hash)>,
    /// The last hooks, as seen by this transaction.
    hooks: LastHooks,
    versions: KnownVersions,
    /// The identities that are certainly in the log.
    identities: HashSet<IdentityKey>,
    /// Who records the job that is being appended; none if that is not known.
    writer: Option<Arc<BusIdentity>>,
    payloads: PayloadWriter,
}

impl<'a> AppendTransaction<'a> {
    pub(super) fn begin(
        db: &'a mut Connection,
        cache: &'a mut AppendCache,
        clock: &'a dyn Clock,
    ) -> Result<Self, AppendError> {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let head = head(&transaction)?;
        if cache.head.is_none() && schema::is_archive(&transaction)? {
            return Err(AppendError::IsArchive);
        }
        let mut hooks = std::mem::take(&mut cache.hooks);
        let mut versions = std::mem::take(&mut cache.versions);
        let mut identities = std::mem::take(&mut cache.identities);
        let mut payloads = std::mem::take(&mut cache.payloads);
        if head != cache.head {
            payloads.forget(); // parts may have been deleted
            hooks.clear(); // another process has written, and its hooks may differ
            versions.clear(); // the log may be another one
            identities.clear();
        }
        let writer = None;
        Ok(Self { transaction, cache, clock, head, hooks, versions, identities, writer, payloads })
    }

    /// Appends the jobs in one commit. A job that was withdrawn (`None`) has no result.
    pub(super) fn append_all(
        mut self,
        jobs: &[Option<Arc<Job>>],
    ) -> Result<Vec<Option<Appended>>, AppendError> {
        let append = |job: &Option<Arc<Job>>| job.as_ref().map(|job| self.append(job)).transpose();
        let appended = jobs.iter().map(append).collect::<Result<_, _>>()?;
        self.transaction.commit()?;
        self.cache.head = self.head;
        self.cache.hooks = self.hooks;
        self.cache.versions = self.versions;
        self.cache.identities = self.identities;
        self.payloads.commit();
        self.cache.payloads = self.payloads;
        Ok(appended)
    }

    fn append(&mut self, job: &Job) -> Result<Appended, AppendError> {
        match job {
            Job::Event { event, decision, hooks, arrival, identity } => {
                self.writer.clone_from(identity);
                for hooks in hooks {
                    match arrival {
                        Arrival::AtOnce => self.append_hooks(hooks)?,
                        Arrival::Late => self.append_late_hooks(hooks)?,
                    }
                }
                let id = event.id.of_decision();
                match (self.seq_of(event.id)?, decision) {
                    (None, decision) => {
                        let seq = self.insert(event, None)?;
                        self.append_decision(id, seq, decision.as_deref())
                    }
                    (Some(seq), None) => self.append_decision(id, seq, None),
                    (Some(seq), Some(decision)) => self.append_late_decision(decision, seq),
                }
            }
            Job::Decision { decision, cause, identity } => {
                self.writer = Some(Arc::clone(identity));
                self.append_late_decision(decision, *cause)
            }
            Job::Checkpoint => Ok(Appended { seq: Seq::FIRST, earlier_decision: None }),
        }
    }

    /// Appends a decision about an event that is in the log already. An earlier try of the same call may have recorded
    /// the event in other words (another session, because a link between sessions was not known yet): the decision gets
    /// the columns of the event as it is recorded.
    fn append_late_decision(
        &mut self,
        decision: &RowDraft,
        seq: Seq,
    ) -> Result<Appended, AppendError> {
        let event = self
            .transaction
            .prepare_cached(
                "SELECT id, agent, session, turn, tool, tool_class FROM events WHERE seq = ?1",
            )?
            .query_row([seq.as_i64()], |row| {
                let recorded = RowDraft {
                    agent: row.get(1)?,
                    session: row.get(2)?,
                    turn: row.get(3)?,
                    tool: row.get(4)?,
                    tool_class: row.get(5)?,
                    ..decision.clone()
                };
                Ok((EventId::from_bytes(row.get(0)?), recorded))
            })
            .optional()?;
        match event {
            Some((event, decision)) if event.of_decision() == decision.id => {
                self.append_decision(decision.id, seq, Some(&decision))
            }
            Some(_) | None => Err(AppendError::Replaced), // the event was in the file before this one
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
        let earlier = self
            .transaction
            .prepare_cached("SELECT payload, digest IS NOT NULL FROM events WHERE id = ?1")?
            .query_row([id.as_bytes()], |row| {
                Ok((payload::from_sql(row.get_ref(0)?), row.get::<_, bool>(1)?))
            })
            .optional()?;
        if let (None, Some(decision)) = (&earlier, decision) {
            self.insert(decision, Some(seq))?;
        }
        // What was removed must not be taken for an answer: the hooks are asked again.
        let earlier_decision = earlier.filter(|(_, is_removed)| !is_removed).map(|(it, _)| it);
        Ok(Appended { seq, earlier_decision })
    }

    /// Records the active hooks if they or the settings beside them differ from the last recorded ones of the
    /// same file. Changed settings have a row of their own, so that they can be found.
    fn append_hooks(&mut self, hooks: &HooksSnapshot) -> Result<(), AppendError> {
        let project = hooks.of_project.then_some(hooks.path.as_str());
        let key = project.map(str::to_owned);
        let mut last = match self.hooks.get(&key) {
            Some(known) => known.clone(),
            None => last_hooks(&self.transaction, project)?
                .map(|HooksSnapshot { hash, settings, .. }| LastRecorded { hash, settings }),
        };
        let known_settings = last.as_ref().and_then(|last| last.settings.as_ref());
        let changes = match (known_settings, &hooks.settings) {
            (Some(before), Some(after)) => changed_settings(before, after),
            (None, _) | (_, None) => Vec::new(),
        };
        // There is no file, and there never was one: nothing to record.
        let never_any = last.is_none() && hooks.content.is_empty() && !hooks.has_settings();
        let is_same = last.as_ref().is_some_and(|last| last.hash == hooks.hash);
        if !never_any && (!is_same || !changes.is_empty()) {
            let settings = hooks.settings.clone().or_else(|| known_settings.cloned());
            let recorded = HooksSnapshot { settings, ..hooks.clone() };
            self.insert(&recorded.to_row(self.clock.now()), None)?;
            if !changes.is_empty() {
                let change = SettingsChange { file: hooks.path.clone(), changes };
                let row = BusRow::SettingsChanged(change).to_draft(self.clock.now());
                self.insert(&row, None)?;
            }
            last = Some(LastRecorded { hash: recorded.hash, settings: recorded.settings });
        }
        self.hooks.insert(key, last);
        Ok(())
    }

    /// Records the hooks that were in force when a spooled event happened, so that its decision can be explained.
    /// Other hooks may be in force since then, so the row is marked: it is never the last version of its file.
    fn append_late_hooks(&mut self, hooks: &HooksSnapshot) -> Result<(), AppendError> {
        let key = (hooks.path.clone(), hooks.hash.clone());
        if self.versions.contains(&key) {
            return Ok(());
        }
        // There was no file then, and there never was one before: nothing to record.
        let is_nothing = hooks.content.is_empty() && !hooks.has_settings();
        let project = hooks.of_project.then_some(hooks.path.as_str());
        if is_nothing && last_hooks(&self.transaction, project)?.is_none() {
            return Ok(());
        }
        if !self.holds_version(hooks)? {
            self.insert(&hooks.to_late_row(self.clock.now()), None)?;
        }
        self.versions.insert(key);
        Ok(())
    }

    /// Whether these hooks of this file were recorded at any time.
    fn holds_version(&self, hooks: &HooksSnapshot) -> Result<bool, AppendError> {
        let mut rows = self.transaction.prepare_cached(
            "SELECT payload FROM events WHERE kind = 'hooks.loaded' AND instr(payload, ?1) > 0",
        )?;
        let mut rows = rows.query([&hooks.hash])?;
        while let Some(row) = rows.next()? {
            let json = serde_json::from_slice(&payload::from_sql(row.get_ref(0)?)).ok();
            let known = json.and_then(|json| HooksSnapshot::from_json(&json));
            if known.is_some_and(|known| known.hash == hooks.hash && known.path == hooks.path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn seq_of(&self, id: EventId) -> Result<Option<Seq>, AppendError> {
        Ok(self
            .transaction
            .prepare_cached("SELECT seq FROM events WHERE id = ?1")?
            .query_row([id.as_bytes()], |row| row.get(0).map(Seq::from_i64))
            .optional()?)
    }

    fn insert(&mut self, draft: &RowDraft, cause: Option<Seq>) -> Result<Seq, AppendError> {
        let signed = match &self.writer {
            Some(writer) => {
                let key = writer.key();
                if !self.identities.contains(&key) {
                    identity::store(&self.transaction, writer)?;
                    self.identities.insert(key);
                }
                Signed::by(draft, key)
            }
            None => Signed::by_nobody(draft),
        };
        let (db, payloads) = (&self.transaction, &mut self.payloads);
        let (seq, hash) = insert_after(self.head, &signed, cause, db, payloads)?;
        self.head = Some((seq, hash));
        Ok(seq)
    }
}

/// The last row of the log.
fn head(db: &Connection) -> rusqlite::Result<Option<(Seq, Hash)>> {
    db.prepare_cached("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok((Seq::from_i64(row.get(0)?), row.get(1)?)))
        .optional()
}

/// Appends a row about the bus itself in the transaction of `db`, which belongs to the caller.
pub(super) fn append_bus_row(db: &Connection, draft: &RowDraft) -> Result<Seq, AppendError> {
    // Such rows are never packed.
    let mut payloads = PayloadWriter::default();
    Ok(insert_after(head(db)?, &Signed::by_nobody(draft), None, db, &mut payloads)?.0)
}

/// A row with the key of who records it. What does not change is not copied: payloads are large.
struct Signed<'a> {
    draft: &'a RowDraft,
    context: Option<Cow<'a, str>>,
    payload: Cow<'a, Payload>,
}

impl<'a> Signed<'a> {
    fn by(draft: &'a RowDraft, key: IdentityKey) -> Self {
        let mut signed = Self::by_nobody(draft);
        if draft.kind != Kind::HooksLoaded {
            signed.context = Some(identity::with_key(draft.context.as_deref(), key));
        } else if let Ok(payload) = std::str::from_utf8(&draft.payload) {
            let payload = identity::with_key(Some(payload), key).into_owned();
            signed.payload = Cow::Owned(payload.into_bytes().into());
        }
        signed
    }

    fn by_nobody(draft: &'a RowDraft) -> Self {
        let context = draft.context.as_deref().map(Cow::Borrowed);
        Self { draft, context, payload: Cow::Borrowed(&draft.payload) }
    }
}

/// Inserts a row after `head`, and returns its place and its hash.
fn insert_after(
    head: Option<(Seq, Hash)>,
    signed: &Signed<'_>,
    cause: Option<Seq>,
    db: &Connection,
    payloads: &mut PayloadWriter,
) -> Result<(Seq, Hash), AppendError> {
    let Signed { draft, context, payload: bytes } = signed;
    let (seq, before) = match head {
        Some((seq, hash)) => (seq.next(), hash),
        None => (Seq::FIRST, chain::genesis(open::bus_id(db)?)),
    };
    let identity = Identity {
        seq,
        id: draft.id,
        at: draft.at,
        agent: &draft.agent,
        name: &draft.name,
        cause,
        context: context.as_deref(),
    };
    let of = (draft.agent.as_str(), draft.kind.as_str());
    bytes.digest_ahead();
    let Stored { payload, packed } = payloads.store(db, of, bytes)?;
    let hash = chain::link(&before, &identity, &bytes.digest());
    let inserted = db
        .prepare_cached(
            "INSERT INTO events (seq, id, time, agent, session, turn, name, kind, tool, \
                 tool_class, cause, context, payload, hash, packed) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
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
            context.as_deref(),
            payload,
            hash,
            packed,
        ])?;
    if inserted == 1 { Ok((seq, hash)) } else { Err(AppendError::LeftOut) }
}

/// The hooks recorded last for the user's own file, or for this project's file. Rows of spooled events are not found:
/// their `context` has the mark `late`.
pub(super) fn last_hooks(
    db: &Connection,
    project: Option<&str>,
) -> rusqlite::Result<Option<HooksSnapshot>> {
    // `context` names the project, so that the payloads of other projects need not be read.
    last_with_context(db, project.map(HooksSnapshot::context), project)
}

/// The hooks that came last with a spooled event. They count only if no others were ever recorded.
pub(super) fn last_late_hooks(
    db: &Connection,
    project: Option<&str>,
) -> rusqlite::Result<Option<HooksSnapshot>> {
    last_with_context(db, Some(HooksSnapshot::late_context(project)), project)
}

fn last_with_context(
    db: &Connection,
    context: Option<String>,
    project: Option<&str>,
) -> rusqlite::Result<Option<HooksSnapshot>> {
    let mut rows = db.prepare_cached(
        "SELECT payload FROM events WHERE kind = 'hooks.loaded' AND context IS ?1 ORDER BY seq DESC",
    )?;
    let mut rows = rows.query([context])?;
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
        let hash = format!("hash of {content}");
        HooksSnapshot { hash, path, content, of_project, settings: None }
    }

    fn log() -> (tempfile::TempDir, Connection) {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let opened = open::for_writing(
            &log,
            open::Durability::ProcessDeath,
            open::WriterRole::Client,
            SystemClock.now(),
        );
        (home, opened.expect("a log").db)
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
            payload: b"{".to_vec().into(),
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

    fn tool_call(id: EventId, session: &str, tool: &str) -> RowDraft {
        RowDraft {
            id,
            at: Time::from_micros(1),
            agent: "hermes".to_owned(),
            session: session.to_owned(),
            turn: None,
            name: "pre_tool_call".to_owned(),
            kind: Kind::ToolBefore,
            tool: Some(tool.to_owned()),
            tool_class: Some("shell".to_owned()),
            context: None,
            payload: b"{}".to_vec().into(),
        }
    }

    #[test]
    fn a_decision_of_a_second_try_has_the_columns_of_the_event_that_the_first_try_recorded() {
        let ((_home, mut db), mut cache) = (log(), AppendCache::default());
        let id = EventId::mint(Time::from_micros(1));
        let job = |event: RowDraft, decision: Option<RowDraft>| {
            let (event, decision) = (Box::new(event), decision.map(Box::new));
            let (hooks, arrival) = (Vec::new(), Arrival::AtOnce);
            Some(Arc::new(Job::Event { event, decision, hooks, arrival, identity: None }))
        };
        let decision = RowDraft {
            id: id.of_decision(),
            name: "decision".to_owned(),
            kind: Kind::Decision,
            ..tool_call(id, "child", "sh")
        };
        let jobs = [
            job(tool_call(id, "parent", "terminal"), None),
            job(tool_call(id, "child", "sh"), Some(decision)),
        ];
        begin(&mut db, &mut cache).append_all(&jobs).expect("a commit");
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let rows: Vec<(String, String)> = db
            .prepare("SELECT session, tool FROM events ORDER BY seq")
            .and_then(|mut rows| rows.query_map([], columns)?.collect())
            .expect("rows");
        let first_try = ("parent".to_owned(), "terminal".to_owned());
        assert_eq!(rows, [first_try.clone(), first_try]);
    }
}
