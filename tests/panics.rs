//! A client or a daemon that panics, or cannot start a thread, opens no guard: the rules still count, else what the
//! wiring says with `--on-failure`. What can be provoked from outside is provoked here with the real program; the
//! answer after a panic everywhere has unit tests in `cli/src/hook/tests.rs`.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use hookbus_tests::broken_daemon::{BrokenDaemon, Then};
use hookbus_tests::home::{Home, everything, feed};
use hookbus_tests::payloads::hermes_shell;
use serde_json::Value;

const GUARD: &str =
    "hooks: { tool.before: [{ name: guard, rule: { when: { command: rm }, block: guarded } }] }";

/// A user without any other process.
const LONELY: u32 = 54_322;

fn reason(stdout: &str) -> String {
    let answer: Value = serde_json::from_str(stdout).unwrap_or_default();
    answer["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_size_of_stacks_does_not_come_from_the_environment_of_an_agent() {
    let home = Home::with_hooks(GUARD);
    let script = home.script("check.sh", "#!/bin/sh\necho checked >&2\nexit 2\n");
    for size in ["1", "100000000000000"] {
        let ask = |command: &str| {
            let mut hook = home.command(["hook", "hermes"]);
            hook.env("RUST_MIN_STACK", size);
            let output = feed(hook, hermes_shell(command).to_string().as_bytes());
            assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""), "{size}");
            reason(&output.stdout)
        };
        home.write_hooks(GUARD);
        assert_eq!(ask("rm x"), "guarded (hookbus rule guard)", "{size}");
        home.write_hooks(&format!("hooks: {{ tool.before: [{{ command: {script} }}] }}"));
        assert_eq!(ask("ls"), "checked", "{size}");
    }
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 4, "all are in the log");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").expect("this process").uid() == 0
}

/// Gives a folder with everything in it to another user.
fn give(folder: &Path, user: u32) {
    for path in everything(folder).keys() {
        chown(path, Some(user), None).expect("root may do this");
    }
}

/// `hookbus hook` as a user who may not start another process or thread.
fn without_threads(home: &Home, options: &[&str], payload: &[u8]) -> (Option<i32>, String) {
    let folder = home.path().parent().expect("a folder").to_owned();
    let hook = home.command([&["hook", "hermes"], options].concat());
    let mut command = Command::new("prlimit");
    command.arg("--nproc=1");
    if is_root() {
        give(&folder, LONELY);
        command.args(["setpriv", "--reuid", &LONELY.to_string(), "--clear-groups"]);
    }
    command.arg(hook.get_program()).args(hook.get_args()).current_dir(home.work());
    for (key, value) in hook.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let output = feed(command, payload);
    (output.exit, output.stdout)
}

#[test]
fn a_command_that_cannot_be_asked_without_threads_blocks_unless_it_says_otherwise() {
    for (policy, blocks) in [("", true), (", on_failure: allow", false)] {
        let home = Home::with_new_binary("off");
        home.write_hooks(&format!(
            "hooks: {{ tool.before: [{{ name: a, command: ls{policy} }}] }}"
        ));
        let call = hermes_shell("ls").to_string();
        let (exit, answer) = without_threads(&home, &[], call.as_bytes());
        let expected =
            if blocks { "hook `a` failed: the system has no thread left for it" } else { "" };
        assert_eq!((exit, reason(&answer).as_str()), (Some(0), expected), "{answer}");
    }
}

#[test]
fn rules_count_and_events_are_kept_if_no_thread_can_be_started() {
    let home = Home::with_new_binary("off");
    home.write_hooks(GUARD);
    let call = hermes_shell("rm x").to_string();
    for options in [&[][..], &["--on-failure", "block"]] {
        let (exit, answer) = without_threads(&home, options, call.as_bytes());
        assert_eq!(
            (exit, reason(&answer).as_str()),
            (Some(0), "guarded (hookbus rule guard)"),
            "{answer}"
        );
    }
    if is_root() {
        give(&home.path(), 0);
    }
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 3, "they were in the spool");
}

#[test]
fn a_client_handles_the_event_itself_if_the_daemon_panics_over_it() {
    for part_of_the_reply in [&b""[..], b"\0\0\0\0"] {
        let home = Home::with_daemon("running");
        home.write_hooks(GUARD);
        let daemon = BrokenDaemon::start(&home, Then::BreakOff(part_of_the_reply));
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm x"))["reason"],
            "guarded (hookbus rule guard)"
        );
        drop(daemon);
        assert_eq!(home.log(&["--kind", "tool.before"]).len(), 1);
    }
}
