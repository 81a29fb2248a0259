//! Queries of the log: filters, sessions, timelines, the hash chain, and the demo that shows them.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use hookbus_tests::agents::run_at_terminal;
use hookbus_tests::home::Home;
use hookbus_tests::payloads::{self, gemini_shell, hermes_shell};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - name: guard\n      rule: {when: {command: rm}, block: guarded}\n";

fn in_session(mut payload: Value, session: &str) -> String {
    payload["session_id"] = json!(session);
    payload.to_string()
}

#[test]
fn log_prints_all_rows_oldest_first_unless_filtered() {
    let home = Home::with_hooks(GUARD);
    home.hook("hermes", in_session(hermes_shell("rm x"), "alpha-1"));
    home.hook("gemini", in_session(gemini_shell("ls"), "beta-1"));
    home.hook("gemini", in_session(payloads::one("gemini", "BeforeTool"), "beta-1"));
    let seqs = |filters: &[&str]| -> Vec<i64> {
        home.log(filters).iter().filter_map(|row| row["seq"].as_i64()).collect()
    };
    assert_eq!(seqs(&[]), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(&["--session", "alpha"]), [2, 3]);
    assert_eq!(seqs(&["--agent", "gemini"]), [4, 5]);
    assert_eq!(seqs(&["--kind", "decision"]), [3]);
    assert_eq!(seqs(&["--kind", "tool.*"]), [2, 4, 5]);
    assert_eq!(seqs(&["--name", "Before*"]), [4, 5]);
    assert_eq!(seqs(&["--tool", "shell"]), [2, 3, 4]);
    assert_eq!(seqs(&["--tool", "write_file"]), [5]);
    assert_eq!(seqs(&["-n", "2"]), [4, 5]);
    assert_eq!(seqs(&["--since", "1h"]), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(&["--until", "1h"]), [0; 0]);
    let row = &home.log(&["--seq", "3"])[0];
    for key in [
        "seq",
        "id",
        "time",
        "agent",
        "session",
        "turn",
        "name",
        "kind",
        "tool",
        "tool_class",
        "cause",
        "payload",
        "hash",
    ] {
        assert!(row.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(row["cause"], 2);
    assert_eq!(row["payload"]["verdicts"][0]["hook"], "guard");
    assert!(home.text(&["log"]).contains("guard: block (guarded)"));
}

#[test]
fn a_unique_prefix_of_a_session_id_is_enough() {
    let home = Home::new();
    for session in ["abc-1", "abc-2", "xyz", "abc"] {
        home.hook("hermes", in_session(hermes_shell("ls"), session));
    }
    assert_eq!(home.log(&["--session", "x"]).len(), 1);
    assert_eq!(home.log(&["--session", "abc"]).len(), 1, "a full id is never ambiguous");
    let ambiguous = home.run(&["show", "ab"]);
    assert_eq!(ambiguous.status.code(), Some(1));
    let error = String::from_utf8_lossy(&ambiguous.stderr).into_owned();
    assert!(error.contains("abc-1") && error.contains("abc-2"), "{error}");
    let unknown = home.run(&["show", "unknown"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("hookbus sessions"));
}

#[test]
fn sessions_lists_events_and_blocks_per_session() {
    let home = Home::with_hooks(GUARD);
    home.hook("hermes", in_session(hermes_shell("rm x"), "one"));
    home.hook("hermes", in_session(hermes_shell("ls"), "one"));
    home.hook("gemini", in_session(gemini_shell("ls"), "two"));
    let text = home.text(&["sessions", "--json"]);
    let sessions: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let counts: Vec<(&Value, &Value, &Value)> =
        sessions.iter().map(|s| (&s["session"], &s["events"], &s["blocked"])).collect();
    assert_eq!(
        counts,
        [(&json!("two"), &json!(1), &json!(0)), (&json!("one"), &json!(2), &json!(1))]
    );
    let text = home.text(&["sessions", "--agent", "gemini"]);
    assert!(text.contains("  two  gemini in ") && text.contains(", 1 event\n"), "{text}");
}

#[test]
fn a_timeline_joins_calls_with_results_and_decisions() {
    let home = Home::with_hooks(GUARD);
    let session = "20261116_003555_7a3d78";
    for name in ["pre_llm_call", "subagent_start"] {
        home.hook("hermes", in_session(payloads::one("hermes", name), session));
    }
    // The sub-agent's own session, shown inside its parent.
    home.hook("hermes", in_session(hermes_shell("echo child"), "20261116_003600_00ead1"));
    home.hook("hermes", in_session(payloads::one("hermes", "subagent_stop"), session));
    home.hook("hermes", in_session(hermes_shell("rm x"), session));
    let mut call = hermes_shell("ls");
    call["extra"]["tool_call_id"] = json!("call_9");
    home.hook("hermes", in_session(call.clone(), session));
    call["hook_event_name"] = json!("post_tool_call");
    call["extra"]["duration_ms"] = json!(173);
    call["extra"]["status"] = json!("ok");
    home.hook("hermes", in_session(call, session));
    let shown = home.json(&["show", "20261116_0035", "--json"]);
    let items = shown["turns"][0]["items"].as_array().expect("items");
    let tool = |command: &str| {
        items.iter().find(|item| item["input"]["command"] == command).expect("a tool call")
    };
    let result = &tool("ls")["result"];
    assert_eq!((&result["status"], &result["ms"]), (&json!("ok"), &json!(173.0)));
    assert_eq!(tool("rm x")["decisions"][0]["outcome"], "block");
    assert_eq!(tool("rm x")["decisions"][0]["hooks"][0]["reason"], "guarded");
    let subagent = items.iter().find(|item| item["kind"] == "subagent").expect("a sub-agent");
    assert_eq!(subagent["inside"]["turns"][0]["items"][0]["input"]["command"], "echo child");
    let text = home.text(&["show", session]);
    assert!(text.contains("blocked by guard: guarded"), "{text}");
    let child = text.lines().find(|line| line.contains("echo child")).expect("the child's call");
    assert!(child.starts_with("        "), "sub-agents are indented: {text}");
}

#[test]
fn a_timeline_attributes_each_effect_to_the_hook_that_caused_it() {
    let home = Home::with_hooks(
        "hooks:\n  tool.before:\n\
         \x20   - {name: talker, rule: {context: by the way}}\n\
         \x20   - {name: broken, rule: {}}\n\
         \x20   - {name: guard, rule: {when: {command: rm}, block: guarded}}\n\
         \x20   - {name: asker, rule: {when: {command: sudo}, ask: really}}\n\
         \x20 pre_llm_call: [{name: late, rule: {block: too late}}]\n",
    );
    let timeline_of = |payload: Value, session: &str| {
        home.hook("hermes", in_session(payload, session));
        home.text(&["show", session])
    };
    let text = timeline_of(hermes_shell("rm x"), "one");
    assert!(text.contains("blocked by guard: guarded\n"), "{text}");
    assert!(
        text.contains("context by talker: by the way (hermes accepts no context here: left out)")
    );
    assert!(text.contains("failed broken: "), "{text}");
    assert_eq!(text.matches("blocked by").count(), 1, "{text}");
    // A question that became a block counts as a block.
    let text = timeline_of(hermes_shell("sudo x"), "two");
    assert!(text.contains("blocked by asker: really (wanted to ask a person"), "{text}");
    // At this event Hermes cannot be blocked, so the timeline must not say that it was.
    let text = timeline_of(payloads::one("hermes", "pre_llm_call"), "three");
    assert!(text.contains("block by late: too late (hermes cannot be blocked here: left out)"));
    assert!(!text.contains("no objection") && !text.contains("blocked by"), "{text}");
}

#[test]
fn a_timeline_names_hooks_that_did_not_run_for_lack_of_approval() {
    let home = Home::new();
    let script = home.script("policy.sh", "#!/bin/sh\n");
    home.write_hooks_file(&format!(
        "hooks:\n  \"*\": [{{name: policy, command: {script}}}]\n  tool.before: [{{name: other, rule: {{allow: true}}}}]\n"
    ));
    home.approve();
    home.script("policy.sh", "#!/bin/sh\n# changed\n");
    home.hook("hermes", in_session(payloads::one("hermes", "pre_llm_call"), "one"));
    let text = home.text(&["show", "one"]);
    assert!(text.contains("not run: policy: it has changed since"), "{text}");
    assert!(!text.contains("no objection by"), "{text}");
    home.hook("hermes", in_session(hermes_shell("ls"), "two"));
    let text = home.text(&["show", "two"]);
    assert!(text.contains("blocked by policy, which did not run: it has changed since"), "{text}");
    assert!(text.contains("allowed by other"), "{text}");
    let shown = home.json(&["show", "two", "--json"]);
    let hooks = &shown["turns"][0]["items"][0]["decisions"][0]["hooks"];
    assert_eq!((&hooks[0]["unapproved"], &hooks[0]["failed"]), (&json!(true), &json!(true)));
}

#[test]
fn tool_calls_without_ids_are_joined_with_results_in_order() {
    let home = Home::new();
    let mut after = payloads::one("gemini", "AfterTool");
    let before = payloads::one("gemini", "BeforeTool");
    home.hook("gemini", in_session(before.clone(), "g"));
    home.hook("gemini", in_session(before, "g"));
    home.hook("gemini", in_session(after.clone(), "g"));
    after["tool_response"]["error"] = json!({"message": "no"});
    home.hook("gemini", in_session(after, "g"));
    let shown = home.json(&["show", "g", "--json"]);
    let statuses: Vec<&Value> = shown["turns"][0]["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| &item["result"]["status"])
        .collect();
    assert_eq!(statuses, [&json!("ok"), &json!("failed")]);
}

#[test]
fn log_follow_prints_new_rows() {
    let home = Home::new();
    home.hook("hermes", in_session(hermes_shell("one"), "s"));
    let mut follower = home.command(["log", "-f", "--json", "-n", "1"]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().expect("hookbus starts");
    let mut lines = BufReader::new(follower.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    assert!(next().contains("\"one\""));
    home.hook("hermes", in_session(hermes_shell("two"), "s"));
    assert!(next().contains("\"two\""));
    follower.kill().expect("our child process");
    follower.wait().expect("our child process");
}

/// Drops the triggers of a log and changes it with SQL, as an attacker would.
fn tamper(home: &Home, sql: &str) {
    let program = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n\
                   for name, in db.execute(\"SELECT name FROM sqlite_schema WHERE type = 'trigger'\").fetchall():\n    db.execute('DROP TRIGGER ' + name)\n\
                   db.execute(sys.argv[2])\ndb.commit()";
    let log = home.path().join("log.db");
    let status = Command::new("python3").args(["-c", program]).arg(log).arg(sql).status();
    assert!(status.expect("python3 runs").success());
}

#[test]
fn verify_finds_a_change_in_any_column_of_any_row() {
    for (sql, seq) in [
        ("UPDATE events SET payload = replace(payload, 'rm', 'ls') WHERE seq = 2", 2),
        ("UPDATE events SET payload = replace(payload, 'guarded', 'allowed') WHERE seq = 3", 3),
        ("UPDATE events SET time = time + 1 WHERE seq = 4", 4),
        ("UPDATE events SET agent = 'gemini' WHERE seq = 4", 4),
        ("UPDATE events SET name = 'other' WHERE seq = 4", 4),
        ("UPDATE events SET cause = 1 WHERE seq = 3", 3),
        ("UPDATE events SET context = NULL WHERE seq = 2", 2),
        ("DELETE FROM events WHERE seq = 2", 2),
        ("UPDATE events SET hash = zeroblob(32) WHERE seq = 4", 4),
    ] {
        let home = Home::with_hooks(GUARD);
        home.hook("hermes", in_session(hermes_shell("rm x"), "s"));
        home.hook("hermes", in_session(hermes_shell("ls"), "s"));
        assert!(home.is_sound());
        tamper(&home, sql);
        let verified = home.run(&["verify", "--json"]);
        assert_eq!(verified.status.code(), Some(1), "{sql}");
        let report: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
        assert_eq!(report["sound"], false);
        assert_eq!(report["flaws"][0]["seq"], seq, "{sql}: {report}");
    }
}

#[test]
fn the_log_rejects_updates_deletes_and_replaces() {
    let home = Home::new();
    home.hook("hermes", in_session(hermes_shell("ls"), "s"));
    for sql in [
        "UPDATE events SET agent = 'x'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT seq, id, time, 'x', session, turn, name, kind, tool, tool_class, cause, context, payload, hash, packed, digest, redacted, redacted_columns FROM events",
        "INSERT OR REPLACE INTO events SELECT 9, id, time, 'x', session, turn, name, kind, tool, tool_class, cause, context, payload, hash, packed, digest, redacted, redacted_columns FROM events",
    ] {
        let program = "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute(sys.argv[2])";
        let log = home.path().join("log.db");
        let output = Command::new("python3").args(["-c", program]).arg(log).arg(sql).output();
        let error = String::from_utf8_lossy(&output.expect("python3 runs").stderr).into_owned();
        assert!(error.contains("append-only"), "{error}");
    }
}

#[test]
fn the_demo_blocks_one_call_adds_context_and_shows_the_timeline() {
    let home = Home::new();
    let scratch = home.work().join("demo");
    let text = home.text(&["demo", "--home", &scratch.to_string_lossy()]);
    for words in [
        "blocked by no-recursive-delete",
        "context by house-rules",
        "blocked by no-secrets",
        "Try next",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    let command = format!("hookbus --home {} verify", scratch.display());
    assert!(text.contains(&command), "{text}");
    // The next `connect` in that shell would wire a real agent to the scratch home.
    assert!(!text.contains("HOOKBUS_HOME") && !text.contains("export"), "{text}");
    let mut verify = home.command(["verify"]);
    assert!(verify.env("HOOKBUS_HOME", &scratch).status().expect("hookbus runs").success());
    let mut status = home.command(["status"]);
    let status = status.env("HOOKBUS_HOME", &scratch).output().expect("hookbus runs");
    assert_eq!(status.status.code(), Some(1), "its daemon has exited");
}

#[test]
fn escape_sequences_in_payloads_do_not_reach_the_terminal() {
    let home = Home::new();
    home.hook("hermes", in_session(hermes_shell("rm x \u{1b}[2K\u{1b}[1A"), "s\u{1b}[2K"));
    for verb in [&["log"][..], &["show", "s"], &["sessions"]] {
        assert!(!home.text(verb).contains('\u{1b}'), "{verb:?}");
    }
}

/// Characters that move the cursor of a terminal (DEL, C1) or reverse the text beside them.
const HOSTILE: &str = "\u{7f}\u{85}\u{9b}2K\u{202e}\u{2066}\u{200f}\u{61c}";

fn has_hostile(text: &str) -> bool {
    HOSTILE.chars().filter(|it| !it.is_ascii_graphic()).any(|it| text.contains(it))
}

#[test]
fn json_output_escapes_what_could_move_a_terminal_and_means_the_same() {
    let home = Home::with_hooks(&format!(
        "hooks: {{ tool.before: [{{ name: \"g\u{202e}\", rule: {{ block: \"no {HOSTILE}\" }} }}] }}"
    ));
    let command = format!("rm x {HOSTILE}");
    home.hook("hermes", in_session(hermes_shell(&command), &format!("s{HOSTILE}")));
    for verb in [
        &["log", "--json"][..],
        &["show", "s", "--json"],
        &["sessions", "--json"],
        &["hooks", "list", "--json"],
        &["hooks", "doctor", "--json"],
        &["hooks", "test", "pre_tool_call", "--json"],
        &["status", "--json"],
        &["replay", "--all", "--json"],
        &["log"],
        &["show", "s"],
        &["sessions"],
        &["hooks", "list"],
        &["hooks", "doctor"],
        &["replay", "--all", "--list"],
    ] {
        let output = home.run(verb);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.is_empty() && !has_hostile(&text), "{verb:?}: {text}");
    }
    let rows = home.log(&["--kind", "tool.before"]);
    assert_eq!(rows[0]["payload"]["tool_input"]["command"], command.as_str());
}

#[test]
fn a_raw_payload_is_byte_for_byte_in_a_pipe_and_harmless_at_a_terminal() {
    let home = Home::new();
    let payload = in_session(hermes_shell(&format!("rm x {HOSTILE}")), "s");
    home.hook("hermes", &payload);
    let raw = ["log", "--raw", "--seq", "1"];
    assert_eq!(home.run(&raw).stdout, payload.as_bytes());
    let (exit, screen) = run_at_terminal(home.command(raw), &[]);
    assert!(exit == Some(0) && screen.contains("rm x") && !has_hostile(&screen), "{screen}");
    assert!(screen.contains("> file"), "it says how to get the bytes: {screen}");
    let (_, screen) = run_at_terminal(home.command(["export"]), &[]);
    assert!(screen.contains("rm x") && !has_hostile(&screen), "{screen}");
    assert!(has_hostile(&home.text(&["export"])), "as recorded");
}

#[test]
fn a_filter_for_something_unknown_is_an_error() {
    let home = Home::new();
    home.hook("hermes", in_session(hermes_shell("ls"), "s"));
    for (verb, words) in [
        (&["log", "--kind", "tool.befor"][..], "did you mean `tool.before`?"),
        (&["log", "--agent", "hermez"], "hermes, gemini"),
        (&["log", "--seq", "99"], "the last row is 1"),
        (&["log", "--since", "soon"], "cannot read `soon` as a time"),
    ] {
        let output = home.run(verb);
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
    }
}
