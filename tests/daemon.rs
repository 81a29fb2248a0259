//! The daemon: the first hook starts it; it exits when it is idle, replaced or stopped; hooks work without it.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use hookbus_tests::home::{Daemon, Home, binary, feed, is_alive, wait_until};
use hookbus_tests::payloads::hermes_shell;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

fn daemon_pid(home: &Home) -> String {
    home.json(&["status", "--json"])["daemon"]["pid"].to_string()
}

#[test]
fn the_first_hook_starts_a_daemon_and_does_not_wait_for_it() {
    let home = Home::with_daemon("auto");
    home.write_hooks(GUARD);
    // `feed` reads stdout and stderr to their end, so it would hang if the daemon held one of them.
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    wait_until("a daemon answers", || home.has_daemon());
    let pid = daemon_pid(&home);
    for stream in 0..3 {
        let target = fs::read_link(format!("/proc/{pid}/fd/{stream}")).expect("its streams");
        assert_eq!(target.to_string_lossy(), "/dev/null");
    }
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 1);
    assert!(home.path().join("hookbus.log").exists());
    home.text(&["stop"]);
    assert!(!is_alive(&pid));
    assert!(home.is_sound());
}

#[test]
fn a_hook_starts_a_daemon_only_in_mode_auto() {
    for mode in ["running", "off"] {
        let home = Home::with_daemon(mode);
        home.answer("hermes", &hermes_shell("ls"));
        assert!(!home.path().join("serve.lock").exists(), "{mode}");
        assert!(!home.has_daemon());
    }
}

#[test]
fn a_hook_in_mode_off_ignores_a_running_daemon() {
    let home = Home::with_daemon("off");
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 0);
    assert_eq!(home.log(&["--agent", "hermes"]).len(), 1);
}

#[test]
fn a_daemon_that_a_hook_started_exits_when_idle() {
    let home = Home::with_daemon("auto");
    home.write_hooks("daemon: {idle: 0.6}");
    home.answer("hermes", &hermes_shell("ls"));
    // Read its log, because it may exit before `hookbus status` could ask it.
    let log = || fs::read_to_string(home.path().join("hookbus.log")).unwrap_or_default();
    wait_until("the daemon has started", || log().contains("serving"));
    wait_until("the daemon is exiting", || log().contains("exiting reason=\"idle\""));
    let log = log();
    let pid = log.split("pid=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let pid = pid.expect("the log holds its pid");
    wait_until("the daemon has exited", || !is_alive(pid));
    assert!(!home.path().join("bus.sock").exists());
}

#[test]
fn a_daemon_exits_when_its_home_is_removed() {
    let home = Home::with_daemon("running");
    let mut daemon = home.serve();
    home.answer("hermes", &hermes_shell("ls"));
    fs::remove_dir_all(home.path()).expect("the home can be removed");
    wait_until("the daemon has exited", || daemon.has_exited());
    assert!(!home.path().exists(), "the daemon must not create the home again");
}

#[test]
fn a_second_daemon_for_the_same_home_is_an_error() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    let second = home.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("already running"));
}

#[test]
fn a_newer_client_replaces_an_older_daemon() {
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
    let ran = feed(command, hermes_shell("ls").to_string().as_bytes());
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), ""));
    wait_until("the old daemon has exited", || old.has_exited());
    wait_until("a new daemon answers", || home.has_daemon());
    let exe = fs::read_link(format!("/proc/{}/exe", daemon_pid(&home))).expect("its program");
    assert_eq!(exe, newer);
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 1, "the event was handled once");
}

#[test]
fn the_daemon_answers_its_own_user_only() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    let socket = fs::metadata(home.path().join("bus.sock")).expect("a socket");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(home.path()).expect("a home").permissions().mode() & 0o077, 0);
    if socket.uid() == 0 {
        // As root we can connect as another user: even with open permissions the daemon must refuse.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("allowed");
        fs::set_permissions(home.path().join("bus.sock"), fs::Permissions::from_mode(0o666))
            .expect("allowed");
        fs::set_permissions(
            home.path().parent().expect("above"),
            fs::Permissions::from_mode(0o755),
        )
        .expect("allowed");
        let client = format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\nreply = b''\n\
             try:\n  s.sendall((15).to_bytes(8, 'big') + b'\\x01' + (6).to_bytes(8, 'big') + b'status')\n  reply = s.recv(100)\n\
             except OSError: pass\nprint(len(reply))",
            home.path().join("bus.sock").display()
        );
        let output = Command::new("setpriv")
            .args(["--reuid", "65534", "--clear-groups", "/usr/bin/python3", "-c", &client])
            .output()
            .expect("setpriv runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{output:?}");
    }
}

#[test]
fn status_describes_daemon_log_and_hooks_and_exits_accordingly() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let without = home.run(&["status"]);
    assert_eq!(without.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&without.stdout).contains("not running"));
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["log"]["rows"], 4, "hooks, the daemon's start, the event, its decision");
    assert_eq!(status["hooks"]["count"], 1);
    assert_eq!(status["hooks"]["standing"], "current");
}

#[test]
fn garbage_on_the_socket_does_not_disturb_other_clients() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    // A complete request of version 0; one of a later version would make the daemon exit.
    let version_zero = b"\0\0\0\0\0\0\0\x05\0abcd";
    for garbage in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 64], &[255; 64], &version_zero[..]] {
        let mut stream =
            UnixStream::connect(home.path().join("bus.sock")).expect("the daemon listens");
        Write::write_all(&mut stream, garbage).expect("it reads");
    }
    assert_eq!(home.answer("hermes", &hermes_shell("ls")), json!(null));
    assert_eq!(home.json(&["status", "--json"])["daemon"]["in_flight"], 0);
}

/// The request of a real client, as a daemon gets it.
fn real_request(home: &Home) -> Vec<u8> {
    let listener = UnixListener::bind(home.path().join("bus.sock")).expect("a socket");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the client calls");
        let mut length = [0; 8];
        stream.read_exact(&mut length).expect("a length");
        let mut request = length.to_vec();
        stream.take(u64::from_be_bytes(length)).read_to_end(&mut request).expect("a request");
        request
    });
    home.answer("hermes", &hermes_shell("rm x"));
    let request = server.join().expect("the request is read");
    fs::remove_file(home.path().join("bus.sock")).expect("the socket");
    request
}

#[test]
fn ten_thousand_mutated_requests_leave_a_daemon_that_answers_and_a_sound_log() {
    let home = Home::with_new_binary("running");
    home.write_hooks(GUARD);
    let request = real_request(&home);
    let mut daemon = home.serve();
    // Its length, the protocol, `call` and the client's build stay: a newer protocol or build ends the daemon.
    let part = |at: usize| 8 + usize::from(request[at + 7]);
    let kept = 9 + part(9) + part(9 + part(9));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("a small number")
    };
    for _ in 0..10_000 {
        let mut bytes = request.clone();
        for _ in 0..=random(4) {
            let at = kept + random(bytes.len() - kept);
            match random(6) {
                0 => bytes.truncate(at + 1),
                1 => bytes[at] ^= 1 << random(8),
                2 => bytes[at] = [0, 1, 127, 128, 255, b'"', b'{'][random(7)],
                3 => drop(bytes.splice(at..at, [0xff; 8])),
                4 => drop(bytes.remove(at)),
                _ => drop(bytes.splice(at..at, vec![b'['; random(3000)])),
            }
            if bytes.len() <= kept + 1 {
                break;
            }
        }
        // Mostly with the length that the message has now.
        if random(8) > 0 {
            let length = (bytes.len() as u64 - 8).to_be_bytes();
            bytes[..8].copy_from_slice(&length);
        }
        let mut stream =
            UnixStream::connect(home.path().join("bus.sock")).expect("the daemon listens");
        // The daemon may hang up before it has read all of it, and after that.
        drop(stream.write_all(&bytes));
        drop(stream.shutdown(Shutdown::Write));
        drop(stream.read_to_end(&mut Vec::new()));
    }
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    assert!(!daemon.has_exited());
    let calls = home.json(&["status", "--json"])["daemon"]["calls"].as_u64().unwrap_or_default();
    assert!(calls > 500, "only {calls} of the requests could be read");
    wait_until("no call is left", || home.json(&["status", "--json"])["daemon"]["in_flight"] == 0);
    assert!(home.is_sound());
}

#[test]
fn a_home_with_a_path_too_long_for_a_socket_address_works() {
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
        .expect("the process starts");
    wait_until("the daemon answers", || {
        with_deep(&["status"]).output().is_ok_and(|out| out.status.success())
    });
    feed(with_deep(&["hook", "hermes"]), hermes_shell("ls").to_string().as_bytes());
    let status = with_deep(&["status", "--json"]).output().expect("hookbus runs").stdout;
    let status: Value = serde_json::from_slice(&status).expect("JSON");
    daemon.kill().expect("allowed");
    daemon.wait().expect("allowed");
    assert_eq!(status["daemon"]["calls"], 1);
}

#[test]
fn a_hook_answers_without_a_daemon_that_hangs() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let daemon = home.serve();
    send(&daemon, Signal::STOP);
    let answer = home.answer("hermes", &hermes_shell("rm x"));
    send(&daemon, Signal::CONT);
    assert_eq!(answer["reason"], "guarded (hookbus rule tool.before#1)");
    // Once it continues, it finds the event in the log and adds nothing.
    wait_until("the daemon answers", || home.has_daemon());
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 2);
    assert_eq!(home.decisions().len(), 1);
    assert!(home.is_sound());
}

fn send(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("a pid")).expect("a pid");
    kill_process(pid, signal).expect("allowed");
}

#[test]
fn status_and_serve_report_a_daemon_that_hangs() {
    let home = Home::with_daemon("running");
    let daemon = home.serve();
    send(&daemon, Signal::STOP);
    let report = format!("running (pid {}) but does not answer", daemon.pid());
    let status = home.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    let text = String::from_utf8_lossy(&status.stdout);
    assert!(text.contains(&report) && text.contains("`hookbus stop` ends it"), "{text}");
    let status: Value =
        serde_json::from_slice(&home.run(&["status", "--json"]).stdout).expect("JSON");
    assert_eq!(status["daemon"], json!(null), "no daemon answers");
    assert_eq!(status["hung"]["pid"], daemon.pid());
    let second = home.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(text.contains(&report) && text.contains("`hookbus stop` ends it"), "{text}");
    // Once it continues, it is reported as running.
    send(&daemon, Signal::CONT);
    wait_until("the daemon answers", || home.has_daemon());
    assert_eq!(home.json(&["status", "--json"])["hung"], json!(null));
}

#[test]
fn stop_ends_a_daemon_that_hangs_but_not_that_of_another_home() {
    let (home, other) = (Home::with_daemon("running"), Home::with_daemon("running"));
    home.write_hooks(GUARD);
    let mut hung = home.serve();
    let mut hung_elsewhere = other.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    send(&hung, Signal::STOP);
    send(&hung_elsewhere, Signal::STOP);
    let stopped = home.json(&["stop", "--json"]);
    assert_eq!(stopped["stopped"], hung.pid());
    wait_until("the daemon has exited", || hung.has_exited());
    assert!(!hung_elsewhere.has_exited());
    send(&hung_elsewhere, Signal::CONT);
    wait_until("the other daemon answers", || other.has_daemon());
    assert!(home.is_sound());
    assert_eq!(home.json(&["stop", "--json"])["stopped"], json!(null));
    let _daemon = home.serve();
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
}

#[test]
fn stop_kills_a_process_that_holds_the_home_and_ignores_sigterm() {
    let home = Home::with_daemon("running");
    fs::create_dir_all(home.path()).expect("a home");
    // Holds the lock as a daemon does, and ignores SIGTERM.
    let program = "import fcntl, signal, sys, time\n\
                signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                lock = open(sys.argv[1], 'w')\n\
                fcntl.flock(lock, fcntl.LOCK_EX)\n\
                print('held', flush=True)\n\
                time.sleep(600)\n";
    let mut holder = Command::new("python3")
        .args(["-c", program])
        .arg(home.path().join("serve.lock"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the process starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(holder.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("it reports that it holds the lock");
    let stopped = home.run(&["stop", "--json"]);
    let ended = holder.try_wait().expect("allowed");
    holder.kill().expect("allowed");
    holder.wait().expect("allowed");
    let stopped: Value = serde_json::from_slice(&stopped.stdout).expect("JSON");
    assert_eq!(stopped, json!({"stopped": holder.id(), "killed": true}));
    assert_eq!(ended.and_then(|ended| ended.signal()), Some(9));
}

#[test]
fn a_decision_is_marked_if_the_client_has_gone_away() {
    let home = Home::with_daemon("running");
    let slow = home.script(
        "slow.sh",
        "#!/bin/sh\ncat >/dev/null\ntouch started\nuntil [ -e go ]; do sleep 0.05; done\n\
         echo '{\"decision\":\"block\"}'\n",
    );
    home.write_hooks(&format!("hooks:\n  tool.before:\n    - command: {slow}\n"));
    let _daemon = home.serve();
    let mut client = home.command(["hook", "hermes"]);
    let mut client =
        client.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the process starts");
    let mut stdin = client.stdin.take().expect("a pipe");
    Write::write_all(&mut stdin, hermes_shell("ls").to_string().as_bytes()).expect("it reads");
    drop(stdin);
    wait_until("the hook runs", || home.work().join("started").exists());
    client.kill().expect("allowed");
    client.wait().expect("allowed");
    fs::write(home.work().join("go"), "").expect("a file");
    wait_until("the decision is recorded", || !home.log(&["--kind", "decision"]).is_empty());
    assert_eq!(home.decisions()[0]["waited_for"], false);
}

#[test]
fn a_daemon_closes_descriptors_that_its_hook_inherited() {
    let home = Home::with_daemon("auto");
    // `cat` ends when all writers have closed its pipe; descriptor 3 is one of them.
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
fn hookbus_log_is_rotated_when_it_grows() {
    let home = Home::with_daemon("auto");
    home.answer("hermes", &hermes_shell("ls"));
    wait_until("a daemon answers", || home.has_daemon());
    let (log, rotated) = (home.path().join("hookbus.log"), home.path().join("hookbus.log.old"));
    // An observer keeps the file open and writes to it too.
    let mut observer = fs::File::options().append(true).open(&log).expect("a log");
    let line = format!("{}\n", "x".repeat(1023));
    observer.write_all(line.repeat(9 << 10).as_bytes()).expect("it is writable");
    let length = |file: &Path| fs::metadata(file).map_or(0, |file| file.len());
    wait_until("the log is rotated", || length(&log) == 0 && length(&rotated) > 9 << 20);
    observer.write_all(b"one more\n").expect("it is writable");
    home.text(&["stop"]);
    let text = fs::read_to_string(&log).expect("a log");
    assert!(text.starts_with("one more\n") && text.contains("exiting"), "{text}");
    let earlier = fs::read_to_string(&rotated).expect("the rotated log");
    assert!(earlier.contains("serving"), "nothing is lost");
    assert_eq!(fs::metadata(&rotated).expect("the rotated log").permissions().mode() & 0o077, 0);
}

#[test]
fn a_systemd_unit_is_written_shown_and_removed() {
    let home = Home::new();
    let run = |options: &[&str]| {
        let mut command = home.command([&["serve"], options].concat());
        command.env("HOME", home.work()).env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
        let output = command.output().expect("hookbus runs");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let unit = home.work().join(".config/systemd/user/hookbus.service");
    assert!(!run(&["--install"]).0 && !unit.exists(), "without a terminal it needs --yes");
    let (written, shown) = run(&["--install", "--yes"]);
    let text = fs::read_to_string(&unit).expect("a unit");
    assert!(written && shown.contains(&text), "{shown}");
    assert!(shown.contains("systemctl --user enable --now hookbus.service"), "{shown}");
    // No variable of the user manager decides about the home.
    let command =
        |home: &str| format!("\nExecStart=\"{}\" --home \"{home}\" serve\n", binary().display());
    assert!(text.contains(&command(&home.path().display().to_string())), "{text}");
    assert!(!text.contains("Environment"), "{text}");
    assert!(run(&["--install", "--yes"]).1.contains("up to date"));
    let (removed, shown) = run(&["--uninstall", "--yes"]);
    assert!(removed && !unit.exists() && shown.contains("systemctl --user disable"), "{shown}");
    fs::write(&unit, "[Unit]\n").expect("a unit of the user");
    assert!(!run(&["--install", "--yes"]).0 && !run(&["--uninstall", "--yes"]).0);
    assert_eq!(fs::read_to_string(&unit).expect("the unit"), "[Unit]\n");
    // systemd reads these characters as specifiers, variables, quotes and escapes.
    fs::remove_file(&unit).expect("no unit");
    let work = home.work().display().to_string();
    let odd = format!(r#"{work}/50% of $HOME, "b\c""#);
    let mut odd = home.command(["--home", &odd, "serve", "--install", "--yes"]);
    odd.env("HOME", home.work()).env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    assert!(odd.status().expect("hookbus runs").success());
    let text = fs::read_to_string(&unit).expect("a unit");
    assert!(text.contains(&command(&format!(r#"{work}/50%% of $$HOME, \"b\\c\""#))), "{text}");
}
