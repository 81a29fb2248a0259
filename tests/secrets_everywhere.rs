//! Secrets of many kinds in the events of four agents, and hooks, plugins and observers that repeat what they see: a search for
//! their bytes in every file that hookbus writes, and in every report that it prints, finds none. The hooks and the agents get
//! the originals.

#![expect(clippy::expect_used, reason = "a test that cannot set up its files has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hookbus_tests::home::{Home, path_text, wait_until};
use hookbus_tests::payloads::one;
use hookbus_tests::plugins::plugin;
use hookbus_tests::secrets::{Case, Dice, places, tokens};
use serde_json::{Value, json};

/// Answers with all that it was told.
const REPEATS: &str = "#!/usr/bin/env python3
import json, sys
told = sys.stdin.read()
sys.stderr.write('told: ' + told + '\\n')
print(json.dumps({'decision': 'block', 'reason': 'not allowed: ' + told}))
";

/// Fails, and says why with all that it was told.
const FAILS: &str = "#!/bin/sh\ncat >&2\nexit 3\n";

/// Places in which every kind of rule is used: names, headers, URLs, commands, files, encodings.
const PLACES: [&str; 24] = [
    "netrc",
    "npmrc-auth",
    "docker-config",
    "kubeconfig-key",
    "aws-credentials",
    "wp-config",
    "maven-settings",
    "url-mongodb-srv",
    "url-redis",
    "azure-account-key",
    "curl-user",
    "header-authorization-basic",
    "header-cookie",
    "prose-password-is",
    "option-sshpass",
    "option-docker-login-stdin",
    "env-dump",
    "env-dump-zero",
    "json-password",
    "yaml-block",
    "sql-insert",
    "code-python-kwarg",
    "url-encoded-json",
    "escaped-thrice",
];

/// Some thirty tokens, and the places.
fn cases() -> Vec<Case> {
    let all = tokens(include_str!("secrets/tokens.txt"), &mut Dice::new(21));
    let kinds = all.iter().step_by(20 * 11).cloned();
    let places = places(include_str!("secrets/places.txt"), &mut Dice::new(22));
    kinds.chain(places.into_iter().filter(|case| PLACES.contains(&case.place.as_str()))).collect()
}

/// A tool call, a result, a prompt or a message of one of the agents that holds the text.
fn event(index: usize, text: &str) -> (&'static str, Value) {
    let (agent, name) = [
        ("hermes", "pre_tool_call"),
        ("gemini", "BeforeTool.shell"),
        ("claude", "PreToolUse"),
        ("codex", "PreToolUse"),
        ("hermes", "post_tool_call"),
        ("claude", "UserPromptSubmit"),
    ][index % 6];
    let mut payload = one(agent, name);
    match name {
        "post_tool_call" => payload["extra"]["result"] = json!(json!({"stdout": text}).to_string()),
        "UserPromptSubmit" => payload["prompt"] = json!(text),
        _ => payload["tool_input"] = json!({"command": text}),
    }
    payload["cwd"] = json!("/tmp");
    (agent, payload)
}

/// What each file below the folder holds, and what hookbus prints about its log.
fn everything_written(home: &Home, folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut written = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = fs::read(&path) {
                written.insert(path_text(&path), bytes);
            }
        }
    }
    let junit = path_text(&home.work().join("report.xml"));
    let reports: [&[&str]; 10] = [
        &["log", "--json"],
        &["export"],
        &["replay", "--all", "--json"],
        &["replay", "--all", "--junit", &junit],
        &["show", "last"],
        &["show", "last", "--html", "-"],
        &["sessions", "--json"],
        &["query", "SELECT * FROM tool_calls", "--json"],
        &["query", "SELECT * FROM decisions", "--json"],
        &["dead", "list", "--json"],
    ];
    for report in reports {
        let output = home.run(report);
        written.insert(report.join(" "), [output.stdout, output.stderr].concat());
    }
    written.insert("the JUnit report".to_owned(), fs::read(&junit).unwrap_or_default());
    written
}

fn assert_nowhere(written: &BTreeMap<String, Vec<u8>>, cases: &[Case]) {
    for case in cases {
        for (place, bytes) in written {
            let text = String::from_utf8_lossy(bytes);
            let found =
                [&case.secret.value, &case.secret.part].into_iter().find(|it| text.contains(*it));
            assert_eq!(found, None, "{} ({}) is in {place}", case.kind, case.place);
        }
    }
}

#[test]
fn no_file_and_no_report_holds_a_secret() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let cases = cases();
        let (repeats, fails) = (home.script("repeats.py", REPEATS), home.script("fails.sh", FAILS));
        let chatty = plugin(
            &home,
            "chatty",
            "def before(**event):\n    print('called with', event)\n\
             def register(ctx):\n    ctx.register_hook('pre_tool_call', before)\n",
        );
        let archive = home.path().join("archive");
        fs::create_dir_all(&archive).expect("a directory");
        home.write_hooks(&format!(
            "hooks:\n  tool.before:\n    - {{name: repeats, command: {repeats}}}\n  tool.after:\n    \
             - {{name: fails, command: {fails}}}\n  turn.start:\n    - {{name: fails-too, command: {fails}, on_failure: block}}\n  \
             pre_tool_call:\n    - {{python: {}}}\n  \"*\":\n    - {{name: numbers, mode: observe, analytics: true}}\n    \
             - {{name: keep, mode: observe, archive: {}}}\n    \
             - {{name: lost, mode: observe, command: {fails}, tries: 1}}\n",
            chatty.display(),
            archive.display(),
        ));
        let daemon = (mode == "running").then(|| home.serve());
        for (index, case) in cases.iter().enumerate() {
            let (agent, payload) = event(index, &case.text);
            let answer = home.hook(agent, payload.to_string());
            // Claude Code and Codex are recorded; Hermes and Gemini CLI are answered.
            if index % 6 < 2 {
                let heard = answer.stdout;
                let escaped = serde_json::to_string(&case.secret.part).expect("JSON");
                let part = escaped.trim_matches('"');
                assert!(heard.contains(part), "the agent hears {part}: {heard}");
            }
        }
        for observer in ["numbers", "keep", "lost"] {
            home.run(&["observe", observer, "--drain"]);
        }
        wait_until("the log is complete", || home.log(&[]).len() > cases.len());
        let written = everything_written(&home, &home.path());
        assert!(written["log --json"].windows(10).filter(|it| *it == b"[redacted:").count() > 40);
        assert_nowhere(&written, &cases);
        drop(daemon);
    }
}

#[test]
fn columns_are_redacted_as_the_payload_is_by_the_paths_of_the_user() {
    let home = Home::new();
    home.write_hooks("redact: {paths: [session_id, tool_name, cwd]}\nhooks: {tool.before: [{rule: {context: noted}}]}\n");
    let mut payload = one("claude", "PreToolUse");
    payload["session_id"] = json!("project-nightingale");
    payload["tool_name"] = json!("Nightjar");
    payload["cwd"] = json!("/srv/nightingale");
    home.hook("claude", payload.to_string());
    let log = home.text(&["log", "--json"]);
    for hidden in ["project-nightingale", "Nightjar", "/srv/nightingale"] {
        assert!(!log.contains(hidden), "{hidden}: {log}");
    }
    assert!(home.is_sound());
}

/// Quotes a value of its input in a reason, and gives the input back with another secret at the same place.
const QUOTES: &str = "#!/usr/bin/env python3
import json, sys
event = json.load(sys.stdin)
given = event['tool_input']
reason = 'the gate is ' + given['env']['GATE'] + '.'
given['env']['GATE'] = 'south-by-southwest'
print(json.dumps({'reason': reason, 'hookSpecificOutput': {'hookEventName': 'PreToolUse', 'permissionDecision': 'allow',
    'permissionDecisionReason': reason, 'updatedInput': given, 'tool_input': given}}))
";

/// What the settings of [`by_place`] name as secret, as it is in the payload, and what follows from it.
const BY_PLACE: [&str; 4] =
    ["north-by-northwest", "south-by-southwest", "harbour/plan.txt", "warehouse/plan.txt"];

/// An event with texts that do not look like secrets, and settings that say that they are.
fn by_place(home: &Home) -> (Value, String) {
    let work = home.work();
    fs::create_dir_all(work.join("warehouse")).expect("a directory");
    fs::write(work.join("warehouse/plan.txt"), "x").expect("a file");
    std::os::unix::fs::symlink("warehouse", work.join("harbour")).expect("a link");
    let quotes = home.script("quotes.py", QUOTES);
    let mut payload = one("gemini", "BeforeTool.shell");
    payload["tool_name"] = json!("write_file");
    payload["tool_input"] = json!({"env": {"GATE": "north-by-northwest"}, "content": "x",
        "file_path": path_text(&work.join("harbour/plan.txt"))});
    payload["cwd"] = json!(path_text(&work));
    let hooks = format!(
        "hooks:\n  tool.before:\n    - {{name: quotes, command: {quotes}}}\n    \
         - {{name: outside, rule: {{when: {{path: {{under: /srv}}}}, block: no}}}}\n"
    );
    (payload, hooks)
}

const PLACES_OF_SECRETS: &str = "redact: {paths: [tool_input.env.*, tool_input.file_path]}\n";

#[test]
fn what_only_its_place_makes_a_secret_is_not_in_decisions_and_contexts_either() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let (payload, hooks) = by_place(&home);
        home.write_hooks(&format!("{PLACES_OF_SECRETS}{hooks}"));
        let heard = home.hook("gemini", payload.to_string()).stdout;
        assert!(heard.contains("south-by-southwest"), "the agent hears it: {heard}");
        wait_until("the decision is in the log", || home.log(&["--kind", "decision"]).len() == 1);
        assert_by_place_nowhere(&home);
        let decision = &home.log(&["--kind", "decision"])[0]["payload"];
        assert!(
            decision["verdicts"][0]["rewrite"]["env"]["GATE"]
                .as_str()
                .is_some_and(|it| it.starts_with("[redacted:")),
            "{decision:#}"
        );
        assert!(home.is_sound());
    }
}

#[test]
fn redacting_old_rows_finds_what_only_its_place_makes_a_secret_too() {
    let home = Home::new();
    let (payload, hooks) = by_place(&home);
    home.write_hooks(&format!("redact: false\n{hooks}"));
    home.hook("gemini", payload.to_string());
    let log = home.text(&["log", "--json"]);
    assert!(BY_PLACE.iter().all(|secret| log.contains(secret)), "{log}");
    home.write_hooks(&format!("{}{hooks}", PLACES_OF_SECRETS.replace("]}", ", session_id]}")));
    home.text(&["scan", "--redact", "--yes"]);
    assert_by_place_nowhere(&home);
    let session = payload["session_id"].as_str().expect("a session");
    let of_events = home.log(&["--agent", "gemini"]);
    assert!(of_events.iter().all(|row| row["session"] != session), "{of_events:#?}");
    assert!(home.is_sound(), "{}", home.run(&["verify"]).stdout.escape_ascii());
}

fn assert_by_place_nowhere(home: &Home) {
    for (place, bytes) in everything_written(home, &home.path()) {
        let text = String::from_utf8_lossy(&bytes);
        let found = BY_PLACE.iter().find(|it| text.contains(**it));
        assert!(found.is_none() || place.ends_with("quotes.py"), "{found:?} is in {place}: {text}");
    }
}

#[test]
fn a_secret_that_is_also_a_session_or_a_tool_leaves_the_log_sound() {
    let home = Home::with_hooks(
        "redact: {paths: [tool_input.path]}\nhooks: {tool.before: [{rule: {context: noted}}]}\n",
    );
    for (session, tool, path) in [
        ("one", "terminal", "terminal"),
        ("north-12345", "patch", "north-12345"),
        ("north-12", "patch", "north-1"),
    ] {
        let mut payload = one("hermes", "pre_tool_call");
        payload["session_id"] = json!(session);
        payload["tool_name"] = json!(tool);
        payload["tool_input"] = json!({"path": path});
        home.hook("hermes", payload.to_string());
        let row = &home.log(&["--agent", "hermes"]).pop().expect("a row");
        assert_eq!((&row["session"], &row["tool"]), (&json!(session), &json!(tool)), "{row:#}");
    }
    home.write_hooks(
        "redact: {paths: [tool_name]}\nhooks: {tool.before: [{rule: {context: noted}}]}\n",
    );
    home.hook("hermes", one("hermes", "pre_tool_call").to_string());
    assert!(home.is_sound(), "{}", home.run(&["verify"]).stdout.escape_ascii());
}
