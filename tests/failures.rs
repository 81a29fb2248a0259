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
        home.command(["hook", "hermes", "--deadline", "1"]),
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
    let told = home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(told["decision"], "block", "{told}");
    assert!(told["reason"].as_str().is_some_and(|why| why.contains("cannot record")), "{told}");
    home.write_hooks("on_failure: allow\n");
    assert_eq!(home.answer("hermes", &hermes_shell("ls")), Value::Null);
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
