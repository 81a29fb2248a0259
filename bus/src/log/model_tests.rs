//! Any sequence of what can happen to a log agrees with a simple model, which is a list of rows: appends, repeated and
//! late ones, a transaction that is never committed, reopening, pruning, holds, redaction, compacting, a migration from an
//! earlier schema, a backup that is put back. After each step the log holds the same rows in the same order with the
//! same bytes, and verifying finds nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::append::append_bus_row;
use super::bus_row::SessionHold;
use super::open::{self, WriterRole};
use super::{
    BusRow, Durability, FlawKind, Found, LogPath, LogReader, OtherRun, PruneRequest, Query,
    ReadError, RecordOutcome, Recorder, RedactRequest, Restore, RowDraft, Spool, Strength,
    VerifyOptions, back_up, compact, prune, redact_rows, verify,
};
use crate::event::{Clock, Derived, EventId, Kind, Seq, SystemClock};

/// What every secret begins with.
const SECRET: &str = "SECRET-";

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Append {
        session: usize,
        text: usize,
        has_secret: bool,
        is_decided: bool,
    },
    /// The client of an earlier event tries again, with another decision.
    Repeat {
        event: usize,
    },
    /// It goes to the spool first.
    Late {
        session: usize,
        text: usize,
        has_secret: bool,
    },
    /// A process dies in the middle of its transaction.
    Uncommitted,
    Reopen,
    Prune {
        session: usize,
        strength: Strength,
    },
    Hold {
        session: usize,
    },
    Release {
        session: usize,
    },
    Redact,
    Compact,
    /// Payloads are stored whole, as an earlier version did.
    StoreWhole,
    BackUp,
    Restore,
}

fn step() -> impl Strategy<Value = Step> {
    let strength = prop_oneof![Just(Strength::Payloads), Just(Strength::Rows)];
    prop_oneof![
        8 => (0..3_usize, 0..40_usize, any::<bool>(), any::<bool>()).prop_map(
            |(session, text, has_secret, is_decided)| {
                Step::Append { session, text, has_secret, is_decided }
            }
        ),
        1 => (0..20_usize).prop_map(|event| Step::Repeat { event }),
        1 => (0..3_usize, 0..40_usize, any::<bool>())
            .prop_map(|(session, text, has_secret)| Step::Late { session, text, has_secret }),
        1 => Just(Step::Uncommitted),
        1 => Just(Step::Reopen),
        2 => (0..3_usize, strength).prop_map(|(session, strength)| Step::Prune { session, strength }),
        1 => (0..3_usize).prop_map(|session| Step::Hold { session }),
        1 => (0..3_usize).prop_map(|session| Step::Release { session }),
        2 => Just(Step::Redact),
        1 => Just(Step::Compact),
        1 => Just(Step::StoreWhole),
        1 => Just(Step::BackUp),
        1 => Just(Step::Restore),
    ]
}

/// A row as the model knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ModelRow {
    id: EventId,
    session: String,
    /// None if it was removed.
    payload: Option<Vec<u8>>,
    is_redacted: bool,
    /// The event that a decision is about.
    cause: Option<EventId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    rows: Vec<ModelRow>,
    held: BTreeSet<String>,
}

fn session(number: usize) -> String {
    format!("session-{number}")
}

/// Histories that share their beginnings. Secrets are in the middle of texts that are much alike.
fn payload(session: usize, text: usize, has_secret: bool) -> Vec<u8> {
    let message = |at: usize| {
        let words: Vec<String> =
            (0..50).map(|word| format!("{:x}", word * 7919 + at / 4)).collect();
        let middle = if has_secret && at.is_multiple_of(3) {
            format!("{SECRET}{at:04}")
        } else {
            format!("plain {at}")
        };
        json!({"role": "user", "content": format!("{} {middle} {}", words[..25].join(" "), words[25..].join(" "))})
    };
    let messages: Vec<_> = (0..text).map(message).collect();
    let secret = if has_secret { format!("{SECRET}9999") } else { String::new() };
    json!({"session_id": self::session(session), "messages": messages, "last": secret})
        .to_string()
        .into_bytes()
}

fn without_secrets(bytes: &[u8]) -> Option<Found> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let kinds = vec!["secret".to_owned(); text.matches(SECRET).count()];
    (!kinds.is_empty()).then(|| Found {
        bytes: text.replace(SECRET, "[gone] ").into_bytes(),
        kinds,
        elsewhere: None,
    })
}

/// A log and the model of it.
struct Both {
    home: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    recorder: Option<Recorder>,
    model: Model,
    copy: Option<(PathBuf, Model)>,
    copies: usize,
}

impl Both {
    /// A log of this version of the schema; a new one if there is none.
    fn new(version: Option<usize>) -> Self {
        let home = tempfile::tempdir().expect("a home");
        if let Some(version) = version {
            let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
            let file = corpus.join(format!("{version:04}.db"));
            fs::copy(file, home.path().join("log.db")).expect("a log");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut both =
            Self { home, runtime, recorder: None, model: Model::default(), copy: None, copies: 0 };
        if version.is_some() {
            both.model.rows = both.rows();
        }
        both
    }

    fn log(&self) -> LogPath {
        LogPath::in_home(self.home.path())
    }

    fn recorder(&mut self) -> Recorder {
        let (log, spool) = (self.log(), Spool::new(self.home.path(), &[]));
        let open = || {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            Recorder::for_daemon(log, Durability::ProcessDeath, spool, clock)
        };
        self.recorder.get_or_insert_with(open).clone()
    }

    /// What the log holds of agents.
    fn rows(&self) -> Vec<ModelRow> {
        let Ok(log) = LogReader::open(&self.log()) else { return Vec::new() };
        let (mut rows, mut ids) = (Vec::new(), std::collections::HashMap::new());
        let read = log.each::<ReadError>(&Query::default(), None, |row| {
            ids.insert(row.seq, row.id);
            if row.agent != "hookbus" {
                rows.push(ModelRow {
                    id: row.id,
                    session: row.session,
                    is_redacted: row.redaction.is_some_and(|it| it.original.is_some()),
                    payload: if row.removed.is_some() { None } else { Some(row.payload) },
                    cause: row.cause.and_then(|cause: Seq| ids.get(&cause).copied()),
                });
            }
            Ok(())
        });
        read.expect("rows");
        rows
    }

    fn check(&self, step: &Step) {
        assert_eq!(self.rows(), self.model.rows, "{step:?}");
        if !self.log().file().exists() {
            return;
        }
        let found = verify(&self.log(), VerifyOptions::default(), &|_| Derived::default(), |_| {})
            .expect("a log");
        let flaws = found.flaws.iter().chain(found.buses.iter().flat_map(|bus| &bus.flaws));
        let flaws: Vec<String> =
            flaws.filter(|it| it.kind != FlawKind::Derived).map(ToString::to_string).collect();
        assert_eq!(flaws, [""; 0], "{step:?}");
    }

    fn event(session: usize, payload: Vec<u8>) -> RowDraft {
        let at = SystemClock.now();
        RowDraft {
            id: EventId::mint(at),
            at,
            agent: "hermes".to_owned(),
            session: self::session(session),
            turn: None,
            name: "pre_llm_call".to_owned(),
            kind: Kind::ModelBefore,
            tool: None,
            tool_class: None,
            context: None,
            payload: payload.into(),
        }
    }

    fn decision(event: &RowDraft, outcome: &str) -> RowDraft {
        RowDraft {
            id: event.id.of_decision(),
            name: "decision".to_owned(),
            kind: Kind::Decision,
            payload: json!({"outcome": outcome}).to_string().into_bytes().into(),
            ..event.clone()
        }
    }

    fn append(&mut self, event: &RowDraft, decision: Option<RowDraft>) {
        let recorder = self.recorder();
        let recorded = recorder.event(event.clone(), decision.clone(), Vec::new(), Duration::MAX);
        let recorded = self.runtime.block_on(recorded);
        assert!(matches!(recorded, RecordOutcome::Logged { .. }), "{recorded:?}");
        for (row, cause) in [(Some(event.clone()), None), (decision, Some(event.id))] {
            let Some(row) = row.filter(|row| self.model.rows.iter().all(|it| it.id != row.id))
            else {
                continue;
            };
            let RowDraft { id, session, payload, .. } = row;
            let payload = Some(payload.to_vec());
            self.model.rows.push(ModelRow { id, session, payload, is_redacted: false, cause });
        }
    }

    fn record(&mut self, row: &BusRow) {
        let recorder = self.recorder();
        let at = SystemClock.now();
        self.runtime.block_on(recorder.bus_row(row, at, Duration::MAX));
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each thing that can happen")]
    fn run(&mut self, step: &Step) {
        let exists = self.log().file().exists();
        match step.clone() {
            Step::Append { session, text, has_secret, is_decided } => {
                let event = Self::event(session, payload(session, text, has_secret));
                let outcome = if has_secret { format!("{SECRET}7777") } else { "block".to_owned() };
                let decision = is_decided.then(|| Self::decision(&event, &outcome));
                self.append(&event, decision);
            }
            Step::Repeat { event } => {
                let of_agents =
                    |it: &&ModelRow| it.cause.is_none() && it.session.starts_with("session-");
                let Some(known) = self.model.rows.iter().filter(of_agents).nth(event).cloned()
                else {
                    return;
                };
                // As the client sent it, or otherwise: the first one counts.
                let again = Self::event(0, b"{\"other\":true}".to_vec());
                let again = RowDraft { id: known.id, session: known.session, ..again };
                let decision = Self::decision(&again, "repeated");
                self.append(&again, Some(decision));
            }
            Step::Late { session, text, has_secret } => {
                let event = Self::event(session, payload(session, text, has_secret));
                let recorder = self.recorder();
                let spooled = recorder.spool_event(event.clone(), None, &[]);
                assert!(matches!(spooled, RecordOutcome::Spooled { .. }), "{spooled:?}");
                assert_eq!(recorder.append_spooled(), 0);
                let RowDraft { id, session, payload, .. } = event;
                let payload = Some(payload.to_vec());
                let row = ModelRow { id, session, payload, is_redacted: false, cause: None };
                self.model.rows.push(row);
            }
            Step::Uncommitted => {
                let now = SystemClock.now();
                let opened = open::for_writing(
                    &self.log(),
                    Durability::ProcessDeath,
                    WriterRole::Client,
                    now,
                );
                let mut db = opened.expect("a log").db;
                let transaction = db.transaction().expect("a transaction");
                append_bus_row(&transaction, &Self::event(0, b"{}".to_vec())).expect("a row");
            }
            Step::Reopen => self.recorder = None,
            Step::Prune { session, strength } if exists => {
                let session = self::session(session);
                let query = Query { session: Some(session.clone()), ..Query::default() };
                let (by, other_run) = ("jane@desk".to_owned(), OtherRun::GiveUp);
                let request =
                    PruneRequest { query, strength, up_to: None, max_bytes: None, by, other_run };
                prune(&self.log(), &request, &SystemClock, |_, _| {}).expect("it is pruned");
                if self.model.held.contains(&session) {
                    return;
                }
                match strength {
                    Strength::Rows => self.model.rows.retain(|row| row.session != session),
                    Strength::Payloads => {
                        let rows = self.model.rows.iter_mut();
                        rows.filter(|row| row.session == session)
                            .for_each(|row| row.payload = None);
                    }
                }
            }
            Step::Hold { session } | Step::Release { session } => {
                let session = self::session(session);
                let hold = SessionHold { session: session.clone(), note: None, by: String::new() };
                if matches!(step, Step::Hold { .. }) {
                    self.record(&BusRow::SessionHeld(hold));
                    self.model.held.insert(session);
                } else {
                    self.record(&BusRow::SessionReleased(hold));
                    self.model.held.remove(&session);
                }
            }
            Step::Redact if exists => {
                let request = RedactRequest { session: None, by: "jane@desk".to_owned() };
                redact_rows(&self.log(), &request, &without_secrets, &SystemClock, |_| {})
                    .expect("it is redacted");
                for row in
                    self.model.rows.iter_mut().filter(|row| !self.model.held.contains(&row.session))
                {
                    if let Some(found) = row.payload.as_deref().and_then(without_secrets) {
                        (row.payload, row.is_redacted) = (Some(found.bytes), true);
                    }
                }
            }
            Step::Compact if exists => {
                compact(&self.log(), SystemClock.now(), |_| {}).expect("it is compacted");
            }
            Step::StoreWhole if exists => self.store_whole(),
            Step::BackUp if exists => {
                self.copies += 1;
                let file = self.home.path().join(format!("copy-{}.db", self.copies));
                back_up(&self.log(), &file).expect("a copy");
                self.copy = Some((file, self.model.clone()));
            }
            Step::Restore => {
                let Some((file, model)) = self.copy.clone() else { return };
                // As `hookbus restore` does it: without a daemon.
                self.recorder = None;
                let restore = Restore::prepare(&self.log(), &file).expect("a copy");
                restore.put_in_place(SystemClock.now()).expect("it is put back");
                self.model = model;
            }
            Step::Prune { .. } | Step::Redact | Step::Compact | Step::StoreWhole | Step::BackUp => {
            }
        }
    }

    fn store_whole(&self) {
        let now = SystemClock.now();
        let opened =
            open::for_writing(&self.log(), Durability::ProcessDeath, WriterRole::Client, now);
        let open::WritableLog { db, lock, .. } = opened.expect("a log");
        let guard = lock.acquire();
        let log = LogReader::open(&self.log()).expect("a log");
        let packed: Vec<i64> = db
            .prepare("SELECT seq FROM events WHERE packed IS NOT NULL")
            .and_then(|mut it| it.query_map([], |row| row.get(0))?.collect())
            .expect("rows");
        let trigger: String = db
            .query_row(
                "SELECT sql FROM sqlite_schema WHERE name = 'events_are_never_changed'",
                [],
                |row| row.get(0),
            )
            .expect("a trigger");
        db.execute_batch("BEGIN IMMEDIATE; DROP TRIGGER events_are_never_changed")
            .expect("no trigger");
        for seq in packed {
            let query = Query { seq: Some(Seq::from_i64(seq)), ..Query::default() };
            let row = log.last(&query, 1).expect("a row").pop().expect("a row");
            let text = String::from_utf8_lossy(&row.payload).into_owned();
            db.execute("UPDATE events SET payload = ?2, packed = NULL WHERE seq = ?1", (seq, text))
                .expect("a change");
        }
        db.execute_batch(&format!("{trigger}; COMMIT")).expect("a commit");
        drop(guard);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_agrees_with_the_model(
        version in prop_oneof![2 => Just(None), 1 => (1..=4_usize).prop_map(Some)],
        steps in proptest::collection::vec(step(), 1..24),
    ) {
        let mut both = Both::new(version);
        for step in &steps {
            both.run(step);
            both.check(step);
        }
        // In the end nothing of a secret is in the file, except in held sessions.
        if both.log().file().exists() {
            let held: Vec<String> = both.model.held.iter().cloned().collect();
            for session in held {
                let hold = SessionHold { session: session.clone(), note: None, by: String::new() };
                both.record(&BusRow::SessionReleased(hold));
                both.model.held.remove(&session);
            }
            both.run(&Step::Redact);
            both.check(&Step::Redact);
            let bytes = fs::read(both.log().file()).expect("a log");
            prop_assert!(!bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes()));
        }
    }
}
