//! Something broken on purpose: a clear word for the person, an answer for the agent, nothing lost.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use hookbus_tests::home::{Home, binary, feed};
use hookbus_tests::payloads::{gemini_shell, hermes_shell};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// Runs a shell script in its own mount namespace, where it may mount what it likes.
fn in_own_mounts(home: &Home, script: &str) -> Output {
    Command::new("unshare")
        .args(["-rm", "sh", "-euc", script])
        .env("HOOKBUS", binary())
        .env("HOOKBUS_HOME", home.path())
        .env("HOOKBUS_DAEMON", "off")
        .env("XDG_RUNTIME_DIR", home.work())
        .env("EVENT", hermes_shell("rm x").to_string())
        .output()
        .expect("unshare (util-linux) runs")
}

#[test]
fn an_unknown_agent_is_wrong_usage_and_says_what_to_write() {
    let home = Home::new();
    for wrong in [
        &["hook", "hermez"][..],
        &["hook"],
        &["hook", "gemini", "--deadline", "soon"],
        &["hok", "gemini"],
    ] {
        let heard = feed(home.command(wrong), b"{}");
        assert_eq!(
            (heard.exit, heard.stdout.as_str()),
            (Some(1), ""),
            "{wrong:?}: Gemini takes 2 for a deny"
        );
        assert!(!heard.stderr.is_empty());
    }
    let heard = home.hook("hermez", "{}");
    assert!(heard.stderr.contains("hermes, gemini, claude, codex"), "{}", heard.stderr);
}

#[test]
fn a_hook_that_cannot_run_is_told_and_let_pass() {
    let home = Home::new();
    let not_executable = home.script("plain.sh", "#!/bin/sh\n");
    fs::set_permissions(&not_executable, fs::Permissions::from_mode(0o644)).expect("ours");
    let no_shebang = home.script("none.sh", "\u{7f}echo\n");
    for (command, said) in [
        ("/nowhere/hook.sh", "does not exist"),
        (not_executable.as_str(), "chmod +x"),
        (no_shebang.as_str(), "shebang"),
        ("'unclosed", "never closed"),
    ] {
        home.write_hooks(&format!("hooks:\n  pre_tool_call:\n    - command: \"{command}\"\n"));
        assert_eq!(home.answer("hermes", &hermes_shell("ls")), Value::Null, "{command}");
        let verdict = home.decisions().pop().expect("a decision")["verdicts"][0].clone();
        assert_eq!(verdict["failed"], true, "{command}");
        assert!(verdict["failure"].as_str().is_some_and(|why| why.contains(said)), "{verdict}");
    }
}

#[test]
fn an_unreadable_hooks_file_takes_nobody_down() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("hookbus.yaml")).expect("a directory in its place");
    assert_eq!(home.answer("hermes", &hermes_shell("rm x")), Value::Null);
    let listed = home.run(&["hooks", "list"]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&listed.stdout).contains("cannot read it"));
}

#[test]
fn a_full_disk_keeps_the_policy_and_the_event() {
    let home = Home::with_hooks(GUARD);
    // The home is on a disk of 300 kB that something else has filled up; the runtime directory is not.
    let script = r#"
        cp -r "$HOOKBUS_HOME" "$XDG_RUNTIME_DIR/saved"
        mount -t tmpfs -o size=300k tmpfs "$HOOKBUS_HOME"
        cp "$XDG_RUNTIME_DIR/saved/hookbus.yaml" "$HOOKBUS_HOME/"
        printf '%s' "$EVENT" | "$HOOKBUS" hook hermes
        dd if=/dev/zero of="$HOOKBUS_HOME/filler" bs=1k count=400 2>/dev/null || true
        for i in 1 2 3; do printf '%s' "$EVENT" | "$HOOKBUS" hook hermes; done
        rm "$HOOKBUS_HOME/filler"
        printf '%s' "$EVENT" | "$HOOKBUS" hook hermes
        echo; "$HOOKBUS" log --json --kind tool.before; "$HOOKBUS" verify >&2
    "#;
    let output = in_own_mounts(&home, script);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("guarded").count(), 5, "rules count without a log: {text}");
    let rows: Vec<Value> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 5, "what was spooled came in later: {text}");
    let late = rows.iter().filter(|row| row["context"]["late"] == true).count();
    assert!(late >= 1, "with a mark: {text}");
}

#[test]
fn a_read_only_home_keeps_the_policy_and_the_event() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let script = r#"
        mount --bind "$HOOKBUS_HOME" "$HOOKBUS_HOME"
        mount -o remount,bind,ro "$HOOKBUS_HOME"
        printf '%s' "$EVENT" | "$HOOKBUS" hook hermes
    "#;
    let output = in_own_mounts(&home, script);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("guarded"), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 1);
    // The next hook that can write takes it in, out of the same runtime directory.
    let mut next = home.command(["hook", "hermes"]);
    next.env("XDG_RUNTIME_DIR", home.work());
    feed(next, hermes_shell("ls").to_string().as_bytes());
    let rows = home.log(&["--kind", "tool.before"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["context"]["late"], true);
    assert_eq!(home.decisions().len(), 1, "its decision came with it");
    assert!(home.is_sound());
}

#[test]
fn a_log_that_stays_locked_past_the_deadline_is_not_waited_for() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let lock =
        fs::File::options().write(true).open(home.path().join("log.lock")).expect("the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
    let heard = feed(
        home.command(["hook", "hermes", "--deadline", "5"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert_eq!((heard.exit, heard.stderr.as_str()), (Some(0), ""));
    assert!(heard.stdout.contains("guarded"), "{heard:?}");
    drop(lock);
    home.answer("hermes", &hermes_shell("ls"));
    let rows = home.log(&["--kind", "tool.before"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["context"]["late"], true);
    assert!(rows[2]["time"].as_str() < rows[1]["time"].as_str(), "with its own time");
    assert!(home.is_sound());
}

#[test]
fn when_nothing_can_be_recorded_the_bus_policy_decides() {
    let home = Home::with_hooks("on_failure: block\n");
    fs::create_dir_all(home.path().join("log.db")).expect("a directory in its place");
    let nowhere = |payload: &Value| {
        let mut command = home.command(["hook", "hermes"]);
        command.env("XDG_RUNTIME_DIR", "/dev/null/nowhere").env("TMPDIR", "/dev/null/nowhere");
        feed(command, payload.to_string().as_bytes()).stdout
    };
    // As long as it can wait in the spool, the event is recorded and nothing is refused.
    assert_eq!(nowhere(&hermes_shell("ls")), "");
    assert_eq!(fs::read_dir(home.path().join("spool")).expect("a spool").count(), 1);
    fs::remove_dir_all(home.path().join("spool")).expect("ours");
    fs::write(home.path().join("spool"), "in the way").expect("a file in its place");
    let told = nowhere(&hermes_shell("ls"));
    assert!(told.contains("block") && told.contains("cannot record this event"), "{told}");
    home.write_hooks("on_failure: allow\n");
    assert_eq!(nowhere(&hermes_shell("ls")), "");
}

#[test]
fn what_the_agent_was_told_is_what_is_recorded_later() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let saved = home.work().join("log.db");
    fs::rename(home.path().join("log.db"), &saved).expect("ours");
    for file in ["log.db-wal", "log.db-shm"] {
        fs::rename(home.path().join(file), home.work().join(file)).expect("ours");
    }
    fs::create_dir(home.path().join("log.db")).expect("a directory in its place");
    home.write_hooks("hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: newer}\n");
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "newer");
    fs::remove_dir(home.path().join("log.db")).expect("ours");
    for file in ["log.db", "log.db-wal", "log.db-shm"] {
        fs::rename(home.work().join(file), home.path().join(file)).expect("ours");
    }
    home.answer("hermes", &hermes_shell("ls"));
    let decision = home.decisions().pop().expect("it came in");
    assert_eq!(decision["answer"]["reason"], "newer");
    let loaded = home.log(&["--kind", "hooks.loaded"]);
    assert!(
        loaded.iter().any(|row| row["payload"]["hash"] == decision["hooks"]),
        "and so did its hooks"
    );
}

#[test]
fn a_log_of_a_newer_version_is_left_alone() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let bump = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA user_version = 99'); db.commit()";
    let log = home.path().join("log.db");
    let bumped =
        Command::new("python3").args(["-c", bump]).arg(&log).status().expect("python3 runs");
    assert!(bumped.success());
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    let asked = home.run(&["log"]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&asked.stderr).contains("use a newer hookbus"));
}

#[test]
fn somebody_elses_file_is_not_written_to() {
    let home = Home::with_hooks(GUARD);
    fs::write(home.path().join("log.db"), "dear diary, ".repeat(1000)).expect("a file");
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    assert!(
        fs::read_to_string(home.path().join("log.db"))
            .expect("untouched")
            .starts_with("dear diary")
    );
    let asked = home.run(&["log"]);
    assert!(String::from_utf8_lossy(&asked.stderr).contains("is not a hookbus log"), "{asked:?}");
}

#[test]
fn a_payload_of_twenty_megabytes_is_one_event_like_any_other() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks(GUARD);
        let _daemon = (mode == "running").then(|| home.serve());
        let mut payload = gemini_shell("rm x");
        payload["tool_input"]["filler"] = json!("x".repeat(20 << 20));
        assert_eq!(home.answer("gemini", &payload)["reason"], "guarded", "{mode}");
        let raw = home.run(&["log", "--seq", "2", "--raw"]).stdout;
        assert_eq!(raw.len(), payload.to_string().len());
        assert!(home.is_sound());
    }
}

#[test]
fn asking_before_anything_happened_says_so() {
    let home = Home::new();
    for verb in [&["log"][..], &["sessions"], &["show", "x"], &["verify"]] {
        let asked = home.run(verb);
        assert_eq!(asked.status.code(), Some(1), "{verb:?}");
        assert!(
            String::from_utf8_lossy(&asked.stderr).contains("appears with the first event"),
            "{asked:?}"
        );
    }
}

#[test]
fn a_payload_that_nobody_can_read_meets_the_policy_of_the_bus() {
    let home = Home::with_hooks("on_failure: block\nhooks: {}\n");
    let heard = home.hook("gemini", "{\"tool_name\": trailing} garbage");
    assert!(heard.stdout.contains("deny"), "{heard:?}");
    assert_eq!(home.decisions()[0]["outcome"], "block");
}

#[test]
fn a_pipe_that_is_never_closed_is_not_waited_on() {
    let home = Home::with_hooks(GUARD);
    let mut command = home.command(["hook", "hermes", "--deadline", "5"]);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(writer).spawn().expect("it starts");
    drop(command);
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, hermes_shell("rm x").to_string().as_bytes())
        .expect("it reads");
    // It ends by itself while the pipe is still open: what came is the event.
    assert!(child.wait().expect("ours").success());
    let mut told = String::new();
    std::io::Read::read_to_string(&mut reader, &mut told).expect("text");
    drop(stdin);
    assert!(told.contains("guarded"), "{told}");
}

#[test]
fn a_daemon_that_took_the_call_and_hangs_does_not_switch_the_rules_off() {
    use std::io::{Read, Write};
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let listener =
        std::os::unix::net::UnixListener::bind(home.path().join("bus.sock")).expect("a socket");
    let (answered, is_answered) = std::sync::mpsc::channel::<()>();
    let impostor = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a call");
        let mut some = [0; 100];
        stream.read_exact(&mut some).expect("a request");
        stream.write_all(b"!").expect("it listens");
        is_answered.recv().expect_err("nobody says anything, and then nobody is there");
    });
    let heard = feed(
        home.command(["hook", "hermes", "--deadline", "5"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert!(heard.stdout.contains("guarded"), "{heard:?}");
    drop(answered);
    impostor.join().expect("it is done");
    fs::remove_file(home.path().join("bus.sock")).expect("ours");
    home.answer("hermes", &hermes_shell("ls"));
    let late: Vec<Value> = home.log(&["--kind", "tool.before"]);
    assert_eq!(late.len(), 2, "the event was not lost");
}

#[test]
fn a_hooks_file_that_is_no_file_or_too_deep_takes_nobody_down() {
    let home = Home::with_hooks(&"- ".repeat(20_000));
    assert_eq!(home.answer("hermes", &hermes_shell("rm x")), Value::Null);
    fs::remove_file(home.path().join("hookbus.yaml")).expect("ours");
    let pipe = home.path().join("hookbus.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let heard = feed(
        home.command(["hook", "hermes", "--deadline", "20"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert_eq!((heard.exit, heard.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_busy_log_does_not_switch_the_last_good_hooks_off_for_good() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    home.write_hooks("hooks: [\n");
    let hold = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                db.execute('PRAGMA locking_mode=EXCLUSIVE')\ndb.execute('BEGIN EXCLUSIVE')\n\
                print('held', flush=True)\nsys.stdin.read()";
    let mut holder = Command::new("python3")
        .args(["-c", hold])
        .arg(home.path().join("log.db"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut said = [0; 4];
    std::io::Read::read_exact(holder.stdout.as_mut().expect("a pipe"), &mut said).expect("held");
    // Nobody can know what the hooks were while the log is held; nobody waits for long either.
    let heard = feed(
        home.command(["hook", "hermes", "--deadline", "3"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert_eq!((heard.exit, heard.stderr.as_str()), (Some(0), ""));
    drop(holder.stdin.take());
    holder.wait().expect("ours");
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
}
