//! The number of threads changes nothing about what is found, and a removal meanwhile is noticed.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proptest::prelude::*;
use rusqlite::Connection;

use super::removals::last_record;
use super::{Verification, VerifyOptions, verify};
use crate::event::{Clock, Derived, EventId, Kind, SystemClock};
use crate::log::open::{self, WriterRole};
use crate::log::{
    Durability, LogPath, LogReader, OtherRun, PruneRequest, Query, RecordOutcome, Recorder,
    RowDraft, Spool, Strength, prune,
};

/// More than three pages.
const ROWS: i64 = 3200;

/// A log, made once; each case changes a copy of it.
fn original() -> &'static Path {
    static LOG: OnceLock<tempfile::TempDir> = OnceLock::new();
    LOG.get_or_init(|| {
        let home = tempfile::tempdir().expect("a home");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(record(home.path()));
        home
    })
    .path()
}

async fn record(home: &Path) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let spool = Spool::new(home, &[]);
    let recorder =
        Recorder::for_daemon(LogPath::in_home(home), Durability::ProcessDeath, spool, clock);
    let rows = (1..=ROWS).map(|number| {
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
            payload: format!("{{\"number\": {number}}}").into_bytes().into(),
        };
        recorder.event(event, None, Vec::new(), Duration::MAX)
    });
    for outcome in futures_util::future::join_all(rows).await {
        assert!(matches!(outcome, RecordOutcome::Logged { .. }), "{outcome:?}");
    }
    recorder.checkpoint().await;
}

/// What another program does to a log.
#[derive(Debug, Clone)]
enum Tampering {
    Change(i64),
    Remove(i64, i64),
    RemoveAndRenumber(i64, i64),
    Swap(i64, i64),
    Insert(i64),
    Hash(i64),
    Derived(i64),
    Unreadable(i64),
    Payload(i64),
    SayRemoved(i64, i64),
    Far(i64),
}

impl Tampering {
    fn apply(&self, db: &Connection) -> rusqlite::Result<()> {
        let copied = "x'00000000000070008000000000000000', time, agent, session, turn, name, kind, tool, tool_class, cause, \
                      context, payload, hash, packed, digest";
        let sql = match self {
            Self::Change(seq) => format!("UPDATE events SET payload = '{{}}' WHERE seq = {seq}"),
            Self::Remove(first, count) => {
                format!("DELETE FROM events WHERE seq BETWEEN {first} AND {first} + {count}")
            }
            Self::RemoveAndRenumber(first, count) => format!(
                "DELETE FROM events WHERE seq BETWEEN {first} AND {first} + {count}; \
                 UPDATE events SET seq = -seq WHERE seq > {first}; \
                 UPDATE events SET seq = -seq - {count} - 1 WHERE seq < 0"
            ),
            Self::Swap(one, other) => format!(
                "UPDATE events SET seq = -1 WHERE seq = {one}; UPDATE events SET seq = {one} WHERE seq = {other}; \
                 UPDATE events SET seq = {other} WHERE seq = -1"
            ),
            Self::Insert(after) => format!(
                "UPDATE events SET seq = -seq WHERE seq > {after}; UPDATE events SET seq = -seq + 1 WHERE seq < 0; \
                 INSERT INTO events SELECT {after} + 1, {copied} FROM events WHERE seq = {after}"
            ),
            Self::Hash(seq) => format!("UPDATE events SET hash = zeroblob(32) WHERE seq = {seq}"),
            Self::Derived(seq) => format!("UPDATE events SET kind = 'other' WHERE seq = {seq}"),
            Self::Unreadable(seq) => format!("UPDATE events SET id = x'00' WHERE seq = {seq}"),
            Self::Payload(seq) => format!(
                "UPDATE events SET payload = '{{}}', digest = zeroblob(32) WHERE seq = {seq}"
            ),
            Self::SayRemoved(first, count) => format!(
                "DELETE FROM events WHERE seq BETWEEN {first} AND {first} + {count}; \
                 INSERT INTO removed VALUES ({first}, {first} + {count}, zeroblob(32), {first} + {count} + 1)"
            ),
            Self::Far(seq) => {
                format!("UPDATE events SET seq = 9223372036854775807 WHERE seq = {seq}")
            }
        };
        db.execute_batch(&sql)
    }
}

fn tampering() -> impl Strategy<Value = Tampering> {
    // Often at the edge of a page.
    let seq = prop_oneof![1..=ROWS, 995..=1005_i64, 1995..=2005_i64, Just(ROWS), Just(1)].boxed();
    let pair = (seq.clone(), prop_oneof![0..4_i64, 0..1500_i64]).boxed();
    prop_oneof![
        seq.clone().prop_map(Tampering::Change),
        pair.clone().prop_map(|(first, count)| Tampering::Remove(first, count)),
        pair.clone().prop_map(|(first, count)| Tampering::RemoveAndRenumber(first, count)),
        (seq.clone(), seq.clone()).prop_map(|(one, other)| Tampering::Swap(one, other)),
        seq.clone().prop_map(Tampering::Insert),
        seq.clone().prop_map(Tampering::Hash),
        seq.clone().prop_map(Tampering::Derived),
        seq.clone().prop_map(Tampering::Unreadable),
        seq.clone().prop_map(Tampering::Payload),
        pair.prop_map(|(first, count)| Tampering::SayRemoved(first, count)),
        seq.prop_map(Tampering::Far),
    ]
}

/// The log in `home` after all that; some of it may be refused, such as a second row with the same id.
fn tamper(home: &Path, all: &[Tampering]) {
    let log = LogPath::in_home(home);
    std::fs::copy(LogPath::in_home(original()).file(), log.file()).expect("a copy");
    let opened =
        open::for_writing(&log, Durability::ProcessDeath, WriterRole::Client, SystemClock.now());
    let db = opened.expect("a log").db;
    let mut statement =
        db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").expect("triggers");
    let names = statement.query_map([], |row| row.get::<_, String>(0)).expect("triggers");
    let names: Vec<String> = names.collect::<Result<_, _>>().expect("names");
    for name in names {
        db.execute_batch(&format!("DROP TRIGGER {name}")).expect("a trigger");
    }
    for tampering in all {
        let transaction = db.unchecked_transaction().expect("a transaction");
        if tampering.apply(&transaction).is_ok() {
            transaction.commit().expect("a change");
        }
    }
}

fn verify_with(home: &Path, threads: usize, start: bool) -> Verification {
    let log = LogPath::in_home(home);
    let hash = |row: &rusqlite::Row<'_>| row.get::<_, [u8; 32]>(0);
    let at_1500 = || {
        let reader = LogReader::open(&log).expect("a log");
        let hash =
            reader.db.query_row("SELECT hash FROM events WHERE seq = 1500", [], hash).ok()?;
        Some((crate::event::Seq::from_i64(1500), hash))
    };
    let threads = NonZeroUsize::new(threads).expect("a number");
    let options = VerifyOptions { threads, start: if start { at_1500() } else { None } };
    let derive = |_: &crate::event::DerivedFrom<'_>| Derived {
        kinds: vec!["tool.before".to_owned()],
        ..Derived::default()
    };
    verify(&log, options, &derive, |_| {}).expect("a log")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_number_of_threads_finds_what_one_thread_finds(
        all in prop::collection::vec(tampering(), 0..4), threads in 2..9_usize, start: bool,
    ) {
        let home = tempfile::tempdir().expect("a home");
        tamper(home.path(), &all);
        let serial = verify_with(home.path(), 1, start);
        let parallel = verify_with(home.path(), threads, start);
        prop_assert_eq!(&serial.flaws, &parallel.flaws);
        prop_assert_eq!(&serial, &parallel);
    }
}

#[test]
fn an_unchanged_log_of_several_pages_is_sound() {
    let home = tempfile::tempdir().expect("a home");
    std::fs::copy(LogPath::in_home(original()).file(), LogPath::in_home(home.path()).file())
        .expect("a copy");
    for (threads, start) in [(1, false), (3, false), (3, true)] {
        let found = verify_with(home.path(), threads, start);
        assert!(found.is_sound(), "{found:?}");
        let rows = if start { ROWS - 1500 } else { ROWS };
        assert_eq!(found.buses[0].rows, rows.unsigned_abs());
    }
}

/// What makes `verify` read a log again: a page that was read before a removal, and one that was read after it, do not belong
/// together.
#[test]
fn a_removal_of_payloads_alone_is_noticed_by_those_who_read_meanwhile() {
    let home = tempfile::tempdir().expect("a home");
    let log = LogPath::in_home(home.path());
    std::fs::copy(LogPath::in_home(original()).file(), log.file()).expect("a copy");
    let last = || last_record(&LogReader::open(&log).expect("a log").db).expect("a number");
    assert_eq!(last(), 0);
    let query = Query { session: Some("s".to_owned()), ..Query::default() };
    let request = PruneRequest {
        query,
        strength: Strength::Payloads,
        up_to: None,
        max_bytes: None,
        by: "jane@desk".to_owned(),
        other_run: OtherRun::WaitFor,
    };
    prune(&log, &request, &SystemClock, |_, _| {}).expect("payloads are removed");
    assert!(last() > ROWS, "{}", last());
}
