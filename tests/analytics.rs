//! The analytics subscriber: whatever is killed, redelivered or rebuilt, and wherever rows come from, its database says
//! the same; and `stats`, `query`, DuckDB and a query on the log agree.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use hookbus::event::Agent;
use hookbus_tests::duckdb;
use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::nats::{NatsServer, python_client};
use hookbus_tests::payloads::{self, hermes_shell};
use hookbus_tests::recording::{Mixed, damage, query, record, record_after};
use serde_json::{Value, json};

const POLICY: &str = "hooks:
  tool.before:
    - {name: no-force, rule: {when: {runs: git push --force}, block: Ask a person.}}
    - {name: look, mode: shadow, rule: {when: {command: rm}, block: Would be blocked.}}
    - {name: note, rule: {when: {command: cargo}, context: Be quick.}}
  \"*\":
    - {mode: observe, analytics: true}
";

/// How often the subscriber is killed.
const KILLS: usize = 100;

/// How many events are recorded between two kills.
const EVENTS: usize = 50;

const COMMANDS: [&str; 4] =
    ["git push --force", "cargo test", "rm -r build", "curl -o page https://example.org/page"];

/// Everything that the projections hold, in one order.
fn everything(home: &Home) -> Vec<(String, Vec<String>)> {
    let views =
        ["sessions", "turns", "tool_calls", "decisions", "verdicts", "usage", "files", "hosts"];
    let of = |view: &str| (view.to_owned(), sorted(home, &format!("SELECT * FROM {view}")));
    views.into_iter().map(of).collect()
}

/// The lines of a query, without looking for new events first.
fn sorted(home: &Home, sql: &str) -> Vec<String> {
    let text = home.text(&["query", sql, "--json", "--as-is"]);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn value(home: &Home, sql: &str) -> Value {
    let line = home.text(&["query", sql, "--json"]);
    let row: Value = serde_json::from_str(line.lines().next().expect("a row")).expect("JSON");
    let fields = row.as_object().expect("an object");
    fields.values().next().cloned().expect("a value")
}

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Records the payloads of all agents, with small changes, so that sessions overlap.
fn record_all(home: &Home, before: usize, count: usize) {
    let all = payloads::all();
    let known: Vec<_> = all
        .iter()
        .filter_map(|(agent, _, bytes)| {
            let payload: Value = serde_json::from_slice(bytes).ok()?;
            payload.is_object().then(|| (agent.parse().expect("an agent"), payload))
        })
        .collect();
    record_after(home, before, count, |index| {
        let (agent, mut payload) = known[index * 13 % known.len()].clone();
        payload["session_id"] = json!(format!("session-{}", index % 17));
        if payload["tool_input"].get("command").is_some() {
            payload["tool_input"]["command"] = json!(COMMANDS[index % COMMANDS.len()]);
        }
        (agent, payload)
    });
}

#[test]
fn a_hundred_kills_leave_what_a_rebuild_makes_of_the_log() {
    let home = Home::with_hooks(POLICY);
    let mut numbers = Numbers(7);
    for round in 0..KILLS {
        record_all(&home, round * EVENTS, EVENTS);
        let mut child = home
            .command(["observe", "analytics"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        sleep(Duration::from_millis(10 + numbers.next(110)));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    }
    home.text(&["observe", "analytics", "--drain"]);
    let incremental = everything(&home);
    let empty: Vec<&String> =
        incremental.iter().filter(|(_, rows)| rows.is_empty()).map(|(view, _)| view).collect();
    assert!(empty.is_empty(), "{empty:?}");
    let hooks = home.text(&["stats", "--by", "hook", "--json"]);
    home.text(&["stats", "--rebuild", "--json"]);
    assert_eq!(everything(&home), incremental);
    assert_eq!(home.text(&["stats", "--by", "hook", "--json"]), hooks);
}

#[test]
fn what_comes_over_nats_gives_what_the_logs_give() {
    let server = NatsServer::start();
    let nats = format!("nats: {{url: \"{}\"}}\n", server.url());
    let buses = [0, 1].map(|_| {
        let home = Home::with_daemon("running");
        home.write_hooks(&format!(
            "{nats}{}",
            POLICY.replace("analytics: true", "analytics: true, source: log")
        ));
        home
    });
    let daemons: Vec<_> = buses.iter().map(Home::serve).collect();
    let collector = Home::new();
    collector
        .write_hooks(&format!("{nats}hooks:\n  \"*\":\n    - {{mode: observe, analytics: all}}\n"));
    for (round, (agent, _, bytes)) in payloads::all().iter().enumerate() {
        buses[round % 2].hook(agent, bytes);
        if round % 40 == 20 {
            let child = collector.command(["observe", "analytics"]).stderr(Stdio::null()).spawn();
            let mut child = child.expect("it starts");
            sleep(Duration::from_millis(200));
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
        }
    }
    let mut large = hermes_shell("cat large");
    large["extra"]["filler"] = "x".repeat(3 << 20).into();
    buses[0].answer("hermes", &large);
    for home in &buses {
        wait_until("everything is published", || {
            let status = home.json(&["status", "--json"]);
            status["relay"]["published"] == status["log"]["rows"]
        });
        home.text(&["stats"]);
    }
    let total: usize = buses.iter().map(|home| home.log(&["--kind", "decision"]).len()).sum();
    wait_until("everything is counted", || {
        collector.text(&["observe", "analytics", "--drain"]);
        sorted(&collector, "SELECT * FROM decisions").len() == total
    });
    let [one, other] = buses.each_ref().map(everything);
    for (((view, mut rows), (_, more)), (_, found)) in
        one.into_iter().zip(other).zip(everything(&collector))
    {
        rows.extend(more);
        rows.sort();
        assert_eq!(found, rows, "{view}");
    }
    drop(daemons);
}

/// Calls of a shell, each with its result: one of five fails, some are blocked.
fn record_calls(home: &Home, calls: usize) {
    record(home, calls * 2, |index| {
        let number = index / 2;
        let mut payload = json!({
            "hook_event_name": if index % 2 == 0 { "pre_tool_call" } else { "post_tool_call" },
            "session_id": format!("session-{}", number % 40),
            "cwd": "/srv/shop",
            "tool_name": if number % 3 == 0 { "terminal" } else { "execute_code" },
            "tool_input": {"command": COMMANDS[number % COMMANDS.len()]},
            "extra": {"tool_call_id": format!("call-{number}")},
        });
        if index % 2 == 1 {
            let result = json!({"output": "", "exit_code": u8::from(number % 5 == 0)});
            payload["extra"]["result"] = json!(result.to_string());
            payload["extra"]["status"] = json!("ok");
        }
        (Agent::Hermes, payload)
    });
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of figures, each computed in four ways")]
fn stats_query_duckdb_and_a_query_on_the_log_agree() {
    let home = Home::with_hooks(POLICY);
    record_calls(&home, 1500);
    let stats = home.json(&["stats", "--json"]);
    let calls = home.work().join("calls.parquet");
    let verdicts = home.work().join("verdicts.parquet");
    let sessions = home.work().join("sessions.parquet");
    for (view, file) in [("tool_calls", &calls), ("verdicts", &verdicts), ("sessions", &sessions)] {
        let file = file.to_string_lossy();
        home.text(&["export", "--format", "parquet", "--view", view, "--out", &file]);
    }
    let ours = |key: &str| stats["totals"][key].as_i64().expect("a number");
    let of_log = |sql: &str| query(&home, sql)[0];
    let is_event = "kind <> 'decision' AND agent <> 'hookbus'";
    let verdict = "FROM events, json_each(payload, '$.verdicts') v WHERE kind = 'decision' AND v.value ->> 'hook' =";
    let hook = |name: &str, key: &str| {
        let hooks = stats["hooks"].as_array().expect("hooks");
        hooks.iter().find(|hook| hook["hook"] == name).expect("the hook")[key].as_i64()
    };
    for (what, figure, in_log, in_query, in_duckdb) in [
        (
            "events",
            ours("events"),
            format!("SELECT count(*) FROM events WHERE {is_event}"),
            format!("SELECT count(*) FROM events WHERE {is_event}"),
            format!("SELECT sum(events)::BIGINT FROM '{}'", sessions.display()),
        ),
        (
            "sessions",
            ours("sessions"),
            format!("SELECT count(DISTINCT session) FROM events WHERE {is_event} AND session <> ''"),
            "SELECT count(*) FROM sessions WHERE session <> ''".to_owned(),
            format!("SELECT count(*) FROM '{}' WHERE session <> ''", sessions.display()),
        ),
        (
            "blocked",
            ours("blocked"),
            "SELECT count(*) FROM events WHERE kind = 'decision' AND payload ->> 'outcome' IN ('block', 'stop')".to_owned(),
            "SELECT count(*) FROM decisions WHERE outcome IN ('block', 'stop')".to_owned(),
            format!("SELECT count(*) FROM '{}' WHERE outcome = 'block'", calls.display()),
        ),
        (
            "shadow verdicts",
            hook("look", "calls").expect("a number"),
            format!("SELECT count(*) {verdict} 'look' AND v.value ->> 'shadow' = 1"),
            "SELECT calls FROM hooks WHERE hook = 'look' AND shadow = 1".to_owned(),
            format!("SELECT count(*) FROM '{}' WHERE hook = 'look' AND shadow", verdicts.display()),
        ),
        (
            "verdicts of a hook",
            hook("no-force", "blocked").expect("a number"),
            format!("SELECT count(*) {verdict} 'no-force' AND v.value ->> 'verdict' = 'block'"),
            "SELECT count(*) FROM verdicts WHERE hook = 'no-force' AND verdict = 'block'".to_owned(),
            format!("SELECT count(*) FROM '{}' WHERE hook = 'no-force' AND verdict = 'block'", verdicts.display()),
        ),
        (
            "failed calls",
            ours("failed"),
            "SELECT count(*) FROM events WHERE kind = 'tool.after' AND (payload ->> '$.extra.result') ->> 'exit_code' <> 0".to_owned(),
            "SELECT count(*) FROM tool_calls WHERE exit_code <> 0".to_owned(),
            format!("SELECT count(*) FROM '{}' WHERE status = 'failed'", calls.display()),
        ),
        (
            "tool calls",
            ours("tool_calls"),
            "SELECT count(*) FROM events WHERE kind = 'tool.before'".to_owned(),
            "SELECT sum(tool_calls) FROM sessions".to_owned(),
            format!("SELECT count(*) FROM '{}'", calls.display()),
        ),
    ] {
        assert!(figure > 0, "{what}");
        assert_eq!(of_log(&in_log), figure, "{what} in the log");
        assert_eq!(value(&home, &in_query), json!(figure), "{what} by a query");
        assert_eq!(duckdb::first_value(&in_duckdb), figure, "{what} in DuckDB");
    }
    let times = format!(
        "SELECT count(*) FROM '{}' WHERE started > TIMESTAMPTZ '2020-01-01'",
        calls.display()
    );
    assert_eq!(duckdb::first_value(&times), ours("tool_calls"), "times are timestamps");
    let csv = home.text(&["export", "--format", "csv", "--view", "tool_calls"]);
    assert_eq!(csv.lines().count(), usize::try_from(ours("tool_calls")).expect("a number") + 1);
}

#[test]
fn a_new_user_sees_figures_right_after_init() {
    let home = Home::new();
    home.text(&["init", "--yes"]);
    let empty = home.text(&["stats"]);
    assert!(empty.contains("nothing is recorded yet"), "{empty}");
    home.answer("hermes", &hermes_shell("git push --force"));
    let stats = home.text(&["stats"]);
    assert!(stats.contains("1 tool call   1 event"), "{stats}");
    // The observer that the daemon runs.
    home.text(&["observe", "analytics", "--drain"]);
    assert_eq!(home.text(&["stats"]), stats);
}

#[test]
fn tokens_are_those_that_the_agents_reported() {
    let home = Home::with_hooks(POLICY);
    let mut request = payloads::one("hermes", "post_api_request");
    request["extra"]["usage"] =
        json!({"input_tokens": 700, "output_tokens": 30, "total_tokens": 730});
    for _ in 0..3 {
        home.answer("hermes", &request);
    }
    let tokens = "SELECT sum(input_tokens) * 1000 + sum(output_tokens) FROM usage";
    assert_eq!(value(&home, tokens), json!(2_100_090));
    let stats = home.json(&["stats", "--json"]);
    assert_eq!(stats["totals"]["input_tokens"], 2100);
    assert_eq!(stats["totals"]["output_tokens"], 90);
}

#[test]
fn a_failed_command_and_a_call_that_ran_all_the_same_are_counted_as_such() {
    let home = Home::with_hooks(POLICY);
    let call = |name: &str, id: &str, command: &str| {
        json!({"hook_event_name": name, "session_id": "s", "tool_name": "terminal",
               "tool_input": {"command": command}, "extra": {"tool_call_id": id}})
    };
    home.answer("hermes", &call("pre_tool_call", "a", "false"));
    let mut failed = call("post_tool_call", "a", "false");
    failed["extra"]["result"] = json!("{\"output\": \"\", \"exit_code\": 3, \"error\": null}");
    home.answer("hermes", &failed);
    home.answer("hermes", &call("pre_tool_call", "b", "git push --force"));
    let mut ran = call("post_tool_call", "b", "git push --force");
    ran["extra"]["result"] = json!("{\"output\": \"pushed\", \"exit_code\": 0}");
    home.answer("hermes", &ran);
    let text = home.text(&[
        "query",
        "SELECT about, status, exit_code, outcome, hook, ran_anyway FROM tool_calls ORDER BY seq",
        "--csv",
    ]);
    assert_eq!(
        text,
        "about,status,exit_code,outcome,hook,ran_anyway\n\
         false,failed,3,,,0\n\
         git push --force,ok,0,block,no-force,1\n"
    );
}

#[test]
fn a_query_cannot_write_open_files_or_run_for_ever() {
    let home = Home::with_hooks(POLICY);
    home.answer("hermes", &hermes_shell("git push --force"));
    home.text(&["stats"]);
    let other = home.work().join("other.db");
    let attach = format!("ATTACH '{}' AS other", other.display());
    let vacuum = format!("VACUUM INTO '{}'", other.display());
    for sql in [
        "DELETE FROM main.events",
        "INSERT INTO analytics.meta VALUES (2, x'00', 1)",
        "UPDATE analytics.buses SET seq = 0",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "DROP VIEW sessions",
        "PRAGMA query_only = 0",
        "PRAGMA analytics.user_version = 7",
        "SELECT load_extension('x.so')",
        "SELECT * FROM pragma_database_list",
        "BEGIN IMMEDIATE",
        "DETACH analytics",
        "REINDEX",
        "",
        "-- nothing",
        &attach,
        &vacuum,
    ] {
        let output = home.run(&["query", sql]);
        assert_eq!(output.status.code(), Some(1), "{sql}");
        assert!(output.stdout.is_empty(), "{sql}");
    }
    assert!(!other.exists());
    let endless =
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
    let output = home.run(&["query", endless, "--timeout", "1"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("stopped after 1s"), "{why}");
    assert!(home.is_sound());
    assert_eq!(value(&home, "SELECT count(*) FROM decisions"), json!(1));
}

#[test]
fn the_view_of_events_has_payloads_that_are_packed() {
    let home = Home::with_hooks(POLICY);
    let mut large = hermes_shell("echo large");
    large["extra"]["filler"] = json!("long ".repeat(4000));
    home.answer("hermes", &large);
    let sql = "SELECT payload ->> '$.tool_input.command' FROM events WHERE length(payload) > 20000";
    assert_eq!(value(&home, sql), json!("echo large"));
    let count = query(&home, "SELECT count(*) FROM events WHERE packed IS NOT NULL");
    assert!(count[0] > 0, "it is packed");
}

#[test]
fn a_database_of_another_version_or_another_history_is_built_anew() {
    let home = Home::with_hooks(POLICY);
    Mixed { events: 300, sessions: 5 }.record(&home);
    let before = home.text(&["stats", "--json"]);
    let script =
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2])";
    let change = |sql: &str| {
        let file = home.path().join("analytics.db");
        let done = Command::new("python3").args(["-c", script]).arg(file).arg(sql).status();
        assert!(done.expect("python3 runs").success());
    };
    change("DROP VIEW sessions; DELETE FROM f_activity; PRAGMA user_version = 99;");
    assert_eq!(home.text(&["stats", "--json"]), before);
    change("DELETE FROM f_activity; UPDATE buses SET row = x'00000000000000000000000000000001';");
    assert_eq!(home.text(&["stats", "--json"]), before);
    change("UPDATE f_activity SET events = 0;");
    home.text(&["observe", "analytics", "--drain"]);
    assert_ne!(home.text(&["stats", "--json"]), before);
    home.text(&["stats", "--rebuild"]);
    assert_eq!(home.text(&["stats", "--json"]), before);
    fs::write(home.path().join("analytics.db"), "this is no database, but a text").expect("a file");
    let output = home.run(&["stats"]);
    assert_eq!(output.status.code(), Some(1));
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("is not an analytics database"), "{why}");
}

#[test]
fn a_damaged_row_is_told_and_the_others_are_counted() {
    let home = Home::with_hooks(POLICY);
    Mixed { events: 50, sessions: 5 }.record(&home);
    damage(&home, &["UPDATE events SET packed = x'ffff' WHERE seq = 10"]);
    let output = home.run(&["stats", "--json"]);
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("1 damaged row"), "{told}");
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(stats["totals"]["events"], 49);
}

#[test]
fn the_documentation_has_the_columns_of_every_view() {
    let home = Home::with_hooks(POLICY);
    home.answer("hermes", &hermes_shell("ls"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/docs/query.md");
    let page = fs::read_to_string(page).expect("the page");
    let listed = home.text(&["query", "--views", "--json"]);
    assert_eq!(listed.lines().count(), 10);
    for line in listed.lines() {
        let view: Value = serde_json::from_str(line).expect("JSON");
        let name = view["view"].as_str().expect("a name");
        let columns = view["columns"].as_array().expect("columns");
        let names: Vec<&str> = columns.iter().filter_map(|it| it["name"].as_str()).collect();
        let header = home.text(&["query", &format!("SELECT * FROM {name} LIMIT 0"), "--csv"]);
        assert_eq!(header.trim_end(), names.join(","), "{name} in the database");
        let (_, section) = page.split_once(&format!("\n### {name}\n")).expect("a section");
        let section = section.split("\n### ").next().expect("a section");
        for column in columns {
            let [name, kind, about] =
                ["name", "type", "about"].map(|key| column[key].as_str().expect("a text"));
            let line = format!("| `{name}` | {kind} | {about} |");
            assert!(section.contains(&line), "{line} is not in {section}");
        }
        let documented = section.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(documented, columns.len(), "{name} in the documentation");
    }
}

/// What the examples of the documentation have counted, and what the log holds.
fn counts_and_log(counts: &Path, homes: &[&Home]) -> (String, String) {
    let script = "import collections, sqlite3, sys\ncounts = collections.Counter()\n\
        for file in sys.argv[2:]:\n    counts.update(dict(sqlite3.connect(file).execute(sys.argv[1])))\n\
        print(sorted(counts.items()))";
    let run = |sql: &str, files: &[&Path]| {
        let output = Command::new("python3").args(["-c", script, sql]).args(files).output();
        let output = output.expect("python3 runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let logs: Vec<_> = homes.iter().map(|home| home.path().join("log.db")).collect();
    let logs: Vec<&Path> = logs.iter().map(AsRef::as_ref).collect();
    let in_log = "SELECT tool, count(*) FROM events WHERE kind = 'tool.before' GROUP BY tool";
    (run("SELECT tool, calls FROM tools", &[counts]), run(in_log, &logs))
}

fn example(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../subscribers/examples").join(name);
    fs::read_to_string(file).expect("an example")
}

#[test]
fn the_examples_that_read_the_log_count_every_call_once() {
    let home = Home::new();
    home.script("count_tools.py", &example("count_tools.py"));
    home.write_hooks(
        "hooks: {\"*\": [{name: count-tools, mode: observe, long_lived: true, command: ../count_tools.py, from: start}]}",
    );
    let counts = home.work().join("counts.db");
    let rust = || {
        let ran =
            Command::new(env!("CARGO_BIN_EXE_count_log")).arg(home.path()).arg(&counts).output();
        let ran = ran.expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    for round in 0..3 {
        record_all(&home, round * 200, 200);
        rust();
        let mut child = home.command(["observe", "count-tools"]).stderr(Stdio::null()).spawn();
        let child = child.as_mut().expect("it starts");
        sleep(Duration::from_millis(150));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    }
    home.text(&["observe", "count-tools", "--drain"]);
    let (by_python, in_log) = counts_and_log(&home.path().join("counts.db"), &[&home]);
    assert_eq!(by_python, in_log);
    assert_eq!(counts_and_log(&counts, &[&home]).0, in_log);
}

#[test]
fn the_examples_that_read_the_stream_count_every_call_once() {
    let server = NatsServer::start();
    let buses = [0, 1].map(|_| {
        let home = Home::with_daemon("running");
        home.write_hooks(&format!("nats: {{url: \"{}\"}}\n", server.url()));
        home
    });
    let _daemons: Vec<_> = buses.iter().map(Home::serve).collect();
    for (round, (agent, _, bytes)) in payloads::all().iter().enumerate() {
        buses[round % 2].hook(agent, bytes);
    }
    for home in &buses {
        wait_until("everything is published", || {
            let status = home.json(&["status", "--json"]);
            status["relay"]["published"] == status["log"]["rows"]
        });
    }
    let [one, other] = &buses;
    let script = one.script("count_stream.py", &example("count_stream.py"));
    let python = one.work().join("counts.db");
    let ran = Command::new("python3")
        .args([&script, &server.url(), "2"])
        .env("PYTHONPATH", python_client())
        .current_dir(one.work())
        .output()
        .expect("python3 runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let (by_python, in_logs) = counts_and_log(&python, &[one, other]);
    assert_eq!(by_python, in_logs);
    // Another name, so that it has a position of its own on the server.
    server.with_stream(async |stream, _| {
        stream.delete_consumer("count-tools").await.expect("the consumer of the other example");
    });
    let rust = one.work().join("rust.db");
    for _ in 0..2 {
        let ran =
            Command::new(env!("CARGO_BIN_EXE_count_stream")).arg(server.url()).arg(&rust).output();
        let ran = ran.expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    assert_eq!(counts_and_log(&rust, &[one, other]).0, in_logs);
}

#[test]
fn the_documentation_shows_the_examples_that_are_run() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../subscribers/docs/analytics.md");
    let page = fs::read_to_string(page).expect("the page");
    for name in ["count_tools.py", "count_stream.py", "count_log.rs", "count_stream.rs"] {
        assert!(page.contains(&example(name)), "{name}");
    }
}

#[test]
fn the_texts_of_what_was_pruned_go_and_the_figures_stay() {
    let home = Home::with_hooks(POLICY);
    for session in ["old", "new"] {
        let mut prompt = payloads::one("hermes", "pre_llm_call");
        prompt["session_id"] = json!(session);
        prompt["extra"]["user_message"] = json!(format!("secret wish of {session}"));
        home.answer("hermes", &prompt);
        let mut call = hermes_shell(&format!("git push --force secret-{session}"));
        call["session_id"] = json!(session);
        home.answer("hermes", &call);
    }
    let before = home.json(&["stats", "--json"]);
    home.text(&["prune", "--session", "old", "--yes"]);
    let after = home.json(&["stats", "--json"]);
    assert_eq!(after["totals"], before["totals"]);
    let texts = "SELECT prompt FROM sessions UNION ALL SELECT about FROM tool_calls UNION ALL SELECT reason FROM verdicts";
    let texts = sorted(&home, texts).join("\n");
    assert!(texts.contains("secret wish of new") && texts.contains("secret-new"), "{texts}");
    assert!(!texts.contains("old"), "{texts}");
}
