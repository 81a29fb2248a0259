//! Files of the home that other users can change: the hooks in them are not used, the user is told how to mend it, and
//! guards that were in force stay in force.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use hookbus_tests::home::Home;
use serde_json::{Value, json};

const GUARD: &str =
    "hooks: { tool.before: [{ name: guard, rule: { when: { command: rm }, block: no } }] }";
const OPEN: &str = "hooks: { tool.before: [{ name: open, rule: { allow: true } }] }";

/// Another user than the one who runs the tests.
const OTHER: u32 = 54_321;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
}

fn gemini(home: &Home, name: &str, session: &str) -> Value {
    let event = json!({
        "hook_event_name": name, "session_id": session, "source": "startup",
        "tool_name": "run_shell_command", "tool_input": {"command": "rm -rf /"},
    });
    home.answer("gemini", &event)
}

fn is_blocked(home: &Home) -> bool {
    gemini(home, "BeforeTool", "one")["decision"] == "deny"
}

/// What the user reads in the agent, in `status` and in `hooks doctor` names the path and the command.
fn assert_told(home: &Home, command: &str, session: &str) {
    let told = gemini(home, "SessionStart", session)["systemMessage"].to_string();
    let status = String::from_utf8_lossy(&home.run(&["status"]).stdout).into_owned();
    let doctor = String::from_utf8_lossy(&home.run(&["hooks", "doctor"]).stdout).into_owned();
    for text in [told, status, doctor] {
        assert!(text.contains(command), "`{command}` is not in: {text}");
    }
}

#[test]
fn hooks_from_a_file_that_others_can_write_are_not_used_and_earlier_ones_stay() {
    for daemon in ["off", "running"] {
        let home = Home::with_daemon(daemon);
        home.write_hooks(GUARD);
        let _daemon = (daemon == "running").then(|| home.serve());
        assert!(is_blocked(&home));
        let file = home.path().join("hookbus.yaml");
        for mode in [0o664, 0o646] {
            home.write_hooks(OPEN);
            set_mode(&file, mode);
            assert!(is_blocked(&home), "{daemon} {mode:o}: the last good version");
            assert_told(&home, "chmod go-w", &format!("{mode:o}"));
        }
        set_mode(&file, 0o644);
        assert!(!is_blocked(&home), "{daemon}: mended");
    }
}

#[test]
fn a_home_that_others_can_write_or_replace_is_not_used_until_it_is_mended() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let _daemon = home.serve();
    assert!(is_blocked(&home));
    let above = home.path().parent().expect("a directory").to_owned();
    for (folder, mode, command) in [
        (home.path(), 0o775, "chmod go-w"),
        (home.path(), 0o757, "chmod go-w"),
        (above.clone(), 0o777, "chmod o-w"),
    ] {
        set_mode(&folder, mode);
        home.write_hooks(OPEN);
        assert!(is_blocked(&home), "{mode:o}: the last good version");
        assert_told(&home, command, &format!("{mode:o}"));
        set_mode(&folder, 0o755);
        assert!(!is_blocked(&home), "{mode:o}: mended");
        home.write_hooks(GUARD);
        assert!(is_blocked(&home));
    }
    set_mode(&above, 0o1777);
    home.write_hooks(&format!("{GUARD} # as in /tmp"));
    let told = gemini(&home, "SessionStart", "sticky")["systemMessage"].to_string();
    assert!(!told.contains("cannot be used"), "{told}");
}

#[test]
fn without_an_earlier_version_no_hooks_are_in_force_and_the_user_reads_why() {
    let home = Home::with_hooks(GUARD);
    set_mode(&home.path().join("hookbus.yaml"), 0o666);
    let told = gemini(&home, "SessionStart", "one")["systemMessage"].to_string();
    assert!(told.contains("no hooks are in force") && told.contains("chmod go-w"), "{told}");
    assert!(!is_blocked(&home));
}

#[test]
fn files_of_another_user_are_not_used() {
    let home = Home::with_hooks(GUARD);
    assert!(is_blocked(&home));
    let file = home.path().join("hookbus.yaml");
    home.write_hooks(OPEN);
    chown(&file, Some(OTHER), None).expect("these tests run as root");
    assert!(is_blocked(&home), "the last good version");
    assert_told(&home, "chown 0 ", "two");
    chown(&file, Some(0), None).expect("root");
    assert!(!is_blocked(&home), "root's own");
}

#[test]
fn approvals_that_others_can_write_do_not_count() {
    let home = Home::new();
    let script =
        home.script("hook", "#!/bin/sh\necho '{\"decision\":\"block\",\"reason\":\"asked\"}'\n");
    home.write_hooks_file(&format!("hooks: {{ tool.before: [{{ name: a, command: {script} }}] }}"));
    home.approve();
    assert_eq!(gemini(&home, "BeforeTool", "one")["reason"], "asked");
    set_mode(&home.path().join("consent.json"), 0o666);
    assert_ne!(gemini(&home, "BeforeTool", "two")["reason"], "asked", "it did not run");
    let doctor = String::from_utf8_lossy(&home.run(&["hooks", "doctor"]).stdout).into_owned();
    assert!(doctor.contains("chmod go-w"), "{doctor}");
    set_mode(&home.path().join("consent.json"), 0o600);
    assert_eq!(gemini(&home, "BeforeTool", "three")["reason"], "asked");
}

#[test]
fn events_wait_in_the_spool_while_others_can_write_the_log() {
    let home = Home::with_hooks(GUARD);
    assert!(is_blocked(&home));
    let log = home.path().join("log.db");
    set_mode(&log, 0o666);
    assert!(is_blocked(&home), "rules still decide");
    let status = String::from_utf8_lossy(&home.run(&["status"]).stdout).into_owned();
    assert!(status.contains("chmod go-w"), "{status}");
    set_mode(&log, 0o600);
    assert!(is_blocked(&home));
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 3, "nothing is lost");
    assert!(home.is_sound());
}
