//! Limits: few descriptors, many calls at once, idle connections, large payloads. No guard is passed because of
//! them, and no agent waits for another.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::io::ErrorKind::WouldBlock;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use hookbus_tests::home::{Home, path_text, wait_until};
use hookbus_tests::payloads::hermes_shell;
use serde_json::{Value, json};

/// A guard that takes a while, so that all calls overlap.
const SLOW_GUARD: &str = "#!/bin/sh\ncat >/dev/null\nsleep 3\necho guarded >&2\nexit 2\n";

/// `hookbus` in a shell that first runs `ulimit`.
fn limited(home: &Home, ulimit: &str, arguments: &[&str]) -> Command {
    let unlimited = home.command(arguments);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", &format!("{ulimit}; exec \"$0\" \"$@\"")])
        .arg(unlimited.get_program())
        .args(unlimited.get_args());
    if let Some(folder) = unlimited.get_current_dir() {
        limited.current_dir(folder);
    }
    for (key, value) in unlimited.get_envs() {
        match value {
            Some(value) => limited.env(key, value),
            None => limited.env_remove(key),
        };
    }
    limited
}

/// A daemon with this limit; killed when dropped.
struct LimitedDaemon(Child);

impl LimitedDaemon {
    fn start(home: &Home, ulimit: &str) -> Self {
        let mut command = limited(home, ulimit, &["serve"]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = Self(command.spawn().expect("a daemon"));
        wait_until("the daemon answers", || home.has_daemon());
        daemon
    }

    /// A line of `/proc/<pid>/<file>`, as words.
    fn proc(&self, file: &str, line: &str) -> Vec<String> {
        proc(self.0.id(), file, line)
    }
}

impl Drop for LimitedDaemon {
    fn drop(&mut self) {
        self.0.kill().expect("our child");
        self.0.wait().expect("our child");
    }
}

fn proc(pid: u32, file: &str, line: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).expect("a process");
    let line = text.lines().find(|it| it.starts_with(line)).expect("a line");
    line.split_whitespace().map(str::to_owned).collect()
}

fn guarded_home(guard: &str) -> Home {
    let home = Home::with_daemon("running");
    let guard = home.script("guard.sh", guard);
    home.write_hooks(&format!("hooks:\n  tool.before:\n    - command: {guard}\n"));
    home
}

/// Starts all calls before it reads the first answer; returns those that were not blocked.
fn unblocked(home: &Home, ulimit: &str, calls: usize) -> Vec<String> {
    let payload = hermes_shell("ls").to_string();
    let start = |_| {
        let mut command = limited(home, ulimit, &["hook", "hermes"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a hook");
        child.stdin.take().expect("a pipe").write_all(payload.as_bytes()).expect("a payload");
        child
    };
    let started: Vec<Child> = (0..calls).map(start).collect();
    let answers = started.into_iter().map(|child| {
        let output = child.wait_with_output().expect("a hook");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    });
    answers.filter(|answer| !answer.contains("guarded")).collect()
}

#[test]
fn three_hundred_calls_at_once_pass_no_guard_with_1024_descriptors() {
    let home = guarded_home(SLOW_GUARD);
    let _daemon = LimitedDaemon::start(&home, "ulimit -n 1024");
    assert_eq!(unblocked(&home, "ulimit -n 1024", 300), Vec::<String>::new());
    assert_eq!(home.decisions().len(), 300);
    assert!(home.is_sound());
}

#[test]
fn a_hundred_calls_at_once_pass_no_guard_with_64_descriptors() {
    let home = guarded_home(SLOW_GUARD);
    let _daemon = LimitedDaemon::start(&home, "ulimit -n 64");
    assert_eq!(unblocked(&home, "ulimit -n 64", 100), Vec::<String>::new());
    assert_eq!(home.decisions().len(), 100);
    assert!(home.is_sound());
}

#[test]
fn a_guard_that_cannot_start_for_want_of_descriptors_blocks_without_a_daemon() {
    let home = guarded_home("#!/bin/sh\nexit 0\n");
    let mut command = limited(&home, "ulimit -n 17", &["hook", "hermes", "--deadline", "4"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a hook");
    let payload = hermes_shell("ls").to_string();
    child.stdin.take().expect("a pipe").write_all(payload.as_bytes()).expect("a payload");
    let output = child.wait_with_output().expect("a hook");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    assert_eq!(answer["decision"], "block");
    assert!(answer["reason"].to_string().contains("short of something"), "{answer}");
}

#[test]
fn the_daemon_uses_the_hard_limit_and_its_hooks_get_the_soft_one() {
    let home = Home::with_daemon("running");
    let seen = home.work().join("limit");
    let script = format!("#!/bin/sh\nsleep 0.2\nulimit -Sn > {}\n", path_text(&seen));
    let script = home.script("limit.sh", &script);
    home.write_hooks(&format!("hooks:\n  tool.before:\n    - command: {script}\n"));
    let daemon = LimitedDaemon::start(&home, "ulimit -Sn 300; ulimit -Hn 4000");
    assert_eq!(daemon.proc("limits", "Max open files")[3..5], ["4000", "4000"]);
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 1);
    assert_eq!(fs::read_to_string(seen).expect("the limit").trim(), "300");
}

#[test]
fn connections_that_send_nothing_are_closed_and_hold_nobody_up() {
    let home = guarded_home("#!/bin/sh\necho guarded >&2\nexit 2\n");
    let _daemon = LimitedDaemon::start(&home, "ulimit -n 64");
    let connect = || UnixStream::connect(home.path().join("bus.sock")).expect("a daemon");
    let mut idle: Vec<UnixStream> = (0..40).map(|_| connect()).collect();
    // One announces a payload of 1 GiB, and does not send it.
    let announced = (1_u64 << 30).to_be_bytes();
    drop(idle[0].write_all(&announced));
    let answer = home.answer("hermes", &hermes_shell("ls"));
    assert!(answer.to_string().contains("guarded"), "{answer}");
    for stream in &mut idle {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
        let timed_out = matches!(stream.read(&mut [0]), Err(error) if error.kind() == WouldBlock);
        assert!(!timed_out, "it is closed");
    }
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 1, "the daemon works again");
}

fn many_rules() -> String {
    let rule =
        |n| format!("    - rule: {{when: {{command: 'forbidden{n}\\b'}}, block: guarded}}\n");
    format!("hooks:\n  tool.before:\n{}", (0..31).map(rule).collect::<String>())
}

/// The payload of a shell call whose input has `field` beside the command.
fn padded(command: &str, field: &str) -> String {
    let payload = hermes_shell(command).to_string();
    let input = format!(r#""tool_input":{{{field},"#);
    let padded = payload.replacen(r#""tool_input":{"#, &input, 1);
    assert!(padded.len() > payload.len(), "the payload has a tool input");
    padded
}

fn zeros(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat(bytes / 2))
}

#[test]
fn other_agents_are_answered_while_a_large_command_is_searched() {
    let home = Home::with_daemon("running");
    home.write_hooks(&many_rules());
    let _daemon = home.serve();
    let in_flight = || home.json(&["status", "--json"])["daemon"]["in_flight"].clone();
    thread::scope(|scope| {
        let large = hermes_shell(&format!("{} forbidden30", "x".repeat(6 << 20))).to_string();
        let large = scope.spawn(|| home.hook("hermes", large));
        wait_until("the large command is being searched", || in_flight() == 1);
        let small = home.hook("hermes", hermes_shell("forbidden1").to_string());
        assert!(small.stdout.contains("guarded"), "{small:?}");
        assert!(!large.is_finished(), "the small command did not wait for the large one");
        assert!(large.join().expect("a hook").stdout.contains("guarded"));
    });
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 2);
}

#[test]
fn a_list_of_16_mb_beside_a_command_neither_hides_it_nor_fills_the_memory() {
    let home = Home::with_daemon("running");
    home.write_hooks("hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n");
    let daemon = home.serve();
    let pad = format!(r#""pad":{}"#, zeros(16 << 20));
    for (command, is_blocked) in [("rm -rf /", true), ("ls", false)] {
        let answer = home.hook("hermes", padded(command, &pad)).stdout;
        assert_eq!(answer.contains("guarded"), is_blocked, "{command}: {answer}");
    }
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 2);
    let peak: u64 = proc(daemon.pid(), "status", "VmHWM:")[1].parse().expect("kilobytes");
    assert!(peak < 300 << 10, "the daemon used {peak} kB for a payload of 16,384 kB");
    assert!(home.is_sound());
}

#[test]
fn a_rule_that_cannot_see_all_of_a_command_blocks_unless_its_entry_says_otherwise() {
    let rule = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";
    for (policy, is_blocked) in [("", true), ("      on_failure: allow\n", false)] {
        let home = Home::with_hooks(&format!("{rule}{policy}"));
        let command = json!({"command": ["rm", "-rf"]}).to_string();
        let long = command.replacen('[', &format!("[{}", r#""x","#.repeat(2_000_000)), 1);
        let payload = hermes_shell("ls").to_string();
        let payload = payload.replacen(r#"{"command":"ls"}"#, &long, 1);
        let answer = home.hook("hermes", payload).stdout;
        assert_eq!(answer.contains("too large"), is_blocked, "{answer}");
    }
}

#[test]
fn a_command_that_is_nested_too_deep_to_be_read_is_blocked_and_what_is_beside_it_is_still_seen() {
    let rule = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";
    let nested = |levels: usize, text: &str| {
        format!("{}{}{}", "[".repeat(levels), json!(text), "]".repeat(levels))
    };
    for (policy, is_closed) in [("", true), ("      on_failure: allow\n", false)] {
        let home = Home::with_hooks(&format!("{rule}{policy}"));
        let answer = |command: &str| {
            let payload = hermes_shell("ls").to_string();
            let payload = payload.replacen(r#"{"command":"ls"}"#, command, 1);
            assert!(payload.contains(command), "{payload}");
            home.hook("hermes", payload).stdout
        };
        for levels in [90, 120] {
            let command = format!(r#"{{"command":{}}}"#, nested(levels, "rm -rf /"));
            assert!(answer(&command).contains("guarded"), "{levels} levels");
        }
        for levels in [130, 200, 20_000] {
            let command = format!(r#"{{"command":{}}}"#, nested(levels, "rm -rf /"));
            let said = answer(&command);
            assert_eq!(said.contains("nested too deep"), is_closed, "{levels}: {said}");
            let verdicts = home.last_decision()["verdicts"].to_string();
            assert!(verdicts.contains("nested too deep"), "a failure either way: {verdicts}");
        }
        for (command, is_blocked) in [("rm -rf /", true), ("ls", false)] {
            let beside = format!(r#"{{"pad":{},"command":"{command}"}}"#, nested(200, "x"));
            assert_eq!(answer(&beside).contains("guarded"), is_blocked, "{command}");
        }
        // The input as a JSON text.
        let text = json!(json!({"command": "rm -rf /"}).to_string()).to_string();
        assert!(answer(&text).contains("guarded"), "{text}");
    }
}
