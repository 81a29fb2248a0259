//! What can happen between the steps of a prune, one step at a time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::error::PruneError;
use super::hold::HeldSessions;
use super::marks::Marks;
use super::record::Removal;
use super::remove::remove_batch;
use super::run::{prune, selects_any};
use super::selection::{OtherRun, PruneRequest, Strength};
use super::sweep::Sweep;
use crate::event::{Clock, Derived, EventId, Kind, SystemClock};
use crate::log::bus_row::SessionHold;
use crate::log::open::{self, WriterRole};
use crate::log::payload::{PayloadReader, ReadParts};
use crate::log::prune::checked_row::CheckedRow;
use crate::log::redact::RecordedRedactions;
use crate::log::space::Keeping;
use crate::log::{
    BusRow, Durability, LogPath, LogReader, Query, RecordOutcome, Recorder, Row, RowDraft, Spool,
    VerifyOptions, verify,
};

/// A recorder that stays open, as that of a daemon.
fn recorder(home: &Path) -> Recorder {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let log = LogPath::in_home(home);
    Recorder::for_daemon(log, Durability::ProcessDeath, Spool::new(home, &[]), clock)
}

fn long_payload() -> Vec<u8> {
    let message = |at: usize| {
        let words: Vec<String> = (0..60).map(|word| format!("w{}", at * 7919 + word)).collect();
        json!({"role": "user", "content": words.join(" ")})
    };
    let messages: Vec<_> = (0..40).map(message).collect();
    json!({"hook_event_name": "pre_llm_call", "session_id": "s", "messages": messages})
        .to_string()
        .into_bytes()
}

async fn append(recorder: &Recorder, session: &str, payload: &[u8]) -> i64 {
    let at = SystemClock.now();
    let event = RowDraft {
        id: EventId::mint(at),
        at,
        agent: "hermes".to_owned(),
        session: session.to_owned(),
        turn: None,
        name: "pre_llm_call".to_owned(),
        kind: Kind::ModelBefore,
        tool: None,
        tool_class: None,
        context: None,
        payload: payload.to_vec().into(),
    };
    let recorded = recorder.event(event, None, Vec::new(), Duration::MAX).await;
    let RecordOutcome::Logged { seq, .. } = recorded else { panic!("{recorded:?}") };
    seq.as_i64()
}

fn request(session: &str, strength: Strength) -> PruneRequest {
    let query = Query { session: Some(session.to_owned()), ..Query::default() };
    let by = "jane@desk".to_owned();
    let other_run = OtherRun::WaitFor;
    PruneRequest { query, strength, up_to: None, max_bytes: None, by, other_run }
}

fn row(home: &Path, seq: i64) -> Option<Row> {
    let log = LogReader::open(&LogPath::in_home(home)).expect("a log");
    let query = Query { seq: Some(crate::event::Seq::from_i64(seq)), ..Query::default() };
    log.last(&query, 1).expect("a row").pop()
}

fn writable(home: &Path) -> open::WritableLog {
    let log = LogPath::in_home(home);
    open::for_writing(&log, Durability::ProcessDeath, WriterRole::Client, SystemClock.now())
        .expect("a log")
}

fn checked(db: &rusqlite::Connection, seq: i64) -> Option<CheckedRow> {
    let parts = ReadParts::default();
    let redactions = RecordedRedactions::default();
    CheckedRow::read(db, &PayloadReader::new(db, &parts), &redactions, seq).expect("a row")
}

fn count(db: &rusqlite::Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).expect("a number")
}

fn remove(db: &mut rusqlite::Connection, seq: i64, strength: Strength) {
    let event = checked(db, seq).expect("a sound row");
    let mut held = HeldSessions::read(db).expect("holds");
    let known = (&mut held, &RecordedRedactions::default());
    let done = remove_batch(db, vec![event], known, &request("s", strength), SystemClock.now());
    done.expect("a batch");
}

/// The flaws that verifying finds.
fn flaws(home: &Path) -> Vec<String> {
    let found =
        verify(&LogPath::in_home(home), VerifyOptions::default(), &|_| Derived::default(), |_| {})
            .expect("a log");
    let all = found.flaws.iter().chain(found.buses.iter().flat_map(|bus| &bus.flaws));
    all.filter(|flaw| flaw.kind != crate::log::FlawKind::Derived).map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_part_that_a_new_row_refers_to_is_not_deleted() {
    let home = tempfile::tempdir().expect("a home");
    let (home, payload) = (home.path(), long_payload());
    let recorder = recorder(home);
    let first = append(&recorder, "s", &payload).await;
    let mut db = writable(home).db;
    remove(&mut db, first, Strength::Payloads);
    let parts = count(&db, "SELECT count(*) FROM parts");
    assert!(parts > 0);
    let mut sweep = Sweep::begin(&db, Marks::default()).expect("marks");
    let unneeded = sweep.next(&db).expect("parts").expect("some are not needed");
    // An agent sends the same again before they are deleted.
    let second = append(&recorder, "t", &payload).await;
    let record = |parts, bytes| {
        let removal = Removal { parts, bytes, ..Removal::default() };
        removal.to_draft(&request("s", Strength::Payloads), SystemClock.now())
    };
    let bytes = sweep.delete(&mut db, unneeded, record);
    assert_eq!(bytes.expect("no part"), 0);
    assert_eq!(count(&db, "SELECT count(*) FROM parts"), parts);
    assert_eq!(row(home, second).map(|row| row.payload), Some(payload));
    assert_eq!(flaws(home), [""; 0]);
}

#[tokio::test]
async fn a_daemon_does_not_refer_to_parts_that_it_remembers_and_that_are_gone() {
    let home = tempfile::tempdir().expect("a home");
    let (home, payload) = (home.path(), long_payload());
    let recorder = recorder(home);
    append(&recorder, "s", &payload).await;
    let log = LogPath::in_home(home);
    for strength in [Strength::Payloads, Strength::Rows] {
        prune(&log, &request("s", strength), &SystemClock, |_, _| {}).expect("it is pruned");
        assert_eq!(count(&writable(home).db, "SELECT count(*) FROM parts"), 0);
        let again = append(&recorder, "s", &payload).await;
        assert_eq!(row(home, again).map(|row| row.payload), Some(payload.clone()));
    }
    assert_eq!(flaws(home), [""; 0]);
}

#[tokio::test]
async fn a_sweep_that_is_killed_leaves_no_part_without_those_it_refers_to() {
    let home = tempfile::tempdir().expect("a home");
    let (home, payload) = (home.path(), long_payload());
    let recorder = recorder(home);
    let first = append(&recorder, "s", &payload).await;
    let mut db = writable(home).db;
    remove(&mut db, first, Strength::Rows);
    // Any number of the largest parts is gone: what a sweep leaves behind.
    let largest = count(&db, "SELECT max(id) FROM parts");
    db.execute_batch("DROP TRIGGER parts_are_never_deleted").expect("no trigger");
    for id in (1..=largest).rev() {
        db.execute("DELETE FROM parts WHERE id = ?1", [id]).expect("no part");
        let fresh = self::recorder(home);
        let seq = append(&fresh, "t", &payload).await;
        assert_eq!(row(home, seq).map(|row| row.payload), Some(payload.clone()), "{id}");
        remove(&mut db, seq, Strength::Payloads);
        db.execute("DELETE FROM parts WHERE id > ?1", [largest]).expect("no part");
    }
}

#[tokio::test]
async fn a_row_that_was_changed_is_not_removed() {
    let home = tempfile::tempdir().expect("a home");
    let home = home.path();
    let recorder = recorder(home);
    let first = append(&recorder, "s", br#"{"session_id":"s","is":"as recorded"}"#).await;
    let second = append(&recorder, "s", b"{}").await;
    let db = writable(home).db;
    db.execute_batch("DROP TRIGGER events_are_never_changed").expect("no trigger");
    let change = "UPDATE events SET payload = '{\"session_id\":\"s\"}' WHERE seq = ?1";
    db.execute(change, [first]).expect("a change");
    drop(db);
    let log = LogPath::in_home(home);
    for strength in [Strength::Payloads, Strength::Rows] {
        let done = prune(&log, &request("s", strength), &SystemClock, |_, _| {}).expect("pruned");
        assert_eq!(done.damaged, 1);
        assert!(row(home, first).is_some_and(|row| row.removed.is_none()));
        assert!(row(home, second).is_none_or(|row| row.removed.is_some()));
    }
    assert!(flaws(home).iter().any(|flaw| flaw.contains("altered, seq 1")));
}

#[tokio::test]
async fn a_session_that_is_held_while_it_is_pruned_stays() {
    let home = tempfile::tempdir().expect("a home");
    let home = home.path();
    let recorder = recorder(home);
    let first = append(&recorder, "s", b"{}").await;
    let mut db = writable(home).db;
    let event = checked(&db, first).expect("a sound row");
    let mut held = HeldSessions::read(&db).expect("holds");
    let hold = SessionHold { session: "s".to_owned(), note: None, by: "jane@desk".to_owned() };
    recorder.bus_row(&BusRow::SessionHeld(hold), SystemClock.now(), Duration::MAX).await;
    let request = request("s", Strength::Rows);
    let known = (&mut held, &RecordedRedactions::default());
    let done = remove_batch(&mut db, vec![event], known, &request, SystemClock.now());
    let done = done.expect("a batch");
    assert_eq!((done.rows, done.held.len()), (0, 1));
    assert!(row(home, first).is_some());
}

#[tokio::test]
async fn a_decision_whose_payload_was_removed_is_no_answer_to_a_retry() {
    let home = tempfile::tempdir().expect("a home");
    let home = home.path();
    let recorder = recorder(home);
    let at = SystemClock.now();
    let event = RowDraft {
        id: EventId::mint(at),
        at,
        agent: "hermes".to_owned(),
        session: "s".to_owned(),
        turn: None,
        name: "pre_tool_call".to_owned(),
        kind: Kind::ToolBefore,
        tool: None,
        tool_class: None,
        context: None,
        payload: b"{}".to_vec().into(),
    };
    let decision = || RowDraft {
        id: event.id.of_decision(),
        name: "decision".to_owned(),
        kind: Kind::Decision,
        payload: br#"{"outcome":"block"}"#.to_vec().into(),
        ..event.clone()
    };
    let record =
        || recorder.event(event.clone(), Some(decision()), Vec::new(), Duration::from_mins(1));
    let earlier = |outcome: RecordOutcome| match outcome {
        RecordOutcome::Logged { earlier_decision, .. } => earlier_decision,
        RecordOutcome::Spooled { .. } | RecordOutcome::Lost { .. } => panic!("{outcome:?}"),
    };
    record().await;
    assert!(earlier(record().await).is_some());
    let log = LogPath::in_home(home);
    let done = prune(&log, &request("s", Strength::Payloads), &SystemClock, |_, _| {});
    assert_eq!(done.expect("it is pruned").payloads, 2);
    assert_eq!(earlier(record().await), None);
    assert_eq!(count(&writable(home).db, "SELECT count(*) FROM events WHERE kind = 'decision'"), 1);
    assert_eq!(flaws(home), [""; 0]);
}

#[tokio::test]
async fn what_a_killed_run_left_behind_is_deleted_by_a_run_that_selects_nothing() {
    let home = tempfile::tempdir().expect("a home");
    let (home, payload) = (home.path(), long_payload());
    let recorder = recorder(home);
    let first = append(&recorder, "s", &payload).await;
    let log = LogPath::in_home(home);
    let request = request("s", Strength::Payloads);
    assert!(selects_any(&log, &request).expect("a log"));
    // A run notes what it is about to do, removes the payload, and is killed.
    Keeping::begin(&log).expect("the lock").set_sweep_due(true);
    let mut db = writable(home).db;
    remove(&mut db, first, Strength::Payloads);
    assert!(count(&db, "SELECT count(*) FROM parts") > 0);
    assert!(selects_any(&log, &request).expect("a log"), "there is something left to do");
    let done = prune(&log, &request, &SystemClock, |_, _| {}).expect("it is pruned");
    assert_eq!(done.payloads, 0);
    assert_eq!(count(&db, "SELECT count(*) FROM parts"), 0);
    assert!(!selects_any(&log, &request).expect("a log"));
    assert_eq!(flaws(home), [""; 0]);
}

#[tokio::test]
async fn a_log_that_was_pruned_to_a_size_is_not_larger() {
    let home = tempfile::tempdir().expect("a home");
    let home = home.path();
    let recorder = recorder(home);
    for number in 0..200 {
        let at = SystemClock.now();
        let draft = |id, kind, payload: String| RowDraft {
            id,
            at,
            agent: "hermes".to_owned(),
            session: format!("s{}", number / 20),
            turn: None,
            name: "pre_tool_call".to_owned(),
            kind,
            tool: None,
            tool_class: None,
            context: None,
            payload: payload.into_bytes().into(),
        };
        let id = EventId::mint(at);
        let event = draft(id, Kind::ToolBefore, json!({"n": number}).to_string());
        // Decisions are not packed, and much larger than the events that they are about.
        let reason = format!("{number} is too many").repeat(100);
        let decision = json!({"outcome": "block", "reason": reason}).to_string();
        let decision = draft(id.of_decision(), Kind::Decision, decision);
        let recorded = recorder.event(event, Some(decision), Vec::new(), Duration::MAX).await;
        assert!(matches!(recorded, RecordOutcome::Logged { .. }));
    }
    recorder.checkpoint().await;
    drop(recorder);
    let log = LogPath::in_home(home);
    let size = || std::fs::metadata(log.file()).expect("a log").len();
    let most = size() / 2;
    for strength in [Strength::Payloads, Strength::Rows] {
        let request = PruneRequest {
            query: Query::default(),
            max_bytes: Some(most),
            ..request("none", strength)
        };
        prune(&log, &request, &SystemClock, |_, _| {}).expect("it is pruned");
        assert!(size() <= most + most / 20, "{} bytes, not {most}", size());
        assert!(!selects_any(&log, &request).expect("a log"), "a second run finds nothing");
    }
    assert_eq!(flaws(home), [""; 0]);
}

#[tokio::test]
async fn a_prune_of_a_log_that_is_replaced_meanwhile_does_not_say_that_it_is_done() {
    let home = tempfile::tempdir().expect("a home");
    let home = home.path();
    let recorder = recorder(home);
    append(&recorder, "s", b"{}").await;
    drop(recorder);
    let (log, copy) = (LogPath::in_home(home), home.join("copy.db"));
    crate::log::back_up(&log, &copy).expect("a copy");
    let replace = |_, _| std::fs::rename(&copy, log.file()).expect("our files");
    let done = prune(&log, &request("s", Strength::Payloads), &SystemClock, replace);
    assert!(matches!(done, Err(PruneError::Replaced)), "{done:?}");
    assert!(row(home, 1).is_some_and(|row| row.removed.is_none()));
    assert_eq!(flaws(home), [""; 0]);
}
