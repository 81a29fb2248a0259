//! `hookbus top` and `hookbus replay --step` at a real terminal: what is on the screen, what keys do, and that the terminal is
//! given back as it was. Without a terminal the same figures and steps as text and JSON.

use std::fs;

use hookbus_tests::home::Home;
use hookbus_tests::log_holder::LogHolder;
use hookbus_tests::screen::ScreenUser;
use hookbus_tests::told::{event, tell};
use rustix::process::Signal;
use serde_json::{Value, json};

const POLICY: &str = "hooks:
  tool.before:
    - { name: no-force-push, rule: { when: { command: 'push --force' }, block: Force pushes need a person. } }
";

const SESSION: &str = "20261116_003555_7a3d78";

const DOWN: &str = "\x1b[B";
const ESCAPE: &str = "\x1b";
const CONTROL_C: &str = "\x03";

/// An event of a Hermes session.
fn of(session: &str, name: &str, fields: &Value) -> Value {
    event("hermes", name, session, fields)
}

fn prompt(session: &str, text: &str) -> Value {
    of(session, "pre_llm_call", &json!({"extra": {"user_message": text}}))
}

fn call(session: &str, id: &str, command: &str) -> Value {
    let fields = json!({"tool_input": {"command": command}, "extra": {"tool_call_id": id}});
    of(session, "pre_tool_call", &fields)
}

fn result(session: &str, id: &str, command: &str, exit: i32) -> Value {
    let told = json!({"output": format!("printed by {id}"), "exit_code": exit, "error": null});
    let fields = json!({"tool_input": {"command": command},
                        "extra": {"tool_call_id": id, "result": told.to_string()}});
    of(session, "post_tool_call", &fields)
}

/// A session with a call that works, one that fails, and one that is blocked.
fn session(home: &Home, session: &str) {
    tell(
        home,
        "hermes",
        &[
            of(session, "on_session_start", &json!({})),
            prompt(session, "Please release it"),
            call(session, "c1", "cargo build"),
            result(session, "c1", "cargo build", 0),
            call(session, "c2", "cargo test"),
            result(session, "c2", "cargo test", 101),
            call(session, "c3", "git push --force origin main"),
            call(session, "c4", "git status"),
            result(session, "c4", "git status", 0),
        ],
    );
}

fn home() -> Home {
    let home = Home::with_hooks(POLICY);
    session(&home, SESSION);
    home
}

fn top(home: &Home, rows: u16, columns: u16) -> ScreenUser {
    ScreenUser::start(home.command(["top", "--interval", "0.2"]), rows, columns)
}

fn step(home: &Home, more: &[&str]) -> ScreenUser {
    ScreenUser::start(home.command([&["replay", "--step", "last"], more].concat()), 24, 80)
}

/// Leaves the program, and checks that the terminal is as before.
fn leave(mut user: ScreenUser, keys: &str) {
    user.press(keys);
    assert_eq!(user.exit_code(), Some(0), "{user:?}");
    assert!(user.is_given_back(), "{user:?}");
}

#[test]
fn top_shows_what_happens_and_what_is_new() {
    let home = home();
    let _daemon = home.serve();
    let user = top(&home, 24, 80);
    for text in [
        "daemon running",
        "sessions (1 live)",
        "hermes",
        "Please release it",
        "no-force-push",
        "terminal git push --force",
        "hooks, last 15 min",
    ] {
        user.see(text);
    }
    let line = user.text().lines().find(|line| line.contains("Please")).map(str::to_owned);
    let line = line.expect("a line").replace('│', "");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words.ends_with(&["9", "1", "1"]), "events, blocked, failed: {line}");
    tell(&home, "hermes", &[prompt("another-one", "What is new?"), call("another-one", "x", "ls")]);
    user.see("What is new?");
    user.see("sessions (2 live)");
    tell(&home, "hermes", &[call("another-one", "y", "git push --force now")]);
    user.see("git push --force now");
    leave(user, "q");
}

#[test]
fn top_looks_only_and_ends_in_every_way_with_the_terminal_given_back() {
    let home = home();
    let rows = home.log(&[]).len();
    for keys in ["q", ESCAPE, CONTROL_C, "?q"] {
        let user = top(&home, 24, 80);
        user.see("Please release it");
        leave(user, keys);
    }
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut user = top(&home, 24, 80);
        user.see("Please release it");
        user.signal(signal);
        assert_eq!(user.exit_code(), Some(code), "{user:?}");
        assert!(user.is_given_back(), "{user:?}");
    }
    assert_eq!(home.log(&[]).len(), rows, "top writes nothing");
}

#[test]
fn top_fits_windows_of_any_size_and_follows_a_resize() {
    let home = home();
    let user = top(&home, 24, 80);
    user.see("Please release it");
    assert!(!user.is_coloured(), "NO_COLOR is set");
    for (rows, columns) in [(50, 160), (15, 60), (5, 20), (1, 3), (24, 80)] {
        user.resize(rows, columns);
        if rows >= 15 {
            user.wait_until("a drawn window", |screen| {
                screen.lines().last().is_some_and(|line| line.contains("q quit"))
            });
        }
    }
    user.see("Please release it");
    user.press("?");
    user.see("the next or the previous list");
    user.press("x");
    user.see_no("the next or the previous list");
    leave(user, "q");
    let mut coloured = home.command(["top"]);
    coloured.env_remove("NO_COLOR");
    let user = ScreenUser::start(coloured, 24, 80);
    user.see("Please release it");
    assert!(user.is_coloured());
    leave(user, "q");
}

#[test]
fn enter_opens_a_session_at_its_latest_event_and_what_is_new_appears_there() {
    let home = home();
    let user = top(&home, 24, 80);
    user.see("Please release it");
    user.press("\r");
    user.see("9/9");
    user.see("printed by c4");
    tell(&home, "hermes", &[call(SESSION, "c5", "make late")]);
    user.see("10/10");
    user.see("make late");
    user.press("B");
    user.see("Force pushes need a person.");
    user.press(ESCAPE);
    user.see("sessions (1 live)");
    // From the list of blocks, at the call that was blocked.
    user.press("\t\r");
    user.see("7/10");
    user.see("Force pushes need a person.");
    leave(user, CONTROL_C);
}

#[test]
fn nothing_that_an_agent_wrote_moves_the_cursor_or_names_the_window() {
    let home = Home::with_hooks(POLICY);
    let evil = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}evil";
    let hostile = format!("push --force {evil}");
    tell(
        &home,
        "hermes",
        &[
            prompt(evil, &format!("prompt {evil}")),
            call(evil, "c1", &hostile),
            of(
                evil,
                "pre_tool_call",
                &json!({"tool_name": evil, "tool_input": {"command": hostile}}),
            ),
            result(evil, "c1", &hostile, 3),
        ],
    );
    let top = top(&home, 40, 120);
    top.see("prompt");
    top.press("\r");
    top.see("4/4");
    top.press("kkk");
    top.see("1/4");
    let step = step(&home, &[]);
    step.see("1/4");
    step.press("bb");
    step.see("3/4");
    for user in [top, step] {
        let written = String::from_utf8_lossy(&user.written()).into_owned();
        for bad in ["\x1b]", "\x07", "\u{9b}", "\u{202e}", "\x1b[2J\u{fffd}", "31mevil"] {
            assert!(!written.contains(bad), "{bad:?} in {written:?}");
        }
        leave(user, CONTROL_C);
    }
    for line in home.text(&["top", "--once"]).lines().chain(home.text(&["top", "--json"]).lines()) {
        assert!(!line.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']), "{line:?}");
    }
}

#[test]
fn top_waits_for_a_log_tells_of_a_locked_one_and_goes_on_with_a_new_one() {
    let home = Home::with_hooks(POLICY);
    let user = top(&home, 24, 80);
    user.see("no sessions yet");
    session(&home, SESSION);
    user.see("Please release it");
    let lost = home.path().join("lost");
    fs::create_dir(&lost).expect("a directory");
    for name in ["log.db", "log.db-wal", "log.db-shm"] {
        drop(fs::rename(home.path().join(name), lost.join(name)));
    }
    tell(&home, "hermes", &[prompt("afresh", "Start again")]);
    user.see("Start again");
    user.see_no("Please release it");
    leave(user, "q");

    let held = LogHolder::exclusive(&home);
    let user = top(&home, 24, 80);
    user.see("the log:");
    held.release();
    user.see("Start again");
    user.see_no("the log:");
    leave(user, "q");
}

#[test]
fn the_figures_are_the_same_as_json_and_as_text_without_a_terminal() {
    let home = home();
    let figures = home.json(&["top", "--json"]);
    assert_eq!((&figures["shape"], &figures["log"]["rows"]), (&json!(1), &json!(11)));
    let session = &figures["sessions"][0];
    assert_eq!(session["session"], SESSION);
    let listed = home.json(&["sessions", "--json"]);
    for key in ["agent", "prompt", "events", "decisions", "blocked", "failed", "first", "last"] {
        assert_eq!(session[key], listed[key], "{key}: `sessions` and `top` count the same");
    }
    assert_eq!(
        (&session["state"], &session["last_event"]["tool"]),
        (&json!("live"), &json!("terminal"))
    );
    let held = &figures["held"][0];
    assert_eq!(held["about"], "git push --force origin main");
    assert_eq!((&held["hook"], &held["outcome"]), (&json!("no-force-push"), &json!("block")));
    let hook = &figures["hooks"][0];
    assert_eq!((&hook["hook"], &hook["blocked"]), (&json!("no-force-push"), &json!(1)));
    assert!(hook["p95_ms"].as_f64() >= hook["p50_ms"].as_f64() && hook["p50_ms"].is_f64());
    assert_eq!(figures["events"]["last_minute"], 9);
    let text = home.text(&["top"]);
    for part in ["Please release it", "blocked  no-force-push", "1 blocked, 1 failed"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let (empty, wrong) = (Home::new(), home.run(&["top", "--interval", "-1"]));
    assert_eq!(empty.json(&["top", "--json"])["sessions"], json!([]));
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn stepping_goes_forth_and_back_and_jumps_to_blocks_and_failures() {
    let home = home();
    let user = step(&home, &[]);
    user.see("1/9");
    user.see("on_session_start (session.start)");
    user.press("n");
    user.see("2/9");
    user.press("j");
    user.press(DOWN);
    user.see("4/9");
    user.see("of the call in row");
    user.press("p");
    user.see("3/9");
    user.see("cargo build");
    user.press("b");
    user.see("7/9");
    user.see("recorded decision (row");
    user.see("no-force-push: block");
    user.see("same as recorded");
    user.press("b");
    user.see("no further block");
    user.press("F");
    user.see("6/9");
    user.see("exit code 101");
    user.see("printed by c2");
    user.press("g");
    user.see("1/9");
    user.press("f");
    user.see("6/9");
    user.press("/GIT STATUS\r");
    user.see("8/9");
    user.press("/no such text\r");
    user.see("not found");
    user.press("G");
    user.see("9/9");
    user.press("n");
    user.see("this is the last event");
    user.press("B");
    user.see("7/9");
    user.press("?");
    user.see("the next, the previous block");
    user.press("?");
    user.see_no("the next, the previous block");
    user.resize(12, 50);
    user.see("7/9");
    leave(user, "q");
}

#[test]
fn stepping_compares_with_other_hooks_and_runs_no_command_unless_it_is_told_to() {
    let home = home();
    let mark = home.work().join("ran");
    let script = home.script("guard.sh", &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    let candidate = home.work().join("draft.yaml");
    let text = format!(
        "hooks:\n  tool.before:\n    - {{ name: no-tests, rule: {{ when: {{ command: cargo test }}, block: Not now. }} }}\n    \
         - {{ name: guard, command: {script} }}\n"
    );
    fs::write(&candidate, text).expect("a draft");
    let draft = candidate.to_string_lossy().into_owned();
    let user = step(&home, &["--hooks", &draft]);
    user.see("1/9");
    user.press("d");
    user.see("3/9");
    user.see("not comparable");
    user.press("d");
    user.see("5/9");
    user.see("newly blocked by no-tests");
    leave(user, "q");
    assert!(!mark.exists(), "no command runs");
    let lines = home.text(&["replay", "--step", "last", "--hooks", &draft, "--yes", "--json"]);
    assert!(mark.exists(), "--yes runs commands");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<&str> = lines.iter().filter_map(|line| line["replay"]["what"].as_str()).collect();
    assert_eq!(
        told,
        [
            "unchanged",
            "unchanged",
            "unchanged",
            "unchanged",
            "newly_blocked",
            "unchanged",
            "newly_allowed",
            "unchanged",
            "unchanged"
        ]
    );
}

#[test]
fn steps_are_lines_of_json_too_and_without_a_terminal_the_command_says_so() {
    let home = home();
    let lines = home.text(&["replay", "--step", "7a3d78", "--json"]);
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 9);
    let build = &lines[2];
    assert_eq!((&build["shape"], &build["session"]), (&json!(1), &json!(SESSION)));
    assert_eq!((&build["tool"], &build["about"]), (&json!("terminal"), &json!("cargo build")));
    assert_eq!(
        (&build["result"]["status"], &build["result"]["exit_code"]),
        (&json!("ok"), &json!(0))
    );
    assert_eq!(build["payload"]["tool_input"]["command"], "cargo build");
    assert_eq!((&lines[3]["call"], &lines[3]["result"]["seq"]), (&build["seq"], &lines[3]["seq"]));
    assert_eq!(
        (&lines[5]["failed"], &lines[6]["decision"]["outcome"]),
        (&json!(true), &json!("block"))
    );
    assert!(lines.iter().all(|line| line["replay"]["what"] == "unchanged"));
    let only = home.text(&["replay", "--step", "last", "--kind", "tool.before", "--json"]);
    assert_eq!(only.lines().count(), 4, "filters select steps");
    let refused = home.run(&["replay", "--step", "last"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text.contains("needs a terminal") && text.contains("--json"), "{text}");
}
