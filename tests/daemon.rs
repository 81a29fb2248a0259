//! The daemon: started by the first hook, left alone, gone when it should be. Hooks never need it.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hookbus_tests::home::{Home, Served, binary, feed, wait_until};
use hookbus_tests::payloads::hermes_shell;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

fn pid_of(home: &Home) -> i64 {
    home.json(&["status", "--json"])["daemon"]["pid"].as_i64().expect("a daemon has a pid")
}

fn is_alive(pid: i64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn the_first_hook_starts_a_daemon_and_does_not_wait_for_it() {
    let home = Home::with_daemon("auto");
    home.write_hooks(GUARD);
    // `feed` reads stdout and stderr to their ends: a daemon that held one would hang it.
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    wait_until("a daemon answers", || home.has_daemon());
    let pid = pid_of(&home);
    for stream in 0..3 {
        let target = fs::read_link(format!("/proc/{pid}/fd/{stream}")).expect("its streams");
        assert_eq!(target.to_string_lossy(), "/dev/null");
    }
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 1);
    assert!(home.path().join("hookbus.log").exists());
    home.text(&["stop"]);
    assert!(!is_alive(pid));
    assert!(home.is_sound());
}

#[test]
fn only_auto_starts_a_daemon() {
    for mode in ["running", "off"] {
        let home = Home::with_daemon(mode);
        home.answer("hermes", &hermes_shell("ls"));
        assert!(!home.path().join("serve.lock").exists(), "{mode}");
        assert!(!home.has_daemon());
    }
}

#[test]
fn off_uses_none_even_if_one_is_up() {
    let home = Home::with_daemon("off");
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 0);
    assert_eq!(home.log(&[]).len(), 1);
}

#[test]
fn a_daemon_that_a_hook_started_leaves_when_nobody_calls() {
    let home = Home::with_daemon("auto");
    let mut command = home.command(["hook", "hermes"]);
    command.env("HOOKBUS_IDLE", "0.6");
    feed(command, hermes_shell("ls").to_string().as_bytes());
    // It may have left again before anybody could ask it.
    let said = || fs::read_to_string(home.path().join("hookbus.log")).unwrap_or_default();
    wait_until("it has come", || said().contains("serving"));
    wait_until("it exits", || said().contains("exiting reason=\"idle\""));
    let told = said();
    let pid = told.split("pid=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let pid = pid.and_then(|pid| pid.parse().ok()).expect("it says who it is");
    wait_until("it has left", || !is_alive(pid));
    assert!(!home.path().join("bus.sock").exists());
}

#[test]
fn a_daemon_leaves_when_its_home_vanishes() {
    let home = Home::with_daemon("running");
    let mut daemon = home.serve();
    home.answer("hermes", &hermes_shell("ls"));
    fs::remove_dir_all(home.path()).expect("the home can be removed");
    wait_until("it has left", || daemon.has_left());
    assert!(!home.path().exists(), "it must not bring the home back");
}

#[test]
fn a_second_daemon_is_told_about_the_first() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    let second = home.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("already running"));
}

#[test]
fn an_old_daemon_makes_room_for_a_newer_client() {
    let home = Home::with_daemon("auto");
    let mut old = home.serve();
    let newer = home.work().join("hookbus-newer");
    fs::copy(binary(), &newer).expect("a copy");
    let later = fs::metadata(binary()).and_then(|file| file.modified()).expect("a date");
    let file = fs::File::options().write(true).open(&newer).expect("the copy");
    file.set_modified(later + Duration::from_mins(1)).expect("a later date");
    drop(file);
    let mut command = Command::new(&newer);
    command.args(["hook", "hermes"]).current_dir(home.work()).env("HOOKBUS_HOME", home.path());
    let heard = feed(command, hermes_shell("ls").to_string().as_bytes());
    assert_eq!((heard.exit, heard.stdout.as_str()), (Some(0), ""));
    wait_until("the old one has left", || old.has_left());
    wait_until("a new one answers", || home.has_daemon());
    let exe = fs::read_link(format!("/proc/{}/exe", pid_of(&home))).expect("its program");
    assert_eq!(exe, newer);
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 1, "the event was handled once");
}

#[test]
fn the_socket_is_for_this_user_only() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    let socket = fs::metadata(home.path().join("bus.sock")).expect("a socket");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(home.path()).expect("a home").permissions().mode() & 0o077, 0);
    if socket.uid() == 0 {
        // As root we can be somebody else: open the door for them, and the daemon still says no.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        fs::set_permissions(home.path().join("bus.sock"), fs::Permissions::from_mode(0o666))
            .expect("ours");
        fs::set_permissions(
            home.path().parent().expect("above"),
            fs::Permissions::from_mode(0o755),
        )
        .expect("ours");
        let talk = format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\nheard = b''\n\
             try:\n  s.sendall((15).to_bytes(8, 'big') + b'\\x01' + (6).to_bytes(8, 'big') + b'status')\n  heard = s.recv(100)\n\
             except OSError: pass\nprint(len(heard))",
            home.path().join("bus.sock").display()
        );
        let asked = Command::new("setpriv")
            .args(["--reuid", "65534", "--clear-groups", "/usr/bin/python3", "-c", &talk])
            .output()
            .expect("setpriv runs");
        assert_eq!(String::from_utf8_lossy(&asked.stdout).trim(), "0", "{asked:?}");
    }
}

#[test]
fn status_says_what_is_up_and_exits_accordingly() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let without = home.run(&["status"]);
    assert_eq!(without.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&without.stdout).contains("not running"));
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["log"]["rows"], 3);
    assert_eq!(status["hooks"]["count"], 1);
    assert_eq!(status["hooks"]["standing"], "current");
}

#[test]
fn nonsense_on_the_socket_harms_nobody() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    // A whole request, but of no version: one of a later version would make the daemon leave.
    let of_no_version = b"\0\0\0\0\0\0\0\x05\0abcd";
    for nonsense in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 64], &[255; 64], &of_no_version[..]]
    {
        let mut stream = UnixStream::connect(home.path().join("bus.sock")).expect("it listens");
        Write::write_all(&mut stream, nonsense).expect("it reads");
    }
    assert_eq!(home.answer("hermes", &hermes_shell("ls")), json!(null));
    assert_eq!(home.json(&["status", "--json"])["daemon"]["in_flight"], 0);
}

#[test]
fn a_home_too_deep_for_a_socket_address_works_all_the_same() {
    let home = Home::with_daemon("running");
    let deep = home.work().join("d".repeat(60)).join("e".repeat(60));
    let with_deep = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("HOOKBUS_HOME", &deep);
        command
    };
    let mut daemon = with_deep(&["serve"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("it answers", || {
        with_deep(&["status"]).output().is_ok_and(|out| out.status.success())
    });
    feed(with_deep(&["hook", "hermes"]), hermes_shell("ls").to_string().as_bytes());
    let status = with_deep(&["status", "--json"]).output().expect("it runs").stdout;
    let status: Value = serde_json::from_slice(&status).expect("JSON");
    daemon.kill().expect("ours");
    daemon.wait().expect("ours");
    assert_eq!(status["daemon"]["calls"], 1);
}

#[test]
fn a_daemon_that_hangs_is_worked_around() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let daemon = home.serve();
    send(&daemon, Signal::STOP);
    let told = home.answer("hermes", &hermes_shell("rm x"));
    send(&daemon, Signal::CONT);
    assert_eq!(told["reason"], "guarded");
    // Awake again, it finds the event in the log and adds nothing.
    wait_until("it answers", || home.has_daemon());
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 2);
    assert_eq!(home.decisions().len(), 1);
    assert!(home.is_sound());
}

fn send(daemon: &Served, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("a pid")).expect("a pid");
    kill_process(pid, signal).expect("ours");
}

#[test]
fn a_daemon_that_hangs_is_seen_for_what_it_is() {
    let home = Home::with_daemon("running");
    let daemon = home.serve();
    send(&daemon, Signal::STOP);
    let seen = format!("running (pid {}) but does not answer", daemon.pid());
    let status = home.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    let text = String::from_utf8_lossy(&status.stdout);
    assert!(text.contains(&seen) && text.contains("`hookbus stop` ends it"), "{text}");
    let status: Value =
        serde_json::from_slice(&home.run(&["status", "--json"]).stdout).expect("JSON");
    assert_eq!(status["daemon"], json!(null), "none answers");
    assert_eq!(status["hung"]["pid"], daemon.pid());
    let second = home.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(text.contains(&seen) && text.contains("`hookbus stop` ends it"), "{text}");
    // Awake again, it is as it was.
    send(&daemon, Signal::CONT);
    wait_until("it answers", || home.has_daemon());
    assert_eq!(home.json(&["status", "--json"])["hung"], json!(null));
}

#[test]
fn stop_ends_a_daemon_that_hangs_and_no_other() {
    let (home, other) = (Home::with_daemon("running"), Home::with_daemon("running"));
    home.write_hooks(GUARD);
    let mut hung = home.serve();
    let mut hung_elsewhere = other.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    send(&hung, Signal::STOP);
    send(&hung_elsewhere, Signal::STOP);
    let stopped = home.json(&["stop", "--json"]);
    assert_eq!(stopped["stopped"], hung.pid());
    wait_until("it is gone", || hung.has_left());
    assert!(!hung_elsewhere.has_left());
    send(&hung_elsewhere, Signal::CONT);
    wait_until("the other one answers", || other.has_daemon());
    assert!(home.is_sound());
    assert_eq!(home.json(&["stop", "--json"])["stopped"], json!(null));
    let _daemon = home.serve();
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
}

#[test]
fn whoever_holds_the_home_and_listens_to_nobody_is_ended_the_hard_way() {
    let home = Home::with_daemon("running");
    fs::create_dir_all(home.path()).expect("a home");
    // Holds the lock as a daemon does, and does not hear of a polite request.
    let deaf = "import fcntl, signal, sys, time\n\
                signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                lock = open(sys.argv[1], 'w')\n\
                fcntl.flock(lock, fcntl.LOCK_EX)\n\
                print('held', flush=True)\n\
                time.sleep(600)\n";
    let mut deaf = Command::new("python3")
        .args(["-c", deaf])
        .arg(home.path().join("serve.lock"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut held = String::new();
    let mut said = BufReader::new(deaf.stdout.take().expect("a pipe"));
    said.read_line(&mut held).expect("it speaks");
    let stopped = home.run(&["stop", "--json"]);
    let ended = deaf.try_wait().expect("ours");
    deaf.kill().expect("ours");
    deaf.wait().expect("ours");
    let stopped: Value = serde_json::from_slice(&stopped.stdout).expect("JSON");
    assert_eq!(stopped, json!({"stopped": deaf.id(), "killed": true}));
    assert_eq!(ended.and_then(|ended| ended.signal()), Some(9));
}

#[test]
fn an_answer_that_nobody_waits_for_is_marked_so() {
    let home = Home::with_daemon("running");
    let slow = home.script(
        "slow.sh",
        "#!/bin/sh\ncat >/dev/null\ntouch started\nuntil [ -e go ]; do sleep 0.05; done\n\
         echo '{\"decision\":\"block\"}'\n",
    );
    home.write_hooks(&format!("hooks:\n  tool.before:\n    - command: {slow}\n"));
    let _daemon = home.serve();
    let mut client = home.command(["hook", "hermes"]);
    let mut client = client.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut stdin = client.stdin.take().expect("a pipe");
    Write::write_all(&mut stdin, hermes_shell("ls").to_string().as_bytes()).expect("it reads");
    drop(stdin);
    wait_until("the hook runs", || home.work().join("started").exists());
    client.kill().expect("ours");
    client.wait().expect("ours");
    fs::write(home.work().join("go"), "").expect("a file");
    wait_until("the decision is recorded", || !home.log(&["--kind", "decision"]).is_empty());
    assert_eq!(home.decisions()[0]["waited_for"], false);
}

#[test]
fn a_daemon_holds_nothing_that_the_hook_was_given() {
    let home = Home::with_daemon("auto");
    // `cat` ends when the last holder of its pipe does, and descriptor 3 leads there too.
    let line = format!("printf '%s' \"$EVENT\" | '{}' hook hermes 3>&1 | cat", binary().display());
    let piped = Command::new("bash")
        .args(["-c", &line])
        .env("EVENT", hermes_shell("ls").to_string())
        .env("HOOKBUS_HOME", home.path())
        .output()
        .expect("bash runs");
    assert!(piped.status.success());
    wait_until("a daemon answers", || home.has_daemon());
}

#[test]
fn what_a_daemon_writes_down_does_not_grow_without_end() {
    let home = Home::with_daemon("auto");
    home.answer("hermes", &hermes_shell("ls"));
    wait_until("a daemon answers", || home.has_daemon());
    let (log, put_aside) = (home.path().join("hookbus.log"), home.path().join("hookbus.log.old"));
    // As an observer would, which writes there too and has it open.
    let mut observer = fs::File::options().append(true).open(&log).expect("a log");
    let line = format!("{}\n", "x".repeat(1023));
    observer.write_all(line.repeat(9 << 10).as_bytes()).expect("room");
    let length = |file: &Path| fs::metadata(file).map_or(0, |file| file.len());
    wait_until("it is put aside", || length(&log) == 0 && length(&put_aside) > 9 << 20);
    observer.write_all(b"one more\n").expect("room");
    home.text(&["stop"]);
    let text = fs::read_to_string(&log).expect("a log");
    assert!(text.starts_with("one more\n") && text.contains("exiting"), "{text}");
    let earlier = fs::read_to_string(&put_aside).expect("what was there before");
    assert!(earlier.contains("serving"), "nothing of it is lost");
    assert_eq!(fs::metadata(&put_aside).expect("it is there").permissions().mode() & 0o077, 0);
}
