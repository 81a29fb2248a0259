//! `hookbus hook`: payloads are recorded byte for byte, and stdout is the answer or nothing.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use hookbus::log::{LogPath, LogReader, Query, ReadError, Row};
use hookbus_tests::home::{Home, feed};
use hookbus_tests::payloads::{self, gemini_shell, hermes_shell};
use serde_json::{Value, json};

const GUARD: &str = r"
hooks:
  tool.before:
    - name: no-rm
      tool: shell
      rule: { when: { command: 'rm -rf /' }, block: not on my machine }
";

/// The rows of agents, without those about the bus itself.
fn rows(home: &Home) -> Vec<Row> {
    let log = LogReader::open(&LogPath::in_home(&home.path())).expect("a log");
    let mut rows = Vec::new();
    log.each(&Query::default(), None, |row| {
        rows.push(row);
        Ok::<_, ReadError>(())
    })
    .expect("a readable log");
    rows.retain(|row| row.agent != "hookbus");
    rows
}

#[test]
fn every_payload_of_every_agent_is_recorded_byte_for_byte() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    let payloads = payloads::all();
    assert!(payloads.len() > 120, "the payloads of all four agents");
    for (agent, name, bytes) in &payloads {
        let ran = home.hook(agent, bytes);
        if name.contains("WorktreeCreate") {
            // Claude Code waits for a path, and there is no repository here: silence would be an answer.
            assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{name}");
            assert!(ran.stderr.contains("git"), "{}", ran.stderr);
            continue;
        }
        assert_eq!(
            (ran.exit, ran.stdout, ran.stderr),
            (Some(0), String::new(), String::new()),
            "{name}"
        );
    }
    let rows = rows(&home);
    assert_eq!(rows.len(), payloads.len());
    for (row, (agent, name, bytes)) in rows.iter().zip(&payloads) {
        assert_eq!((&row.agent, &row.payload), (agent, bytes), "{agent} {name}");
    }
    let first = rows[0].seq.to_string();
    let raw = home.run(&["log", "--seq", &first, "--raw"]).stdout;
    assert_eq!(raw, payloads[0].2);
    assert!(home.is_sound());
}

#[test]
fn every_event_name_maps_to_its_kind() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    for (agent, name, bytes) in payloads::all() {
        if !name.contains(".all.") {
            home.hook(&agent, bytes);
        }
    }
    let rows = home.log(&[]);
    let unknown: Vec<&Value> = rows.iter().filter(|row| row["name"] == "unreadable").collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let kind = |agent: &str, name: &str| {
        let row = rows.iter().find(|row| row["agent"] == agent && row["name"] == name);
        row.map_or(Value::Null, |row| row["kind"].clone())
    };
    for (agent, name, expected) in [
        ("hermes", "pre_llm_call", "turn.start"),
        ("hermes", "on_session_end", "turn.end"),
        ("hermes", "on_session_finalize", "session.end"),
        ("hermes", "kanban_task_blocked", "task.blocked"),
        ("gemini", "AfterModel", "model.chunk"),
        ("gemini", "BeforeToolSelection", "tool.select"),
        ("claude", "PostToolUseFailure", "tool.failed"),
        ("codex", "Stop", "turn.end"),
    ] {
        assert_eq!(kind(agent, name), expected, "{agent} {name}");
    }
    let shell = rows.iter().find(|row| row["agent"] == "codex" && row["tool"] == "Bash");
    assert_eq!(shell.map(|row| &row["tool_class"]), Some(&json!("shell")));
}

#[test]
fn the_answer_is_the_same_with_and_without_a_daemon() {
    for (mode, served) in [("off", false), ("running", true)] {
        let home = Home::with_daemon(mode);
        home.write_hooks(GUARD);
        let _daemon = served.then(|| home.serve());
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm -rf / --now")),
            json!({"decision": "block", "reason": "not on my machine (hookbus rule no-rm)"}),
        );
        assert_eq!(
            home.answer("gemini", &gemini_shell("rm -rf / --now")),
            json!({"decision": "deny", "reason": "not on my machine (hookbus rule no-rm)"}),
        );
        assert_eq!(home.answer("gemini", &gemini_shell("ls")), Value::Null);
        let mut kinds: Vec<Value> = home.log(&[]).iter().map(|row| row["kind"].clone()).collect();
        kinds.retain(|kind| kind != "daemon.started");
        assert_eq!(
            kinds,
            ["hooks.loaded", "tool.before", "decision", "tool.before", "decision", "tool.before"],
            "{mode}"
        );
    }
}

#[test]
fn invalid_json_values_do_not_hide_a_dangerous_command() {
    let home = Home::with_hooks(GUARD);
    for trick in ["NaN", "-Infinity", r#""\ud800""#, "1e999", "[[[[]]]]", "\"\u{1}\""] {
        let payload = format!(
            r#"{{"hook_event_name":"pre_tool_call","tool_name":"terminal","extra":{{"x":{trick}}},
                "tool_input":{{"command":"rm -rf /","timeout":{trick}}},"session_id":"s"}}"#
        );
        let ran = home.hook("hermes", &payload);
        assert!(ran.stdout.contains("not on my machine"), "{trick}: {ran:?}");
    }
}

#[test]
fn an_unreadable_event_is_recorded_and_allowed_unless_a_hook_blocks_on_failure() {
    let home = Home::with_hooks(GUARD);
    let ran = home.hook("hermes", b"\xff\xfe not json");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), ""));
    let strict = format!("{GUARD}      on_failure: block\n");
    home.write_hooks(&strict);
    for (agent, word) in [("hermes", "block"), ("gemini", "deny")] {
        let ran = home.hook(agent, "rm -rf /");
        assert!(ran.stdout.contains(word) && ran.stdout.contains("no-rm"), "{ran:?}");
    }
    let rows = rows(&home);
    assert_eq!(rows[0].payload, b"\xff\xfe not json");
    assert_eq!(rows[0].name, "unreadable");
}

#[test]
fn command_hooks_get_the_payload_with_hookbus_fields_and_the_clients_cwd_and_environment() {
    let home = Home::new();
    let script = home.script(
        "look.sh",
        "#!/bin/sh\ncat > \"$PWD/seen.json\"\nprintf '%s' \"$FROM_CLIENT/$FROM_HOOK\" > seen.env\n",
    );
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - {{command: {script}, env: {{FROM_HOOK: hook}}}}\n"
    ));
    let payload = hermes_shell("ls");
    let mut command = home.command(["hook", "hermes"]);
    command.env("FROM_CLIENT", "client");
    feed(command, payload.to_string().as_bytes());
    let seen = std::fs::read(home.work().join("seen.json"))
        .expect("the hook ran in the client's working directory");
    let mut seen: Value = serde_json::from_slice(&seen).expect("JSON");
    let ours =
        seen.as_object_mut().and_then(|seen| seen.remove("hookbus")).expect("hookbus fields");
    assert_eq!(seen, payload);
    let event = &home.log(&["--kind", "tool.before"])[0];
    assert_eq!((&ours["id"], &ours["seq"]), (&event["id"], &event["seq"]));
    assert_eq!(
        (&ours["kind"], &ours["agent"], &ours["tool_class"]),
        (&json!("tool.before"), &json!("hermes"), &json!("shell"))
    );
    let env = std::fs::read_to_string(home.work().join("seen.env")).expect("the hook ran");
    assert_eq!(env, "client/hook");
}

#[test]
fn only_the_user_can_read_the_log() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::with_hooks(GUARD); // this home already exists and is readable by all users
    home.hook("hermes", hermes_shell("ls").to_string());
    for file in ["log.db", "log.db-wal", "log.db-shm"] {
        let mode = std::fs::metadata(home.path().join(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[test]
fn only_session_ids_are_recorded_from_the_environment() {
    let home = Home::new();
    let mut command = home.command(["hook", "hermes"]);
    command.env("HERMES_SESSION_ID", "from-env").env("OPENAI_API_KEY", "sk-secret");
    feed(command, br#"{"hook_event_name":"transform_terminal_output","session_id":""}"#);
    let row = &home.log(&[])[0];
    assert_eq!(row["session"], "from-env");
    assert_eq!(row["context"]["env"], json!({"HERMES_SESSION_ID": "from-env"}));
    assert_eq!(row["context"]["cwd"], json!(home.work().to_string_lossy()));
}
