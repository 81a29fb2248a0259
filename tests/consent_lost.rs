//! A file of approvals that cannot be read, is cut off or has vanished: what was approved is blocked until it can be
//! read again, with a daemon and without. It never counts as "not approved yet", which would let everything pass.

#![expect(clippy::expect_used, clippy::panic, reason = "a failed setup fails the test")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use hookbus_tests::broken_daemon::{BrokenDaemon, Then};
use hookbus_tests::consent::{
    NOT_APPROVED, approve_in, block_reason, block_reason_in, blocking_script, last_failure,
    tool_call,
};
use hookbus_tests::home::{Home, feed, wait_until};
use hookbus_tests::log_holder::LogHolder;
use hookbus_tests::plugins::write;
use serde_json::{Value, json};

/// What the agent is told.
const LOST: &str =
    "the approvals cannot be read; a person has to check it with `hookbus hooks approve`";

/// The same if only this approval is missing.
const GONE: &str = "its approval is gone from consent.json although it was never revoked; \
                    a person has to check it with `hookbus hooks approve`";

/// The same if the file holds no approval and the log cannot be read.
const UNKNOWN: &str = "consent.json holds no approval, and the log, which tells whether one is missing, cannot be \
                       read; a person has to check it with `hookbus hooks approve`";

/// A home with an approved hook that blocks, and a second one that is not approved.
fn approved(mode: &'static str) -> Home {
    let home = Home::with_daemon(mode);
    let script = home.script("guard.sh", &blocking_script("guarded"));
    let other = home.script("other.sh", "#!/bin/sh\n");
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ name: guard, command: {script} }}, {{ name: other, command: {other} }}] }}"
    ));
    let (exit, screen) = home.approve_with(&["guard"]);
    assert_eq!(exit, Some(0), "{screen}");
    home
}

/// A project with an approved rule that blocks.
fn approved_project(home: &Home) -> PathBuf {
    home.write_hooks_file("hooks: {}");
    let project = home.work().join("project");
    write(
        &project.join(".hookbus"),
        "hookbus.yaml",
        "hooks: { tool.before: [{ name: theirs, rule: { block: project rule } }] }",
    );
    approve_in(home, &project);
    project
}

fn verdict(home: &Home, hook: &str) -> Value {
    let last = home.last_decision();
    let verdicts = last["verdicts"].as_array().expect("verdicts").clone();
    verdicts.into_iter().find(|it| it["hook"] == hook).unwrap_or_else(|| panic!("{last}"))
}

#[track_caller]
fn assert_lost(home: &Home, what: &str) {
    let reason = block_reason(home);
    assert!(reason.contains(LOST), "{what}: `{reason}`");
}

#[test]
fn a_file_that_cannot_be_read_blocks_until_it_can_be_read_again() {
    for mode in ["off", "running"] {
        let home = approved(mode);
        let _daemon = (mode == "running").then(|| home.serve());
        let file = home.path().join("consent.json");
        let good = fs::read(&file).expect("approvals");
        assert_eq!(block_reason(&home), "guarded");
        for cut in [0, 1, good.len() / 2, good.len() - 3] {
            fs::write(&file, &good[..cut]).expect("a cut file");
            assert_lost(&home, &format!("{mode}: cut off at {cut}"));
            fs::write(&file, &good).expect("the approvals");
            assert_eq!(block_reason(&home), "guarded", "{mode}: it is read again");
        }
        // Even root cannot read a directory as a file.
        fs::remove_file(&file).expect("the approvals");
        fs::create_dir(&file).expect("a directory in its place");
        assert_lost(&home, mode);
        fs::remove_dir(&file).expect("the directory");
        assert_lost(&home, &format!("{mode}: the file has vanished"));
        fs::write(&file, &good).expect("the approvals");
        assert_eq!(block_reason(&home), "guarded", "{mode}");
    }
}

#[test]
fn what_was_never_approved_stays_unapproved_when_the_file_has_vanished() {
    let home = approved("off");
    fs::remove_file(home.path().join("consent.json")).expect("the approvals");
    assert_lost(&home, "guard");
    let other = verdict(&home, "other");
    assert_eq!(other["failure"], NOT_APPROVED);
    // Without any approval ever, no file is what is to be expected.
    let fresh = Home::new();
    let script = fresh.script("guard.sh", &blocking_script("guarded"));
    fresh.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{{ command: {script} }}] }}"));
    assert_eq!(block_reason(&fresh), "");
    assert_eq!(last_failure(&fresh), NOT_APPROVED);
}

#[test]
fn an_approval_that_vanishes_before_the_daemon_has_seen_it_blocks() {
    let home = Home::with_daemon("running");
    let script = home.script("guard.sh", &blocking_script("guarded"));
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{{ command: {script} }}] }}"));
    let _daemon = home.serve();
    assert_eq!(block_reason(&home), "", "it is not approved yet");
    home.approve();
    fs::remove_file(home.path().join("consent.json")).expect("the approvals");
    assert_lost(&home, "the log knows of it");
}

#[test]
fn a_revoked_approval_is_not_missed() {
    let home = approved("off");
    assert_eq!(home.json(&["hooks", "revoke", "guard", "--json"])["revoked"], 1);
    fs::remove_file(home.path().join("consent.json")).expect("the approvals");
    assert_eq!(block_reason(&home), "");
    assert_eq!(verdict(&home, "guard")["failure"], NOT_APPROVED);
}

#[test]
fn a_lost_file_is_shown_with_what_to_do_and_approving_again_repairs_it() {
    let home = Home::new();
    let [one, two] =
        ["one", "two"].map(|name| home.script(&format!("{name}.sh"), &blocking_script(name)));
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ name: one, command: {one} }}, {{ name: two, command: {two} }}] }}"
    ));
    home.approve();
    let file = home.path().join("consent.json");
    fs::write(&file, "{\"approvals\": [").expect("a cut file");
    for verb in [&["status"][..], &["status", "--check"], &["hooks", "list"], &["hooks", "doctor"]]
    {
        let shown = String::from_utf8_lossy(&home.run(verb).stdout).into_owned();
        assert!(shown.contains("consent.json is broken"), "{verb:?}: {shown}");
        assert!(shown.contains("run `hookbus hooks approve` again"), "{verb:?}: {shown}");
    }
    let (exit, screen) = home.approve_with(&["one"]);
    assert_eq!(exit, Some(0), "{screen}");
    let kept = fs::read_to_string(home.path().join("consent.json.broken"));
    assert_eq!(kept.expect("the broken file is kept"), "{\"approvals\": [");
    block_reason(&home);
    assert_eq!(verdict(&home, "one")["reason"], "one");
    let two = verdict(&home, "two");
    assert_eq!(two["verdict"], "block", "the other one stays blocked: {two}");
    assert!(two["failure"].as_str().is_some_and(|why| why.contains("changed since")), "{two}");
    home.approve();
    block_reason(&home);
    assert_eq!(verdict(&home, "two")["reason"], "two");
    assert!(home.run(&["hooks", "list"]).status.success());
}

#[test]
fn the_hooks_of_a_project_are_blocked_too_and_work_again_afterwards() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let project = approved_project(&home);
        let _daemon = (mode == "running").then(|| home.serve());
        assert_eq!(block_reason_in(&home, &project), "project rule (hookbus rule theirs)");
        let file = home.path().join("consent.json");
        let good = fs::read(&file).expect("approvals");
        for bad in [&b"{"[..], b""] {
            fs::write(&file, bad).expect("a broken file");
            let reason = block_reason_in(&home, &project);
            assert!(reason.contains("the approvals cannot be read"), "{mode}: {reason}");
        }
        fs::remove_file(&file).expect("the file");
        let reason = block_reason_in(&home, &project);
        assert!(reason.contains("the approvals cannot be read"), "{mode}: {reason}");
        fs::write(&file, &good).expect("the approvals");
        assert_eq!(
            block_reason_in(&home, &project),
            "project rule (hookbus rule theirs)",
            "{mode}"
        );
    }
}

/// Removes the approvals of commands that contain `what` from the file, which stays as hookbus writes it.
fn remove_approval(home: &Home, what: &str) {
    let file = home.path().join("consent.json");
    let text = fs::read_to_string(&file).expect("approvals");
    let mut json: Value = serde_json::from_str(&text).expect("JSON");
    let rows = json["approvals"].as_array_mut().expect("approvals");
    let count = rows.len();
    rows.retain(|row| !row["command"].as_str().is_some_and(|command| command.contains(what)));
    assert_eq!(rows.len(), count - 1, "{text}");
    fs::write(file, json.to_string()).expect("the file");
}

#[test]
fn an_approval_that_is_removed_from_the_file_blocks_until_it_is_given_again_or_revoked() {
    for mode in ["off", "running"] {
        let home = approved(mode);
        let _daemon = (mode == "running").then(|| home.serve());
        assert_eq!(block_reason(&home), "guarded", "{mode}");
        let file = home.path().join("consent.json");
        let good = fs::read(&file).expect("approvals");
        for bad in ["{\"approvals\": []}", "{\"approvals\": [{\"event\": \"pre_tool_call\"}]}"] {
            fs::write(&file, bad).expect("a file without approvals");
            assert!(block_reason(&home).contains(GONE), "{mode}: {bad}");
            assert_eq!(verdict(&home, "other")["failure"], NOT_APPROVED, "{mode}");
            fs::write(&file, &good).expect("the approvals");
            assert_eq!(block_reason(&home), "guarded", "{mode}");
        }
        assert_eq!(home.approve_with(&["other"]).0, Some(0));
        remove_approval(&home, "guard.sh");
        assert!(block_reason(&home).contains(GONE), "{mode}: one of two");
        home.approve();
        assert_eq!(block_reason(&home), "guarded", "{mode}: approved again");
        remove_approval(&home, "guard.sh");
        assert_eq!(home.json(&["hooks", "revoke", "guard", "--json"])["revoked"], 1, "{mode}");
        assert_eq!(block_reason(&home), "", "{mode}: revoked");
        assert_eq!(verdict(&home, "guard")["failure"], NOT_APPROVED, "{mode}");
        let again = home.run(&["hooks", "revoke", "guard", "--json"]);
        assert!(!again.status.success(), "{mode}: there is nothing more to revoke");
    }
}

#[test]
fn a_removed_approval_is_shown_with_what_to_do() {
    let home = approved("off");
    remove_approval(&home, "guard.sh");
    for verb in ["list", "doctor"] {
        let shown = String::from_utf8_lossy(&home.run(&["hooks", verb]).stdout).into_owned();
        assert!(shown.contains("its approval is gone from consent.json"), "{verb}: {shown}");
    }
    let start = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"});
    home.write_hooks_file(
        &fs::read_to_string(home.path().join("hookbus.yaml"))
            .expect("hooks")
            .replace("pre_tool_call", "tool.before"),
    );
    home.approve();
    remove_approval(&home, "guard.sh");
    let told = home.answer("gemini", &start)["systemMessage"].to_string();
    assert!(told.contains("guard (its approval is gone from consent.json)"), "{told}");
}

#[test]
fn an_entry_that_changed_and_whose_approval_is_removed_blocks_as_changed() {
    let home = approved("off");
    let text = fs::read_to_string(home.path().join("hookbus.yaml")).expect("hooks");
    home.write_hooks_file(&text.replace("name: guard,", "name: guard, timeout: 7,"));
    assert!(block_reason(&home).contains("changed since it was approved"));
    remove_approval(&home, "guard.sh");
    assert!(block_reason(&home).contains("changed since it was approved"));
    // Another command is another entry, which was never approved.
    home.write_hooks_file(&text.replace("guard.sh", "other.sh"));
    assert_eq!(block_reason(&home), "");
}

#[test]
fn what_the_log_of_another_home_or_an_earlier_log_says_does_not_count() {
    let home = approved("off");
    let hooks = fs::read_to_string(home.path().join("hookbus.yaml")).expect("hooks");
    let other = Home::new();
    other.write_hooks_file(&hooks);
    assert_eq!(block_reason(&other), "", "another home");
    for name in ["log.db", "log.db-wal", "log.db-shm"] {
        fs::rename(home.path().join(name), home.work().join(name)).ok();
    }
    assert_eq!(block_reason(&home), "guarded", "an approval without a row, as of earlier versions");
    remove_approval(&home, "guard.sh");
    assert_eq!(block_reason(&home), "", "the new log does not know of it");
}

#[test]
fn a_log_that_cannot_be_read_does_not_make_a_removed_approval_look_like_none() {
    let home = approved("off");
    remove_approval(&home, "guard.sh");
    fs::remove_file(home.path().join("log.db-wal")).ok();
    fs::write(home.path().join("log.db"), "no database").expect("a broken log");
    assert!(block_reason(&home).contains(UNKNOWN));
}

#[test]
fn an_approval_that_is_recorded_after_it_was_revoked_is_not_missed() {
    let home = approved("off");
    let holder = LogHolder::flock(&home);
    assert_eq!(home.approve_with(&["other"]).0, Some(0), "its row waits in the spool");
    holder.release();
    assert_eq!(home.json(&["hooks", "revoke", "other", "--json"])["revoked"], 1);
    // The first call takes the row in.
    block_reason(&home);
    wait_until("it is in the log", || home.log(&["--kind", "hooks.approved"]).len() == 2);
    block_reason(&home);
    assert_eq!(verdict(&home, "other")["failure"], NOT_APPROVED);
}

/// A home with an approved hook that allows everything, and a second one that was never approved.
fn approved_and_new(mode: &'static str) -> Home {
    let home = approved(mode);
    home.script("guard.sh", "#!/bin/sh\n");
    let (exit, screen) = home.approve_with(&["guard"]);
    assert_eq!(exit, Some(0), "{screen}");
    home
}

#[test]
fn a_new_hook_does_not_block_while_the_log_is_locked_and_the_file_is_sound() {
    for mode in ["off", "running"] {
        let home = approved_and_new(mode);
        let holder = LogHolder::exclusive(&home);
        let _daemon = (mode == "running").then(|| home.serve());
        assert_eq!(block_reason(&home), "", "{mode}: it was never approved");
        let file = home.path().join("consent.json");
        let good = fs::read(&file).expect("approvals");
        fs::write(&file, "{").expect("a broken file");
        assert!(block_reason(&home).contains(LOST), "{mode}: neither can be read");
        fs::write(&file, &good).expect("the approvals");
        fs::write(&file, "{\"approvals\": []}").expect("no approvals");
        assert!(block_reason(&home).contains(UNKNOWN), "{mode}: the file says nothing");
        fs::write(&file, &good).expect("the approvals");
        assert_eq!(block_reason(&home), "", "{mode}");
        holder.release();
    }
}

/// Marks the log as one that a newer version wrote.
fn mark_log_as_newer(home: &Home) {
    let bump = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA user_version = 99'); db.commit()";
    let log = home.path().join("log.db");
    let bumped = Command::new("python3").args(["-c", bump]).arg(&log).status();
    assert!(bumped.expect("python3 runs").success());
}

#[test]
fn a_new_hook_does_not_block_with_the_log_of_a_newer_version() {
    let home = approved_and_new("off");
    mark_log_as_newer(&home);
    assert_eq!(block_reason(&home), "");
    fs::remove_file(home.path().join("consent.json")).expect("the approvals");
    assert!(block_reason(&home).contains(LOST));
}

#[test]
fn a_daemon_that_knows_of_a_removed_approval_blocks_while_the_log_cannot_be_read() {
    let home = approved("running");
    assert_eq!(home.approve_with(&["other"]).0, Some(0));
    let _daemon = home.serve();
    remove_approval(&home, "guard.sh");
    assert!(block_reason(&home).contains(GONE));
    mark_log_as_newer(&home);
    assert!(block_reason(&home).contains(GONE));
}

#[test]
fn an_emptied_file_that_is_then_deleted_does_not_hide_an_approval_from_the_daemon() {
    let home = approved("running");
    let _daemon = home.serve();
    let file = home.path().join("consent.json");
    fs::write(&file, "{\"approvals\": []}").expect("no approvals");
    assert!(block_reason(&home).contains(GONE));
    fs::remove_file(&file).expect("the file");
    assert!(block_reason(&home).contains("a person has to check it"));
}

#[test]
fn a_removed_approval_of_a_project_blocks_and_lets_no_nearer_file_take_over() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let project = approved_project(&home);
        let nearer = project.join("vendor");
        write(
            &nearer.join(".hookbus"),
            "hookbus.yaml",
            "hooks: { tool.before: [{ name: mine, rule: { allow: true } }] }",
        );
        let _daemon = (mode == "running").then(|| home.serve());
        assert_eq!(block_reason_in(&home, &nearer), "project rule (hookbus rule theirs)");
        let file = home.path().join("consent.json");
        let good = fs::read(&file).expect("approvals");
        fs::write(&file, "{\"approvals\": []}").expect("no approvals");
        for folder in [&project, &nearer] {
            let reason = block_reason_in(&home, folder);
            assert!(reason.contains("gone from consent.json"), "{mode}: {reason}");
        }
        fs::write(&file, &good).expect("the approvals");
        assert_eq!(block_reason_in(&home, &nearer), "project rule (hookbus rule theirs)", "{mode}");
    }
}

/// The reason with which a tool call is blocked past the deadline: the daemon hangs.
fn block_reason_too_late(home: &Home) -> String {
    let _daemon = BrokenDaemon::start(home, Then::Hang);
    let command = home.command(["hook", "hermes", "--deadline", "4"]);
    let output = feed(command, tool_call().to_string().as_bytes());
    let answer: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    answer["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_lapsed_or_lost_approval_blocks_past_the_deadline_too() {
    let home = Home::with_daemon("running");
    let script = home.script("guard.sh", &blocking_script("guarded"));
    let other = home.script("other.sh", "#!/bin/sh\n");
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ name: guard, command: {script} }}, {{ name: other, command: {other} }}] }}"
    ));
    assert_eq!(block_reason_too_late(&home), "", "never approved");
    home.approve();
    assert_eq!(block_reason_too_late(&home), "", "approved: its own `on_failure` decides");
    home.script("guard.sh", &blocking_script("edited"));
    assert!(block_reason_too_late(&home).contains("changed since it was approved"));
    fs::write(home.path().join("consent.json"), "{").expect("a cut file");
    assert!(block_reason_too_late(&home).contains(LOST));
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ name: guard, command: {script}, on_failure: allow }}] }}"
    ));
    assert_eq!(block_reason_too_late(&home), "", "the entry says so");
}

#[test]
fn a_script_without_ending_after_an_interpreter_is_covered() {
    let home = Home::new();
    write(&home.work(), "guard", &blocking_script("guarded"));
    home.write_hooks_file("hooks: { pre_tool_call: [{ command: bash guard }] }");
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
    write(&home.work(), "guard", &blocking_script("edited"));
    assert!(block_reason(&home).contains("changed since it was approved"));
}
