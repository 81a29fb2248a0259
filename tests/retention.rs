//! `retain:` in hookbus.yaml: the daemon removes by itself what the rules name, and nothing else. A mistake removes nothing.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;

use hookbus::event::Agent;
use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::recording::{query, record, record_after};
use serde_json::{Value, json};

/// Two sessions of two agents; the events are months old.
fn old(index: usize) -> (Agent, Value) {
    let session = format!("session-{}", index % 2);
    if index.is_multiple_of(2) {
        let payload = json!({"hook_event_name": "pre_llm_call", "session_id": session, "n": index});
        (Agent::Hermes, payload)
    } else {
        let payload = json!({"hook_event_name": "BeforeAgent", "session_id": session, "n": index});
        (Agent::Gemini, payload)
    }
}

fn write(home: &Home, retain: &str) {
    home.write_hooks(&format!("hooks: {{}}\nretain:\n{retain}"));
}

/// How many payloads of agents were removed, and how many of their rows are there.
fn removed(home: &Home) -> (i64, i64) {
    let count = |sql: &str| query(home, sql)[0];
    (
        count("SELECT count(*) FROM events WHERE digest IS NOT NULL AND agent = 'hermes'"),
        count("SELECT count(*) FROM events WHERE agent = 'gemini' AND kind <> 'decision'"),
    )
}

/// When the rules ran last.
fn last_run(home: &Home) -> Value {
    let state = fs::read(home.path().join("retention.json")).expect("a run");
    serde_json::from_slice::<Value>(&state).expect("JSON")["at"].clone()
}

/// Waits until a run would have begun if it were due. The daemon must be idle for that, so nothing asks it meanwhile.
fn wait_for_schedule(home: &Home) {
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert!(home.has_daemon());
}

const RULES: &str = "  - { agent: gemini, older_than: 30d, rows: true }\n  - { kind: turn.*, older_than: 14d, keep: rows }\n";

/// The home with old events, and one that was sent just now: its session was active last.
fn home_with_old_events() -> Home {
    let home = Home::with_daemon("running");
    record(&home, 20, old);
    home.answer("hermes", &json!({"hook_event_name": "pre_llm_call", "session_id": "today"}));
    home
}

#[test]
fn the_daemon_runs_the_rules_soon_after_its_start_and_remembers_it() {
    let home = home_with_old_events();
    write(&home, RULES);
    let daemon = home.serve();
    wait_until("the rules ran", || removed(&home) == (10, 0));
    wait_until("it is told", || {
        home.json(&["status", "--json"])["retention"]["last"]["rows"] == 10
    });
    let status = home.text(&["status"]);
    assert!(status.contains("retain    2 rules, last run "), "{status}");
    assert!(home.is_sound());
    // What was sent today is there, and so are the records.
    assert_eq!(home.log(&["--session", "today"]).len(), 1);
    let records = home.log(&["--kind", "log.pruned"]);
    assert!(
        records
            .iter()
            .any(|it| it["payload"]["by"].as_str().is_some_and(|by| by.starts_with("retain: of "))),
        "{records:?}"
    );
    drop(daemon);
    // The next daemon knows that it is not due.
    let at = last_run(&home);
    record_after(&home, 20, 4, old);
    home.answer("hermes", &json!({"hook_event_name": "pre_llm_call", "session_id": "today"}));
    let daemon = home.serve();
    wait_for_schedule(&home);
    assert_eq!(last_run(&home), at);
    // The user can run them at any time.
    let said = home.text(&["prune", "--yes"]);
    assert!(said.starts_with("removed "), "{said}");
    assert_eq!(removed(&home), (12, 0));
    drop(daemon);
}

#[test]
fn a_mistake_removes_nothing_and_is_told_with_its_line() {
    let home = home_with_old_events();
    write(&home, "  - { agent: gemini, older_than: 30d, rows: true }\n");
    home.answer("hermes", &json!({"hook_event_name": "pre_llm_call", "session_id": "today"}));
    // Now it is broken; the earlier version does not count.
    write(&home, "  - { agent: gemini, older_than: 300 }\n");
    let daemon = home.serve();
    wait_for_schedule(&home);
    assert_eq!(removed(&home), (0, 10));
    let status = home.text(&["status"]);
    assert!(
        status.contains("retain    hookbus.yaml, line 3: `older_than` is an age of at least a day"),
        "{status}"
    );
    let refused = home.run(&["prune", "--yes"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("nothing was removed"), "{said}");
    // A file that cannot be read at all.
    home.write_hooks_file("hooks: {}\nretain: [{ older_than: 30d }\n");
    let refused = home.run(&["prune", "--yes"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nothing is removed"), "{refused:?}");
    assert_eq!(removed(&home), (0, 10));
    drop(daemon);
}

#[test]
fn the_rules_can_be_tried_and_a_held_session_stays() {
    let home = home_with_old_events();
    let refused = home.run(&["prune", "--yes"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`retain:`"), "{refused:?}");
    write(&home, "  - { older_than: 30d, rows: true }\n  - { max_size: 900GB }\n");
    home.text(&["hold", "session-0"]);
    let plan = home.json(&["prune", "--dry-run", "--json"]);
    assert_eq!(plan["rules"][0]["events"], 0, "{plan}");
    assert_eq!(
        (&plan["rules"][1]["events"], &plan["rules"][1]["line"]),
        (&json!(10), &json!(3)),
        "{plan}"
    );
    let done = home.json(&["prune", "--yes", "--json"]);
    assert_eq!((&done["rows"], removed(&home).1), (&json!(10), 0), "{done}");
    assert_eq!(query(&home, "SELECT count(*) FROM events WHERE session = 'session-0'")[0], 10);
    assert!(home.is_sound());
    // The change of the setting is a row of the log.
    home.answer("hermes", &json!({"hook_event_name": "pre_llm_call", "session_id": "today"}));
    let text = fs::read_to_string(home.path().join("hookbus.yaml")).expect("a file");
    home.write_hooks_file(&text.replace("30d", "60d"));
    home.answer("hermes", &json!({"hook_event_name": "pre_llm_call", "session_id": "today"}));
    let changes = home.log(&["--kind", "settings.changed"]);
    assert!(changes.iter().any(|it| it["payload"].to_string().contains("60d")), "{changes:?}");
}
