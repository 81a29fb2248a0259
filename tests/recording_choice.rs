//! `record:`: what is recorded of which events is the user's to say. Hooks see everything, what is left out is marked, and a
//! replay does not compare what the log does not hold.

#![expect(clippy::expect_used, reason = "a test that cannot set up its files has failed")]

use std::fs;

use hookbus_tests::home::{Home, everything, wait_until};
use hookbus_tests::log_holder::LogHolder;
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::{self, gemini_shell, hermes_shell, one};
use serde_json::{Value, json};

const RULE: &str = "hooks:\n  tool.before:\n    - {name: guard, rule: {when: {command: forbidden}, block: guarded}}\n";

const RECORD: &str = "record:\n  tool.before: outline\n  'hermes:post_llm_call': {without: [extra.conversation_history]}\n  \
                      AfterModel: nothing\n  BeforeAgent: everything\n";

fn is_mark(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("[omitted:") && text.ends_with(']'))
}

/// Whether a file of the home holds the text.
fn holds(home: &Home, text: &str) -> bool {
    ["log.db", "log.db-wal"].iter().any(|file| {
        let bytes = fs::read(home.path().join(file)).unwrap_or_default();
        bytes.windows(text.len()).any(|it| it == text.as_bytes())
    })
}

fn record_session(home: &Home) {
    let answer = home.answer("hermes", &hermes_shell("echo quiet-words"));
    assert_eq!(answer, Value::Null, "{answer}");
    // The hook sees what the log will not hold.
    let answer = home.answer("hermes", &hermes_shell("echo forbidden-words"));
    assert_eq!(answer["decision"], "block", "{answer}");
    home.answer("gemini", &gemini_shell("echo quiet-words"));
    home.answer("hermes", &one("hermes", "post_llm_call"));
    home.answer("gemini", &one("gemini", "AfterModel"));
    home.answer("gemini", &one("gemini", "BeforeAgent"));
}

fn assert_recorded_as_chosen(home: &Home) {
    let rows = home.log(&[]);
    let calls: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "tool.before").collect();
    assert_eq!(calls.len(), 3, "{rows:?}");
    for call in &calls {
        assert_eq!(call["context"]["recorded"], "outline", "{call}");
        assert!(is_mark(&call["payload"]["tool_input"]["command"]), "{call}");
        assert_eq!(call["payload"]["tool_name"], call["tool"]);
        assert_eq!(call["payload"]["session_id"], call["session"]);
    }
    let marks: Vec<&Value> =
        calls.iter().map(|call| &call["payload"]["tool_input"]["command"]).collect();
    assert_eq!(marks[0], marks[2], "the same text is recognised");
    assert_ne!(marks[0], marks[1]);
    let decisions = rows.iter().filter(|row| row["kind"] == "decision");
    assert_eq!(decisions.filter(|row| row["payload"]["outcome"] == "block").count(), 1);
    let turn = rows.iter().find(|row| row["name"] == "post_llm_call").expect("a row");
    assert_eq!(turn["context"]["recorded"], "without");
    assert!(is_mark(&turn["payload"]["extra"]["conversation_history"]), "{turn}");
    assert_eq!(turn["payload"]["extra"]["model"], "fake-model");
    assert!(rows.iter().all(|row| row["name"] != "AfterModel"), "{rows:?}");
    let prompt = rows.iter().find(|row| row["name"] == "BeforeAgent").expect("a row");
    assert_eq!(prompt["payload"], one("gemini", "BeforeAgent"));
    assert_eq!(prompt["context"]["recorded"], Value::Null);
    for text in ["quiet-words", "hello-from-tool", "The quick brown fox"] {
        assert!(!holds(home, text), "{text}");
    }
    assert!(home.is_sound());
    let text = home.text(&["log"]);
    assert!(text.contains("(outline only)") && text.contains("(fields left out)"), "{text}");
}

#[test]
fn each_event_is_recorded_as_chosen_with_a_daemon_and_without() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks(&format!("{RECORD}{RULE}"));
        let daemon = (mode == "running").then(|| home.serve());
        record_session(&home);
        let status = String::from_utf8(home.run(&["status"]).stdout).expect("text");
        assert!(status.contains("record    tool.before: outline"), "{status}");
        drop(daemon);
        assert_recorded_as_chosen(&home);
    }
}

#[test]
fn a_spooled_event_is_spooled_as_chosen() {
    let home = Home::with_hooks(&format!("{RECORD}{RULE}"));
    home.answer("hermes", &hermes_shell("first"));
    let holder = LogHolder::flock(&home);
    home.answer("hermes", &hermes_shell("echo quiet-words"));
    home.answer("gemini", &one("gemini", "AfterModel"));
    let spooled: Vec<String> = everything(&home.path().join("spool"))
        .into_values()
        .filter_map(|bytes| Some(String::from_utf8_lossy(&bytes?).into_owned()))
        .collect();
    assert_eq!(spooled.len(), 1, "nothing of the model's chunk: {spooled:?}");
    assert!(spooled[0].contains("[omitted:16:") && !spooled[0].contains("quiet-words"));
    holder.release();
    wait_until("the spool is empty", || {
        home.answer("hermes", &hermes_shell("next"));
        home.log(&[]).iter().any(|row| row["context"]["late"] == true)
    });
    let late = home.log(&[]).into_iter().find(|row| row["context"]["late"] == true);
    assert_eq!(late.expect("a row")["context"]["recorded"], "outline");
    assert!(home.is_sound());
}

#[test]
fn every_real_payload_has_an_outline_that_verify_finds_sound() {
    let home = Home::with_hooks("record: {'*': outline}\nhooks: {}\n");
    let payloads = payloads::all();
    for (agent, _, bytes) in &payloads {
        home.hook(agent, bytes);
    }
    home.hook("hermes", b"\xff not json");
    let rows = home.log(&[]);
    let outlines = rows.iter().filter(|row| row["context"]["recorded"] == "outline").count();
    assert_eq!(outlines, payloads.len() + 1);
    assert!(home.is_sound());
    // The columns are those of the same events that were recorded whole.
    let whole = Home::new();
    for (agent, _, bytes) in &payloads {
        whole.hook(agent, bytes);
    }
    let columns = |rows: &[Value]| -> Vec<Vec<Value>> {
        let events =
            rows.iter().filter(|row| row["agent"] != "hookbus" && row["name"] != "unreadable");
        let keys = ["agent", "name", "kind", "session", "turn", "tool", "tool_class"];
        events.map(|row| keys.map(|key| row[key].clone()).to_vec()).collect()
    };
    assert_eq!(columns(&rows), columns(&whole.log(&[])));
}

#[test]
fn a_replay_does_not_compare_what_was_not_recorded() {
    let home = Home::with_hooks(&format!("record: {{tool.before: outline}}\n{RULE}"));
    home.answer("hermes", &hermes_shell("echo quiet"));
    home.answer("hermes", &hermes_shell("echo forbidden"));
    home.answer("hermes", &one("hermes", "post_llm_call"));
    let report = home.json(&["replay", "--all", "--json"]);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["not_comparable"], &summary["unchanged"]),
        (&json!(2), &json!(1)),
        "{report}"
    );
    let why = report["not_comparable"][0]["why"].as_str().expect("a reason");
    assert!(why.starts_with("not recorded: "), "{report}");
    // Nothing is explained by what the rules did not see.
    let why = home.run(&["why", "last"]);
    let stderr = String::from_utf8_lossy(&why.stderr);
    assert!(why.status.success() && stderr.contains("recorded in outline only"), "{why:?}");
    assert!(String::from_utf8_lossy(&why.stdout).contains("guarded"), "{why:?}");
}

#[test]
fn a_mistake_changes_nothing_and_a_change_is_recorded() {
    let home = Home::with_hooks(&format!("record: {{tool.before: outline}}\n{RULE}"));
    home.answer("hermes", &hermes_shell("one"));
    home.write_hooks_file(&format!("record: {{tool.before: outlin}}\n{RULE}"));
    home.answer("hermes", &hermes_shell("two"));
    let recorded = |home: &Home| -> Vec<Value> {
        let rows = home.log(&["--kind", "tool.before"]);
        rows.iter().map(|row| row["context"]["recorded"].clone()).collect()
    };
    assert_eq!(recorded(&home), ["outline", "outline"], "the last good version stays");
    let list = String::from_utf8(home.run(&["hooks", "list"]).stdout).expect("text");
    assert!(list.contains("hookbus.yaml:1:") && list.contains("`outline`"), "{list}");
    home.write_hooks_file(RULE);
    home.answer("hermes", &hermes_shell("three"));
    assert_eq!(recorded(&home), [json!("outline"), json!("outline"), Value::Null]);
    let changes = home.log(&["--kind", "settings.changed"]);
    assert!(
        changes.iter().any(|row| row.to_string().contains("record.tool.before")),
        "{changes:?}"
    );
}

#[test]
fn nats_gets_what_is_recorded() {
    let server = NatsServer::start();
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{RECORD}{RULE}", server.url()));
    let daemon = home.serve();
    record_session(&home);
    let archive = Home::new();
    archive.write_hooks(&format!(
        "nats: {{url: \"{}\"}}\nhooks:\n  \"*\":\n    - {{name: keep, mode: observe, archive: .}}\n",
        server.url()
    ));
    let total = home.log(&[]).len();
    wait_until("all rows are archived", || {
        archive.text(&["observe", "keep", "--drain"]);
        archive.log(&[]).len() == total
    });
    drop(daemon);
    assert_recorded_as_chosen(&archive);
}
