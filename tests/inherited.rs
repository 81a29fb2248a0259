//! What hookbus inherits from the process of its agent: the size of stacks, limits on processes and files, ignored
//! signals. A repository can set some of it, and a shell or a container the rest; none of it opens a guard in silence.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use hookbus_tests::home::{Home, HookOutput, everything, feed, wait_until};
use hookbus_tests::payloads::hermes_shell;
use serde_json::Value;

const GUARD: &str =
    "hooks: { tool.before: [{ name: guard, rule: { when: { command: rm }, block: guarded } }] }";

/// A user without any other process.
const LONELY: &str = "54323";

/// `hookbus`, started by `wrapper`.
fn wrapped(home: &Home, wrapper: &[&str], arguments: &[&str]) -> Command {
    let unwrapped = home.command(arguments);
    let mut words = wrapper.iter().map(OsStr::new).chain([unwrapped.get_program()]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(unwrapped.get_args()).current_dir(home.work());
    for (key, value) in unwrapped.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command
}

/// Runs `hookbus hook hermes` about `rm x`, started by `wrapper`.
fn hook_in(home: &Home, wrapper: &[&str], options: &[&str]) -> HookOutput {
    let arguments = [&["hook", "hermes", "--deadline", "8"], options].concat();
    feed(wrapped(home, wrapper, &arguments), hermes_shell("rm x").to_string().as_bytes())
}

fn reason(output: &HookOutput) -> String {
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let answer: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    answer["reason"].as_str().unwrap_or_default().to_owned()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").expect("this process").uid() == 0
}

/// Gives a folder with everything in it to another user.
fn give(folder: &Path, user: &str) {
    for path in everything(folder).keys() {
        chown(path, Some(user.parse().expect("a number")), None).expect("root may do this");
    }
}

/// A home of a user who is not root and has no other process, and the words that start a program as this user.
fn home_of_another_user() -> (Home, Vec<&'static str>) {
    let home = Home::with_new_binary("off");
    home.work();
    let words =
        if is_root() { vec!["setpriv", "--reuid", LONELY, "--clear-groups"] } else { vec![] };
    (home, words)
}

/// Hands the home over to the user of [`home_of_another_user`].
fn hand_over(home: &Home) {
    if is_root() {
        give(home.path().parent().expect("a folder"), LONELY);
    }
}

#[test]
fn a_stack_size_of_the_environment_reaches_neither_the_client_nor_the_daemon_that_it_starts() {
    for size in ["1", "1000000000000000"] {
        let home = Home::with_daemon("auto");
        home.write_hooks(GUARD);
        let variable = format!("RUST_MIN_STACK={size}");
        assert_eq!(
            reason(&hook_in(&home, &["env", &variable], &[])),
            "guarded (hookbus rule guard)",
            "{size}: no daemon"
        );
        wait_until("a daemon answers", || home.has_daemon());
        assert_eq!(
            reason(&hook_in(&home, &["env", &variable], &[])),
            "guarded (hookbus rule guard)",
            "{size}: a daemon"
        );
        assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 1, "{size}");
        assert_eq!(home.log(&["--kind", "tool.before"]).len(), 2, "{size}: in the log");
    }
}

#[test]
fn a_rule_blocks_however_few_processes_and_threads_there_may_be() {
    let (home, user) = home_of_another_user();
    home.write_hooks(GUARD);
    hand_over(&home);
    for processes in 0..5 {
        let limit = format!("--nproc={processes}");
        let wrapper = [&user[..], &["prlimit", &limit]].concat();
        assert_eq!(
            reason(&hook_in(&home, &wrapper, &[])),
            "guarded (hookbus rule guard)",
            "{processes}"
        );
    }
    if is_root() {
        give(&home.path(), "0");
    }
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 6, "those of the spool are there too");
}

#[test]
fn a_limit_on_the_size_of_files_is_like_a_full_disk() {
    for options in [&[][..], &["--on-failure", "block"]] {
        let home = Home::with_hooks(GUARD);
        home.answer("hermes", &hermes_shell("ls"));
        for bytes in ["0", "512", "8192", "60000"] {
            let limit = format!("--fsize={bytes}");
            assert_eq!(
                reason(&hook_in(&home, &["prlimit", &limit], options)),
                "guarded (hookbus rule guard)",
                "{bytes}"
            );
        }
        home.answer("hermes", &hermes_shell("ls"));
        assert!(home.is_sound());
        assert!(
            home.log(&["--kind", "tool.before"]).len() >= 4,
            "the spool had room in 8,192 bytes"
        );
    }
}

#[test]
fn a_daemon_survives_a_limit_on_the_size_of_files() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let mut command = wrapped(&home, &["prlimit", "--fsize=50000"], &["serve"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut daemon = command.spawn().expect("a daemon");
    wait_until("the daemon answers", || home.has_daemon());
    for _ in 0..5 {
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm x"))["reason"],
            "guarded (hookbus rule guard)"
        );
    }
    assert!(home.has_daemon(), "it still runs");
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 5);
    daemon.kill().expect("our child");
    daemon.wait().expect("our child");
}

/// Starts its arguments in a process that ignores SIGCHLD, as some agents do.
const IGNORING_CHILDREN: [&str; 3] = [
    "python3",
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])",
];

#[test]
fn commands_are_waited_for_although_the_agent_ignores_that_its_children_end() {
    for mode in ["off", "auto"] {
        let home = Home::with_daemon(mode);
        let script = home.script("check.sh", "#!/bin/sh\necho checked >&2\nexit 2\n");
        home.write_hooks(&format!("hooks: {{ tool.before: [{{ command: {script} }}] }}"));
        assert_eq!(reason(&hook_in(&home, &IGNORING_CHILDREN, &[])), "checked", "{mode}");
        if mode == "auto" {
            wait_until("a daemon answers", || home.has_daemon());
            assert_eq!(reason(&hook_in(&home, &[], &[])), "checked", "the daemon inherits it too");
            assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 1);
        }
    }
}

#[test]
fn an_approved_command_blocks_however_few_files_may_be_open() {
    let home = Home::new();
    let script = home.script("check.sh", "#!/bin/sh\nexit 0\n");
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{{ command: {script} }}] }}"));
    home.approve();
    assert_eq!(reason(&hook_in(&home, &[], &[])), "", "it has nothing against it");
    for files in 4..17 {
        let limit = format!("--nofile={files}");
        let answer = reason(&hook_in(&home, &["prlimit", &limit], &[]));
        let is_shortage = answer.contains("is short of something");
        // With very few even the approvals cannot be read, which blocks too.
        assert!(is_shortage || answer.contains("approvals cannot be read"), "{files}: {answer}");
    }
}
