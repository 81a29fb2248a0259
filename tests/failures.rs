//! Broken disks, files, logs and daemons: the user gets a clear message, the agent gets an answer, and no
//! event is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use hookbus_tests::broken_daemon::{BrokenDaemon, Then};
use hookbus_tests::consent::blocking_script;
use hookbus_tests::home::{Daemon, Home, binary, feed, wait_until};
use hookbus_tests::log_holder::LogHolder;
use hookbus_tests::mounts::{hook_in_read_only_home, in_mount_namespace};
use hookbus_tests::payloads::{gemini_shell, hermes_shell};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

#[test]
fn an_unknown_agent_is_a_usage_error_that_lists_the_agents() {
    let home = Home::new();
    for wrong in [
        &["hook", "hermez"][..],
        &["hook"],
        &["hook", "gemini", "--deadline", "soon"],
        &["hok", "gemini"],
    ] {
        let output = feed(home.command(wrong), b"{}");
        assert_eq!(
            (output.exit, output.stdout.as_str()),
            (Some(1), ""),
            "{wrong:?}: not exit code 2, which Gemini reads as a deny"
        );
        assert!(!output.stderr.is_empty());
    }
    let output = home.hook("hermez", "{}");
    assert!(output.stderr.contains("hermes, gemini, claude, codex"), "{}", output.stderr);
}

#[test]
fn a_command_that_cannot_run_is_recorded_as_a_failure_and_does_not_block() {
    let home = Home::new();
    let not_executable = home.script("plain.sh", "#!/bin/sh\n");
    fs::set_permissions(&not_executable, fs::Permissions::from_mode(0o644)).expect("our file");
    let no_shebang = home.script("none.sh", "\u{7f}echo\n");
    for (command, reason) in [
        ("/nowhere/hook.sh", "does not exist"),
        (not_executable.as_str(), "chmod +x"),
        (no_shebang.as_str(), "shebang"),
    ] {
        home.write_hooks(&format!("hooks:\n  pre_tool_call:\n    - command: \"{command}\"\n"));
        assert_eq!(home.answer("hermes", &hermes_shell("ls")), Value::Null, "{command}");
        let verdict = home.decisions().pop().expect("a decision")["verdicts"][0].clone();
        assert_eq!(verdict["failed"], true, "{command}");
        assert!(verdict["failure"].as_str().is_some_and(|why| why.contains(reason)), "{verdict}");
    }
}

#[test]
fn an_unreadable_hooks_file_does_not_block_the_agent() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("hookbus.yaml")).expect("a directory instead of the file");
    assert_eq!(home.answer("hermes", &hermes_shell("rm x")), Value::Null);
    let listed = home.run(&["hooks", "list"]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&listed.stdout).contains("cannot read it"));
}

#[test]
fn with_a_full_disk_rules_still_apply_and_events_are_recorded_later() {
    let home = Home::with_hooks(GUARD);
    // The home is on a full disk of 300 kB; the runtime directory is on another disk.
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
    let mut script = in_mount_namespace(&home, &hermes_shell("rm x"), script);
    let output = script.env("XDG_RUNTIME_DIR", home.work()).output().expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("guarded").count(), 5, "rules apply without a log: {text}");
    let rows: Vec<Value> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 5, "spooled events are appended later: {text}");
    let late = rows.iter().filter(|row| row["context"]["late"] == true).count();
    assert!(late >= 1, "with the mark `late`: {text}");
}

#[test]
fn with_a_read_only_home_rules_still_apply_and_events_are_recorded_later() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let mut hook = hook_in_read_only_home(&home, &hermes_shell("rm x"));
    let output = hook.env("XDG_RUNTIME_DIR", home.work()).output().expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("guarded"), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 1);
    // The next hook that can write appends it, from the same runtime directory.
    let mut next = home.command(["hook", "hermes"]);
    next.env("XDG_RUNTIME_DIR", home.work());
    feed(next, hermes_shell("ls").to_string().as_bytes());
    let rows = home.log(&["--kind", "tool.before"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["context"]["late"], true);
    assert_eq!(home.decisions().len(), 1, "with its decision");
    assert!(home.is_sound());
}

#[test]
fn a_hook_does_not_wait_past_its_deadline_for_a_locked_log() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let holder = LogHolder::flock(&home);
    let output = feed(
        home.command(["hook", "hermes", "--deadline", "5"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    assert!(output.stdout.contains("guarded"), "{output:?}");
    holder.release();
    home.answer("hermes", &hermes_shell("ls"));
    let rows = home.log(&["--kind", "tool.before"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["context"]["late"], true);
    assert!(rows[2]["time"].as_str() < rows[1]["time"].as_str(), "with its original time");
    assert!(home.is_sound());
}

/// A home with a command hook that blocks every tool, and one event in its log.
fn home_with_blocking_command(mode: &'static str) -> (Home, Option<Daemon>) {
    let home = Home::with_daemon(mode);
    let script = home.script(
        "block.sh",
        "#!/bin/sh\ncat > /dev/null\necho '{\"decision\": \"block\", \"reason\": \"by the command\"}'\n",
    );
    home.write_hooks(&format!("hooks:\n  pre_tool_call:\n    - command: {script}\n"));
    let daemon = (mode == "running").then(|| home.serve());
    assert_eq!(home.answer("hermes", &hermes_shell("first"))["reason"], "by the command");
    (home, daemon)
}

/// Every command is in the log once, marked as late, and followed by the one decision about it.
fn assert_recorded_late(home: &Home, commands: &[String]) {
    wait_until("the decisions are in the log", || home.decisions().len() == commands.len() + 1);
    let rows = home.log(&[]);
    for command in commands {
        let events: Vec<&Value> = rows
            .iter()
            .filter(|row| row["payload"]["tool_input"]["command"] == command.as_str())
            .collect();
        assert_eq!(events.len(), 1, "{command}");
        assert_eq!(events[0]["context"]["late"], true, "{command}");
        let seq = &events[0]["seq"];
        let decisions: Vec<&Value> = rows.iter().filter(|row| row["cause"] == *seq).collect();
        assert_eq!(decisions.len(), 1, "{command}");
        assert!(decisions[0]["seq"].as_i64() > seq.as_i64(), "after its event");
        assert_eq!(decisions[0]["payload"]["answer"]["reason"], "by the command");
        assert_eq!(decisions[0]["payload"]["verdicts"][0]["failed"], false);
    }
    assert!(home.is_sound());
}

#[test]
fn while_the_log_is_locked_commands_still_have_their_time_and_block() {
    for mode in ["off", "running"] {
        for hold in [LogHolder::flock, LogHolder::transaction] {
            let (home, _daemon) = home_with_blocking_command(mode);
            let holder = hold(&home);
            let output = feed(
                home.command(["hook", "hermes", "--deadline", "20"]),
                hermes_shell("rm x").to_string().as_bytes(),
            );
            assert!(output.stdout.contains("by the command"), "{mode}: {output:?}");
            holder.release();
            if mode == "off" {
                // The next hook takes it in.
                let lately = home.answer("hermes", &hermes_shell("rm x"));
                assert_eq!(lately["reason"], "by the command");
                wait_until("it is taken in", || home.decisions().len() == 3);
                let rows = home.log(&["--kind", "tool.before"]);
                let late: Vec<&Value> =
                    rows.iter().filter(|row| row["context"]["late"] == true).collect();
                assert_eq!((rows.len(), late.len()), (3, 1));
                assert!(home.is_sound());
            } else {
                assert_recorded_late(&home, &["rm x".to_owned()]);
            }
        }
    }
}

#[test]
fn many_calls_at_once_do_not_wait_behind_each_other_for_a_locked_log() {
    let (home, _daemon) = home_with_blocking_command("running");
    let holder = LogHolder::flock(&home);
    let commands: Vec<String> = (0..12).map(|number| format!("rm {number}")).collect();
    let outputs: Vec<_> = std::thread::scope(|scope| {
        let call = |command: &String| {
            let payload = hermes_shell(command).to_string();
            let hook = home.command(["hook", "hermes", "--deadline", "30"]);
            scope.spawn(move || feed(hook, payload.as_bytes()))
        };
        let calls: Vec<_> = commands.iter().map(call).collect();
        calls.into_iter().map(|call| call.join().expect("an answer")).collect()
    });
    for output in outputs {
        assert!(output.stdout.contains("by the command"), "{output:?}");
    }
    holder.release();
    assert_recorded_late(&home, &commands);
}

#[test]
fn hooks_without_approval_leave_an_approved_one_its_time_while_the_log_is_locked() {
    for (mode, unapproved, deadline) in [("off", 3, "2"), ("running", 10, "5")] {
        let home = Home::with_daemon(mode);
        let entry = |number| {
            let script = home.script(&format!("new{number}.sh"), "#!/bin/sh\n");
            format!("    - command: {script}\n")
        };
        let new: String = (0..unapproved).map(entry).collect();
        let guard = home.script("guard.sh", &blocking_script("by the guard"));
        home.write_hooks_file(&format!(
            "hooks:\n  tool.before:\n{new}    - {{ name: guard, command: {guard} }}\n"
        ));
        assert_eq!(home.approve_with(&["guard"]).0, Some(0));
        let holder = LogHolder::exclusive(&home);
        let _daemon = (mode == "running").then(|| home.serve());
        let payload = hermes_shell("rm x").to_string();
        std::thread::scope(|scope| {
            let call = || {
                let hook = home.command(["hook", "hermes", "--deadline", deadline]);
                scope.spawn(|| feed(hook, payload.as_bytes()))
            };
            for call in [call(), call()] {
                let output = call.join().expect("an answer");
                assert!(output.stdout.contains("by the guard"), "{mode}: {output:?}");
            }
        });
        holder.release();
    }
}

#[test]
fn what_is_answered_after_the_log_was_deleted_is_in_the_new_log() {
    let (home, mut daemon) = home_with_blocking_command("running");
    for round in 0..8 {
        if daemon.as_mut().is_none_or(Daemon::has_exited) {
            daemon = Some(home.serve());
        }
        home.answer("hermes", &hermes_shell("before"));
        let log = home.path().join("log.db");
        match round % 3 {
            0 => fs::remove_file(&log).expect("our file"),
            1 => {
                for file in ["log.db", "log.db-wal", "log.db-shm"] {
                    fs::remove_file(home.path().join(file)).expect("our file");
                }
            }
            // Another log in its place: one that was taken out of use before.
            _ => {
                let other = Home::new();
                other.answer("hermes", &hermes_shell("of the other log"));
                let copy = "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute('VACUUM INTO ?', (sys.argv[2],))";
                let new = home.path().join("new.db");
                let mut python = Command::new("python3");
                python.args(["-c", copy]).arg(other.path().join("log.db")).arg(&new);
                assert!(python.status().expect("python3 runs").success());
                let wal = "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode=WAL')";
                let mut python = Command::new("python3");
                python.args(["-c", wal]).arg(&new);
                assert!(python.status().expect("python3 runs").success());
                fs::rename(&new, &log).expect("our file");
            }
        }
        let command = format!("after {round}");
        assert_eq!(home.answer("hermes", &hermes_shell(&command))["reason"], "by the command");
        let rows = home.log(&[]);
        let event =
            rows.iter().find(|row| row["payload"]["tool_input"]["command"] == command.as_str());
        let event = event.unwrap_or_else(|| panic!("round {round}: {command} is not in {rows:?}"));
        let decisions = rows.iter().filter(|row| row["cause"] == event["seq"]).count();
        assert_eq!(decisions, 1, "round {round}");
        assert!(home.is_sound(), "round {round}");
    }
}

#[test]
fn a_log_that_is_deleted_while_a_hook_runs_leaves_event_and_decision_in_the_new_one() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let script = home.script(
            "delete.sh",
            &format!(
                "#!/bin/sh\ncat > /dev/null\nrm {}/log.db*\necho '{{\"decision\": \"block\", \"reason\": \"deleted\"}}'\n",
                home.path().display()
            ),
        );
        let _daemon = (mode == "running").then(|| home.serve());
        home.answer("hermes", &hermes_shell("first"));
        home.write_hooks(&format!("hooks:\n  pre_tool_call:\n    - command: {script}\n"));
        assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "deleted");
        if mode == "off" {
            // The next hook takes in what is in the spool.
            home.write_hooks("hooks: {}");
            home.answer("hermes", &hermes_shell("next"));
        }
        wait_until("the decision is in the new log", || {
            home.run(&["log", "--json"]).status.success() && home.decisions().len() == 1
        });
        let rows = home.log(&[]);
        let cause = rows.iter().find(|row| row["kind"] == "decision").expect("it")["cause"].clone();
        let event = rows.iter().find(|row| row["seq"] == cause).expect("its event");
        assert_eq!(event["payload"]["tool_input"]["command"], "rm x", "{mode}");
        assert!(home.is_sound(), "{mode}");
    }
}

#[test]
fn if_nothing_can_be_recorded_on_failure_decides() {
    let home = Home::with_hooks("on_failure: block\n");
    fs::create_dir_all(home.path().join("log.db")).expect("a directory instead of the file");
    // No other directory can be written to: the places for spool files are all in `/tmp` or `/run`.
    let hook_without_spool_directory = |payload: &Value| {
        let script = r#"
            cp -r "$HOOKBUS_HOME" /dev/shm/home-$$ && cp "$HOOKBUS" /dev/shm/hookbus-$$
            mount -t tmpfs -o ro tmpfs /tmp
            mkdir -p /run/user && mount -t tmpfs -o ro tmpfs /run/user
            export XDG_RUNTIME_DIR=/dev/null/nowhere TMPDIR=/dev/null/nowhere
            printf '%s' "$EVENT" | HOOKBUS_HOME=/dev/shm/home-$$ /dev/shm/hookbus-$$ hook hermes
            rm -r /dev/shm/home-$$ /dev/shm/hookbus-$$
        "#;
        let output = in_mount_namespace(&home, payload, script).output().expect("unshare runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // As long as the event can be spooled it counts as recorded, and nothing is blocked.
    assert_eq!(hook_without_spool_directory(&hermes_shell("ls")), "");
    fs::write(home.path().join("spool"), "in the way").expect("a file instead of the directory");
    let answer = hook_without_spool_directory(&hermes_shell("ls"));
    assert!(answer.contains("block") && answer.contains("cannot record this event"), "{answer}");
    home.write_hooks("on_failure: allow\n");
    assert_eq!(hook_without_spool_directory(&hermes_shell("ls")), "");
}

#[test]
fn a_spooled_decision_is_recorded_as_the_agent_got_it() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let saved = home.work().join("log.db");
    fs::rename(home.path().join("log.db"), &saved).expect("our file");
    for file in ["log.db-wal", "log.db-shm"] {
        fs::rename(home.path().join(file), home.work().join(file)).expect("our file");
    }
    fs::create_dir(home.path().join("log.db")).expect("a directory instead of the file");
    home.write_hooks("hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: newer}\n");
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "newer (hookbus rule tool.before#1)"
    );
    fs::remove_dir(home.path().join("log.db")).expect("our file");
    for file in ["log.db", "log.db-wal", "log.db-shm"] {
        fs::rename(home.work().join(file), home.path().join(file)).expect("our file");
    }
    home.answer("hermes", &hermes_shell("ls"));
    let decision = home.decisions().pop().expect("the spooled decision");
    assert_eq!(decision["answer"]["reason"], "newer (hookbus rule tool.before#1)");
    let loaded = home.log(&["--kind", "hooks.loaded"]);
    assert!(
        loaded.iter().any(|row| row["payload"]["hash"] == decision["hooks"]),
        "its hooks are recorded too"
    );
}

#[test]
fn a_log_of_a_newer_version_is_not_changed() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let bump = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA user_version = 99'); db.commit()";
    let log = home.path().join("log.db");
    let bumped =
        Command::new("python3").args(["-c", bump]).arg(&log).status().expect("python3 runs");
    assert!(bumped.success());
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    let output = home.run(&["log"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("use a newer hookbus"));
}

#[test]
fn a_file_that_is_not_a_log_is_not_changed() {
    let home = Home::with_hooks(GUARD);
    fs::write(home.path().join("log.db"), "dear diary, ".repeat(1000)).expect("a file");
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    assert!(
        fs::read_to_string(home.path().join("log.db"))
            .expect("untouched")
            .starts_with("dear diary")
    );
    let output = home.run(&["log"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a hookbus log"), "{output:?}");
}

#[test]
fn a_payload_of_twenty_megabytes_is_recorded_and_decided_like_any_other() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks(GUARD);
        let _daemon = (mode == "running").then(|| home.serve());
        let mut payload = gemini_shell("rm x");
        payload["tool_input"]["filler"] = json!("x".repeat(20 << 20));
        assert_eq!(
            home.answer("gemini", &payload)["reason"],
            "guarded (hookbus rule tool.before#1)",
            "{mode}"
        );
        let seq = home.log(&["--agent", "gemini", "--kind", "tool.before"])[0]["seq"].to_string();
        let raw = home.run(&["log", "--seq", &seq, "--raw"]).stdout;
        assert_eq!(raw.len(), payload.to_string().len());
        assert!(home.is_sound());
    }
}

#[test]
fn without_a_log_every_query_says_that_there_is_none_yet() {
    let home = Home::new();
    for verb in [&["log"][..], &["sessions"], &["show", "x"], &["verify"]] {
        let output = home.run(verb);
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("appears with the first event"),
            "{output:?}"
        );
    }
}

#[test]
fn a_log_that_cannot_be_used_is_not_called_missing() {
    let told = |home: &Home, why: &str| {
        for verb in [&["log"][..], &["verify"]] {
            let output = home.run(verb);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains(why), "{why}: {text}");
            assert!(!text.contains("there is no log"), "{why}: {text}");
        }
        let check = home.run(&["status", "--check"]);
        let check = String::from_utf8_lossy(&check.stdout);
        assert!(check.contains(why) && !check.contains("consent.json"), "{why}: {check}");
    };
    let log = |home: &Home| home.path().join("log.db");
    let home_with_log = || {
        let home = Home::with_hooks(GUARD);
        home.answer("hermes", &hermes_shell("ls"));
        home
    };
    let empty = home_with_log();
    fs::write(log(&empty), "").expect("our file");
    told(&empty, "is empty, but it was a log");
    let fifo = home_with_log();
    fs::remove_file(log(&fifo)).expect("our file");
    let made = Command::new("mkfifo").arg(log(&fifo)).status();
    assert!(made.expect("mkfifo runs").success());
    told(&fifo, "is not a hookbus log");
    let unversioned = home_with_log();
    let program =
        "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute('PRAGMA user_version = 0')";
    let changed = Command::new("python3").args(["-c", program]).arg(log(&unversioned)).status();
    assert!(changed.expect("python3 runs").success());
    told(&unversioned, "`user_version` is 0");
    // A user who may not look into the home; who runs the tests as root may.
    let denied = home_with_log();
    let mut other = Command::new("setpriv");
    other.args(["--reuid=54321", "--regid=54321", "--clear-groups"]).arg(binary()).arg("log");
    let output =
        other.env("HOOKBUS_HOME", denied.path()).output().expect("setpriv (util-linux) runs");
    let text = String::from_utf8_lossy(&output.stderr);
    if rustix::process::geteuid().is_root() {
        assert!(text.contains("Permission denied") && !text.contains("there is no log"), "{text}");
    }
}

#[test]
fn without_a_daemon_by_setting_a_home_is_healthy() {
    for (mode, file) in [("off", "hooks: {}"), ("auto", "hooks: {}\ndaemon: off")] {
        let home = Home::with_daemon(mode);
        home.write_hooks(file);
        home.answer("hermes", &hermes_shell("ls"));
        assert_eq!(home.text(&["status", "--check"]), "healthy\n", "{mode} {file}");
    }
    let home = Home::with_daemon("running");
    home.write_hooks("hooks: {}");
    assert_eq!(home.run(&["status", "--check"]).status.code(), Some(1));
}

#[test]
fn for_an_unreadable_payload_on_failure_decides() {
    let home = Home::with_hooks("on_failure: block\nhooks: {}\n");
    let output = home.hook("gemini", "{\"tool_name\": trailing} garbage");
    assert!(output.stdout.contains("deny"), "{output:?}");
    assert_eq!(home.decisions()[0]["outcome"], "block");
}

#[test]
fn a_hook_does_not_wait_for_the_end_of_its_stdin_past_its_deadline() {
    let home = Home::with_hooks(GUARD);
    let mut command = home.command(["hook", "hermes", "--deadline", "5"]);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(writer).spawn().expect("it starts");
    drop(command);
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, hermes_shell("rm x").to_string().as_bytes())
        .expect("it reads");
    // It exits while the pipe is still open; what it has read is the event.
    assert!(child.wait().expect("our child").success());
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut reader, &mut answer).expect("text");
    drop(stdin);
    assert!(answer.contains("guarded"), "{answer}");
}

#[test]
fn rules_still_apply_if_the_daemon_hangs_after_it_confirmed_the_call() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let hung_daemon = BrokenDaemon::start(&home, Then::Hang);
    let output = feed(
        home.command(["hook", "hermes", "--deadline", "5"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert!(output.stdout.contains("guarded"), "{output:?}");
    drop(hung_daemon);
    home.answer("hermes", &hermes_shell("ls"));
    let events: Vec<Value> = home.log(&["--kind", "tool.before"]);
    assert_eq!(events.len(), 2, "the event is not lost");
}

#[test]
fn if_not_even_the_rules_can_be_asked_in_time_the_wiring_decides_and_the_user_is_told() {
    let home = Home::with_hooks("hooks: { tool.before: [{ rule: { allow: true } }] }");
    let ask = |agent: &str, policy: &str, payload: &Value| -> Value {
        let file = home.work().join("event.json");
        fs::write(&file, payload.to_string()).expect("an event");
        // Too short to start a thread, let alone to read the hooks file.
        let mut hook =
            home.command(["hook", agent, "--deadline", "0.00001", "--on-failure", policy]);
        hook.stdin(fs::File::open(file).expect("the event"));
        let output = hook.output().expect("hookbus runs");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    };
    let too_late =
        "hookbus could not read its hooks in time, so none of them ran; run `hookbus status`";
    let blocked = ask("gemini", "block", &gemini_shell("ls"));
    assert_eq!(blocked, json!({"decision": "deny", "reason": too_late}));
    assert_eq!(ask("hermes", "block", &hermes_shell("ls"))["reason"], too_late);
    let told = ask("gemini", "allow", &gemini_shell("ls"));
    assert_eq!(told, json!({"systemMessage": too_late}));
    let mut large = gemini_shell("ls");
    large["tool_input"]["filler"] = json!("x".repeat(5 << 20));
    assert_eq!(ask("gemini", "allow", &large)["reason"], too_late, "its size opens no guard");
}

#[test]
fn a_hooks_file_that_is_a_fifo_or_nested_too_deep_does_not_block_the_agent() {
    let home = Home::with_hooks(&"- ".repeat(20_000));
    assert_eq!(home.answer("hermes", &hermes_shell("rm x")), Value::Null);
    fs::remove_file(home.path().join("hookbus.yaml")).expect("our file");
    let pipe = home.path().join("hookbus.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let output = feed(
        home.command(["hook", "hermes", "--deadline", "20"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_last_valid_hooks_apply_again_after_the_log_was_locked() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    home.write_hooks("hooks: [\n");
    let holder = LogHolder::exclusive(&home);
    // The last valid hooks are in the log, so they are not known while it is locked. The hook exits in time.
    let output = feed(
        home.command(["hook", "hermes", "--deadline", "3"]),
        hermes_shell("rm x").to_string().as_bytes(),
    );
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    holder.release();
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
}
