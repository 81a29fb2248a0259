//! What is in a database follows from the rows of each bus alone: not from how they were grouped into transactions,
//! how often they were delivered, when the process was restarted, or how the rows of many buses were mixed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hookbus::dialect::{Arrival, decode};
use hookbus::event::{Agent, BusId, Clock, EventId, Kind, Seq, SystemClock, Time, Wire};
use hookbus::log::{Row, RowDraft};
use rusqlite::types::Value;
use serde_json::json;

use super::{AnalyticsDatabase, AnalyticsError, AnalyticsRow, VIEWS, open};

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).expect("32 bits") % limit
    }
}

fn bus(number: u8) -> BusId {
    BusId::from_bytes([number; 16])
}

fn row(draft: RowDraft, seq: i64, cause: Option<i64>) -> Row {
    Row {
        seq: Seq::from_i64(seq),
        id: draft.id,
        at: draft.at,
        agent: draft.agent,
        session: draft.session,
        turn: draft.turn,
        name: draft.name,
        kind: draft.kind.as_str().to_owned(),
        tool: draft.tool,
        tool_class: draft.tool_class,
        cause: cause.map(Seq::from_i64),
        context: draft.context,
        payload: draft.payload,
        removed: None,
        redaction: None,
        hash: [0; 32],
        origin: None,
        identity: None,
    }
}

/// Events of all agents in a few sessions, with decisions about tool calls and holes between seqs.
fn recorded(seed: u64, count: usize) -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/payloads");
    let mut payloads = Vec::new();
    for agent in [Agent::Hermes, Agent::Gemini, Agent::Claude, Agent::Codex] {
        let files = fs::read_dir(folder.join(agent.as_str())).expect("payloads");
        let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        files.sort();
        payloads.extend(files.into_iter().map(|file| (agent, fs::read(file).expect("a payload"))));
    }
    let (mut numbers, mut rows, mut seq) = (Numbers(seed), Vec::new(), 0);
    for index in 0..count {
        let (agent, bytes) = &payloads[numbers.below(payloads.len())];
        let Ok(mut payload) = serde_json::from_slice::<serde_json::Value>(bytes) else { continue };
        if !payload.is_object() {
            continue;
        }
        payload["session_id"] = json!(format!("session-{}", numbers.below(4)));
        let at = Time::from_micros(
            1_790_000_000_000_000 + i64::try_from(index).expect("small") * 700_000_000,
        );
        let raw = payload.to_string().into_bytes();
        let event = decode(Arrival {
            id: EventId::mint(at),
            at,
            agent: *agent,
            wire: Wire::default(),
            raw: raw.clone(),
            session_hint: None,
        });
        seq += 1 + i64::try_from(numbers.below(7) / 6).expect("small");
        let draft = RowDraft::of_event(&event, None, raw);
        rows.push(row(draft.clone(), seq, None));
        if event.kind == Kind::ToolBefore {
            let outcome = ["block", "ask", "context", "none"][numbers.below(4)];
            let decision = json!({"outcome": outcome, "ms": 0.3, "verdicts": [
                {"hook": "a", "verdict": outcome, "reason": "why", "ms": 0.1},
                {"hook": "b", "verdict": "block", "shadow": true, "ms": 12.5},
                {"hook": "c", "verdict": "none", "failed": true, "failure": "gone", "ms": 70_000.0},
            ]});
            let draft = RowDraft {
                id: draft.id.of_decision(),
                name: "decision".to_owned(),
                kind: Kind::Decision,
                payload: decision.to_string().into_bytes(),
                ..draft
            };
            seq += 1;
            rows.push(row(draft, seq, Some(seq - 1)));
        }
    }
    rows
}

/// Every row of every view.
fn everything(path: &Path) -> BTreeMap<&'static str, Vec<String>> {
    let db = open::for_reading(path).expect("a database");
    let of = |name: &'static str| {
        let mut statement = db.prepare(&format!("SELECT * FROM {name}")).expect("a view");
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..columns).map(|at| row.get::<_, Value>(at)).collect::<Result<Vec<_>, _>>()
        });
        let rows = rows.expect("rows").map(|row| format!("{:?}", row.expect("a row")));
        let mut rows: Vec<String> = rows.collect();
        rows.sort();
        (name, rows)
    };
    VIEWS.iter().filter(|view| !view.is_of_log).map(|view| of(view.name)).collect()
}

fn add(database: &mut AnalyticsDatabase, bus: BusId, rows: &[Row]) {
    let rows = rows.iter().map(|row| AnalyticsRow { bus, row });
    database.add(rows).expect("they are counted");
}

#[test]
fn batches_restarts_and_redelivery_change_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let now = SystemClock.now();
    for seed in 1..=6 {
        let rows = recorded(seed, 400);
        let whole = folder.path().join(format!("whole-{seed}.db"));
        add(&mut AnalyticsDatabase::open(&whole, now).expect("a database"), bus(1), &rows);
        let parts = folder.path().join(format!("parts-{seed}.db"));
        let mut numbers = Numbers(seed);
        let mut database = AnalyticsDatabase::open(&parts, now).expect("a database");
        let mut done = 0;
        while done < rows.len() {
            // Some rows are delivered again, and sometimes by another process.
            let from = done.saturating_sub(numbers.below(30));
            let to = (done + 1 + numbers.below(60)).min(rows.len());
            if numbers.below(3) == 0 {
                database = AnalyticsDatabase::open(&parts, now).expect("a database");
            }
            if numbers.below(4) == 0 {
                let mut other = AnalyticsDatabase::open(&parts, now).expect("a database");
                add(&mut other, bus(1), &rows[from..to]);
            }
            add(&mut database, bus(1), &rows[from..to]);
            done = to;
        }
        let (whole, parts) = (everything(&whole), everything(&parts));
        assert_eq!(whole, parts, "seed {seed}");
        let empty = whole.iter().find(|(_, rows)| rows.is_empty()).map(|(view, _)| *view);
        assert!(empty.is_none_or(|view| view == "hosts"), "{empty:?}");
    }
}

#[test]
fn rows_of_many_buses_can_be_mixed_in_any_way() {
    let folder = tempfile::tempdir().expect("a directory");
    let (one, other) = (recorded(21, 200), recorded(22, 200));
    let now = SystemClock.now();
    let apart = folder.path().join("apart.db");
    let mut database = AnalyticsDatabase::open(&apart, now).expect("a database");
    add(&mut database, bus(2), &other);
    add(&mut database, bus(1), &one);
    let mixed = folder.path().join("mixed.db");
    let mut database = AnalyticsDatabase::open(&mixed, now).expect("a database");
    let (mut numbers, mut at) = (Numbers(5), [0, 0]);
    while at != [one.len(), other.len()] {
        let which = numbers.below(2);
        let (rows, number) = [(&one, 1), (&other, 2)][which];
        let to = (at[which] + numbers.below(20)).min(rows.len());
        add(&mut database, bus(number), &rows[at[which]..to]);
        at[which] = to;
    }
    assert_eq!(everything(&apart), everything(&mixed));
}

#[test]
fn a_writer_notices_that_the_database_was_built_anew_and_that_a_log_has_another_history() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("analytics.db");
    let rows = recorded(3, 40);
    let now = SystemClock.now();
    let mut database = AnalyticsDatabase::open(&path, now).expect("a database");
    add(&mut database, bus(1), &rows[..20]);
    AnalyticsDatabase::open(&path, now).expect("a database").reset(now).expect("an empty one");
    let next = || rows[20..].iter().map(|row| AnalyticsRow { bus: bus(1), row });
    assert!(matches!(database.add(next()), Err(AnalyticsError::Rebuilt)));
    assert!(database.position_of(bus(1)).expect("a position").is_none());
    add(&mut database, bus(1), &rows);
    let last = rows.last().expect("rows");
    let restored = Row { id: EventId::mint(now), ..last.clone() };
    let again = [AnalyticsRow { bus: bus(1), row: &restored }];
    assert!(matches!(database.add(again), Err(AnalyticsError::Diverged)));
}
