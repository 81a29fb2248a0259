//! What is in a database follows from the rows of each bus alone: not from how they were grouped into transactions,
//! how often they were delivered, when the process was restarted, or how the rows of many buses were mixed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use hookbus::dialect::{Arrival, decode};
use hookbus::event::{Agent, BusId, Clock, EventId, Kind, Seq, SystemClock, Time, Wire};
use hookbus::log::{LogPath, Row, RowDraft};
use rusqlite::types::Value;
use serde_json::json;

use super::{
    AnalyticsDatabase, AnalyticsError, AnalyticsRow, By, QueryError, QueryLimits, Querying, Stats,
    VIEWS, open,
};

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
        payload: draft.payload.to_vec(),
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
            raw: raw.clone().into(),
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
                payload: decision.to_string().into_bytes().into(),
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

/// A row about the bus itself.
fn bus_row(seq: i64, kind: Kind, payload: &serde_json::Value) -> Row {
    let rows = recorded(1, 1);
    let like = rows.first().expect("a row").clone();
    Row {
        seq: Seq::from_i64(seq),
        id: EventId::mint(like.at),
        agent: "hookbus".to_owned(),
        session: String::new(),
        name: kind.as_str().to_owned(),
        kind: kind.as_str().to_owned(),
        payload: payload.to_string().into_bytes(),
        ..like
    }
}

/// An event of Hermes in the session `s`.
fn hermes(seq: i64, payload: &serde_json::Value) -> Row {
    let at = Time::from_micros(1_790_000_000_000_000 + seq * 1_000_000);
    let mut payload = payload.clone();
    payload["session_id"] = json!("s");
    let raw = payload.to_string().into_bytes();
    let event = decode(Arrival {
        id: EventId::mint(at),
        at,
        agent: Agent::Hermes,
        wire: Wire::default(),
        raw: raw.clone().into(),
        session_hint: None,
    });
    row(RowDraft::of_event(&event, None, raw), seq, None)
}

fn texts(path: &Path, sql: &str) -> Vec<String> {
    let db = open::for_reading(path).expect("a database");
    let mut statement = db.prepare(sql).expect("a query");
    let rows = statement.query_map([], |row| row.get::<_, Value>(0)).expect("rows");
    rows.map(|row| format!("{:?}", row.expect("a row"))).collect()
}

#[test]
fn numbers_that_no_honest_agent_reports_do_not_stop_the_count() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("analytics.db");
    let mut database = AnalyticsDatabase::open(&path, SystemClock.now()).expect("a database");
    let mut seq = 0;
    let mut next = |payload: &serde_json::Value| {
        seq += 1;
        // One row per transaction, so that sums are added in SQLite.
        add(&mut database, bus(1), &[hermes(seq, payload)]);
    };
    for span in [json!(9.2e15), json!(9_223_372_036_854_775_u64), json!(u64::MAX), json!(-5)] {
        for _ in 0..3 {
            next(&json!({"hook_event_name": "post_tool_call", "tool_name": "terminal",
                         "tool_input": {"command": "ls"}, "extra": {"duration_ms": span}}));
        }
    }
    for number in [json!(u64::MAX), json!(-7), json!(1e300), json!("12"), json!(null), json!([1])] {
        let usage = json!({"input_tokens": number, "output_tokens": 5, "cost": number});
        next(&json!({"hook_event_name": "post_api_request", "extra": {"usage": usage}}));
    }
    for _ in 0..20 {
        let usage = json!({"input_tokens": 1_099_511_627_775_u64, "cost_usd": 999_999.0});
        next(&json!({"hook_event_name": "post_api_request", "extra": {"usage": usage}}));
    }
    // As much as 64 bits hold, in two hours and two scopes.
    for (table, column) in [("f_activity", "cost"), ("f_tools", "took")] {
        let db = open::for_writing(&path).expect("a database");
        let most = format!("UPDATE {table} SET {column} = 9223372036854775807");
        db.execute_batch(&most).expect("a change");
        let copy = format!(
            "CREATE TEMP TABLE t AS SELECT * FROM {table}; UPDATE t SET hour = hour + 1; INSERT INTO {table} SELECT * FROM t"
        );
        db.execute_batch(&copy).expect("more rows");
    }
    next(&json!({"hook_event_name": "post_api_request", "extra": {"usage": {"cost": 2.5}}}));
    next(&json!({"hook_event_name": "post_tool_call", "tool_name": "terminal",
                 "tool_input": {"command": "ls"}, "extra": {"duration_ms": 3}}));
    let stats = Stats::open(&path).expect("a database");
    let totals = stats.totals(None).expect("totals");
    let at = |name: &str| totals.columns.iter().position(|it| it == name).expect("a column");
    assert_eq!(totals.rows[0][at("output_tokens")], Value::Integer(2 * 6 * 5));
    assert_eq!(totals.rows[0][at("input_tokens")], Value::Integer(2 * 20 * 1_099_511_627_775));
    for by in By::ALL {
        stats.by(by, None).expect("figures");
        assert_eq!(By::parse(by.as_str()), Some(by));
    }
    assert_eq!(
        texts(&path, "SELECT count(*) FROM tool_calls WHERE took_ms > 1e10"),
        ["Integer(0)"]
    );
}

#[test]
fn the_prompt_of_a_session_is_the_first_one_that_is_left() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("analytics.db");
    let prompt = |seq, text: &str| {
        hermes(seq, &json!({"hook_event_name": "pre_llm_call", "extra": {"user_message": text}}))
    };
    let mut database = AnalyticsDatabase::open(&path, SystemClock.now()).expect("a database");
    let rows = [prompt(1, "first"), prompt(2, "second"), prompt(3, "third")];
    add(&mut database, bus(1), &rows);
    let session = "SELECT prompt FROM sessions";
    let pruned = |seq, seqs: &str| {
        bus_row(seq, Kind::LogPruned, &json!({"payloads": {"count": 1, "seqs": seqs}}))
    };
    add(&mut database, bus(1), &[pruned(4, "3")]);
    assert_eq!(texts(&path, session), ["Text(\"first\")"]);
    add(&mut database, bus(1), &[pruned(5, "1")]);
    assert_eq!(texts(&path, session), ["Text(\"second\")"]);
    add(&mut database, bus(1), &[pruned(6, "2")]);
    assert_eq!(texts(&path, session), ["Null"]);
}

#[test]
fn what_was_redacted_is_not_left_in_a_path() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("analytics.db");
    let call = json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal", "cwd": "/srv",
                      "tool_input": {"command": "cat secret-file"}});
    let mut database = AnalyticsDatabase::open(&path, SystemClock.now()).expect("a database");
    add(&mut database, bus(1), &[hermes(1, &call)]);
    let found = "SELECT path FROM files UNION ALL SELECT about FROM tool_calls";
    assert_eq!(texts(&path, found), ["Text(\"/srv/secret-file\")", "Text(\"cat secret-file\")"]);
    let redacted = bus_row(2, Kind::LogRedacted, &json!({"rows": {"count": 1, "seqs": "1"}}));
    add(&mut database, bus(1), &[redacted]);
    assert_eq!(texts(&path, found), ["Text(\"(payload removed)\")"]);
}

#[test]
fn what_a_reader_does_with_a_row_does_not_count_as_time_of_the_query() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("analytics.db");
    AnalyticsDatabase::open(&path, SystemClock.now()).expect("a database");
    let log = LogPath::in_home(folder.path());
    let mut querying = Querying::open(&log, &path).expect("a connection");
    let limits = QueryLimits { time: Duration::from_secs(1), rows: None };
    let sql = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) SELECT x FROM n";
    let mut rows = 0;
    let read = querying.run::<QueryError>(sql, limits, &mut |_| Ok(()), &mut |_| {
        if rows == 0 {
            sleep(limits.time + Duration::from_millis(200));
        }
        rows += 1;
        Ok(())
    });
    assert!(matches!(read, Ok(false)), "{read:?}");
    assert_eq!(rows, 20_000);
}
