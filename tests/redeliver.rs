//! Recorded events outside of their log: exported and imported, replayed from NATS, delivered to observers
//! again.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;

use hookbus_tests::home::{Home, path_text, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::{self, hermes_shell};
use hookbus_tests::recording::damage;
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// An observer that appends each event to `seen`, next to the home.
const WATCH: &str = "    - {name: watch, mode: observe, long_lived: true, command: ../watch.py}\n";

fn recorded(hooks: &str) -> Home {
    let home = Home::with_daemon("running");
    home.write_hooks(hooks);
    for (agent, _, bytes) in payloads::all() {
        home.hook(&agent, bytes);
    }
    home.hook("hermes", b"\xff not text");
    home.hook(
        "hermes",
        "{\n  \"hook_event_name\": \"pre_tool_call\",\n  \"session_id\": \"lines\"\n}\n",
    );
    for round in 0..4 {
        home.answer("hermes", &hermes_shell(&format!("rm {round}")));
    }
    home
}

/// Installs the program of [`WATCH`].
fn install_watch(home: &Home) {
    let script = "#!/usr/bin/python3 -S\nimport json, os, sys\nfor line in sys.stdin:\n    ours = json.loads(line)['hookbus']\n    with open(os.path.dirname(sys.argv[0]) + '/seen', 'a') as seen:\n        print(ours['seq'], ours['replay'], os.environ.get('HOOKBUS_REPLAY'), file=seen)\n    print('ok', flush=True)\n";
    home.script("watch.py", script);
}

fn seen(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.path().join("../seen")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The summary of a replay.
fn summary(home: &Home, arguments: &[&str]) -> Value {
    let output = home.run(&[&["replay", "--json"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    report["summary"].clone()
}

#[test]
fn an_exported_log_is_imported_whole_and_replays_the_same() {
    let home = recorded(GUARD);
    let file = path_text(&home.work().join("all.jsonl"));
    home.text(&["export", "-o", &file]);
    let text = fs::read_to_string(&file).expect("an export");
    assert_eq!(text.lines().count(), home.log(&[]).len(), "one row per line");
    let into = path_text(&home.path().join("../imported"));
    let imported = home.json(&["import", &file, "--into", &into, "--json"]);
    assert_eq!(
        (&imported["added"], &imported["mistakes"]),
        (&json!(home.log(&[]).len()), &json!([]))
    );
    let again = home.json(&["import", &file, "--into", &into, "--json"]);
    assert_eq!((&again["added"], &again["known"]), (&json!(0), &imported["added"]));
    let verified = home.command(["verify", "--json"]).env("HOOKBUS_HOME", &into).output();
    let verified: Value = serde_json::from_slice(&verified.expect("it runs").stdout).expect("JSON");
    assert_eq!(verified["buses"][0]["head"], home.json(&["verify", "--json"])["head"]);
    let here = summary(&home, &["--all", "--as-recorded"]);
    assert_eq!(here["unchanged"], here["events"]);
    for log in [&file, &into] {
        assert_eq!(summary(&home, &["--all", "--as-recorded", "--log", log]), here, "{log}");
    }
}

#[test]
fn an_archive_keeps_the_scripts_of_each_bus_apart() {
    let homes = ["one", "two"].map(|word| {
        let home = Home::with_hooks("hooks: { tool.before: [{ command: ../say.sh }] }");
        let says = format!("{{\"decision\": \"block\", \"reason\": \"{word}\"}}");
        home.script("say.sh", &format!("#!/bin/sh\necho '{says}'\n"));
        home.answer("hermes", &hermes_shell("ls"));
        home
    });
    let into = path_text(&homes[0].path().join("../both"));
    for home in &homes {
        let file = path_text(&home.work().join("all.jsonl"));
        home.text(&["export", "-o", &file]);
        home.text(&["import", &file, "--into", &into]);
    }
    let report =
        summary(&homes[0], &["--all", "--as-recorded", "--run", "../say.sh", "--log", &into]);
    assert_eq!((&report["unchanged"], &report["events"]), (&json!(2), &json!(2)), "{report}");
}

#[test]
fn one_session_can_be_exported() {
    let home = recorded(GUARD);
    let session = hermes_shell("")["session_id"].as_str().expect("a session").to_owned();
    let text = home.text(&["export", &session]);
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(rows.iter().any(|row| row["type"] == "hookbus.hooks.loaded"));
    assert!(rows.iter().any(|row| row["type"] == "hookbus.decision"));
    let others = |row: &&Value| row["subject"] != session && row["type"] != "hookbus.hooks.loaded";
    assert_eq!(rows.iter().filter(others).count(), 0);
    let file = home.work().join("part.jsonl");
    fs::write(&file, text).expect("a file");
    let report = summary(&home, &["--all", "--as-recorded", "--log", &path_text(&file)]);
    assert_eq!((&report["unchanged"], &report["not_comparable"]), (&report["events"], &json!(0)));
}

#[test]
fn import_leaves_out_and_reports_rows_that_were_changed() {
    let home = recorded(GUARD);
    let text = home.text(&["export"]).replace("rm 2", "ls 2");
    let file = home.work().join("forged.jsonl");
    fs::write(&file, format!("not a row\n{text}")).expect("a file");
    let into = path_text(&home.path().join("../imported"));
    let imported = home.run(&["import", &path_text(&file), "--into", &into]);
    assert_eq!(imported.status.code(), Some(1));
    let output = String::from_utf8_lossy(&imported.stdout).into_owned();
    assert!(
        output.contains("line 1: not a hookbus envelope")
            && output.contains("the row was changed after it was recorded"),
        "{output}"
    );
    let into_itself = home.run(&["import", &path_text(&file), "--into", &path_text(&home.path())]);
    assert!(String::from_utf8_lossy(&into_itself.stderr).contains("choose another directory"));
}

#[test]
fn a_replay_from_nats_equals_a_replay_from_the_log() {
    let server = NatsServer::start();
    let home = recorded(&format!("nats: {{url: \"{}\"}}\n{GUARD}", server.url()));
    let daemon = home.serve();
    // The daemon's own row may come later.
    wait_until("the relay has published everything", || {
        home.json(&["status", "--json"])["relay"]["published"] == home.log(&[]).len()
    });
    drop(daemon);
    let here = summary(&home, &["--all", "--as-recorded"]);
    assert_eq!(summary(&home, &["--all", "--as-recorded", "--nats"]), here);
    // `--since` selects events after the hooks came into force; the hooks have to be copied all the same.
    let daemon = home.serve();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    home.answer("hermes", &hermes_shell("rm since"));
    let since = home.log(&["--kind", "tool.before"]).pop().expect("a row")["time"].clone();
    let since = since.as_str().expect("a time").to_owned();
    wait_until("the relay has published everything", || {
        server.published().len() == home.log(&[]).len()
    });
    drop(daemon);
    let late = summary(&home, &["--since", &since, "--as-recorded", "--nats"]);
    assert_eq!((&late["events"], &late["unchanged"]), (&json!(1), &json!(1)), "{late}");
    let here = summary(&home, &["--all", "--as-recorded"]);
    let elsewhere = Home::new();
    let url = format!("--nats={}", server.url());
    assert_eq!(summary(&elsewhere, &["--all", "--as-recorded", &url]), here);
    assert!(!elsewhere.path().join("log.db").exists());
}

#[test]
fn observers_get_a_session_again_marked_as_a_replay() {
    let home = recorded(&format!("{GUARD}{WATCH}"));
    install_watch(&home);
    let before = fs::read(home.path().join("log.db")).expect("a log");
    let session = hermes_shell("")["session_id"].as_str().expect("a session").to_owned();
    let refused = home.run(&["replay", &session, "--to-observers"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"), "it asks for confirmation");
    assert_eq!(seen(&home), Vec::<String>::new());
    let report = home.json(&["replay", &session, "--to-observers", "--yes", "--json"]);
    let expected_rows = home.log(&["--kind", "tool.before", "--session", &session]);
    assert_eq!(report["observers"][0]["given"], expected_rows.len());
    let expected: Vec<String> =
        expected_rows.iter().map(|row| format!("{} True 1", row["seq"])).collect();
    assert_eq!(seen(&home), expected);
    assert_eq!(fs::read(home.path().join("log.db")).expect("a log"), before);
    assert!(!home.path().join("observers").exists(), "no position was moved");
    let paced = home.run(&["replay", &session, "--to-observers", "--yes", "--pace", "quick"]);
    assert!(String::from_utf8_lossy(&paced.stderr).contains("such as `10x`"));
    home.text(&["replay", &session, "--to-observers", "--yes", "--pace", "1000x"]);
    assert_eq!(seen(&home).len(), 2 * expected.len());
}

#[test]
fn a_dry_run_delivers_nothing_and_reports_what_it_would() {
    // No server listens there, so publishing would fail.
    let home = recorded(&format!("nats: {{url: \"nats://127.0.0.1:1\"}}\n{GUARD}{WATCH}"));
    install_watch(&home);
    let report = home.json(&["replay", "--all", "--to-observers", "--dry-run", "--json"]);
    let wanted = home.log(&["--kind", "tool.before"]).len();
    assert_eq!(report["observers"], json!([{"observer": "watch", "would_be_given": wanted}]));
    let publish = ["replay", "--all", "--to-observers", "--publish", "--dry-run", "--json"];
    assert_eq!(home.json(&publish)["would_be_published"], home.log(&[]).len());
    assert_eq!(seen(&home).len(), 0);
}

#[test]
fn a_damaged_row_is_skipped_and_reported() {
    let home = Home::with_hooks(&format!("{GUARD}{WATCH}"));
    install_watch(&home);
    for command in ["ls", "make", "rm"] {
        home.answer("hermes", &hermes_shell(command));
    }
    let second = home.log(&["--kind", "tool.before"])[1]["seq"].to_string();
    damage(&home, &[&format!("UPDATE events SET id = x'01' WHERE seq = {second}")]);
    let line = format!("row {second} is damaged");
    let output = home.run(&["export"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains(&line));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"rm\""));
    let output = home.run(&["replay", "--all", "--to-observers", "--yes"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains(&line));
    assert_eq!(seen(&home).len(), 2);
}

#[test]
fn a_published_replay_stays_out_of_the_live_stream() {
    let server = NatsServer::start();
    let home = recorded(&format!("nats: {{url: \"{}\"}}\n{GUARD}{WATCH}", server.url()));
    install_watch(&home);
    // A payload that does not fit a message.
    home.answer("hermes", &hermes_shell(&"x".repeat(2 << 20)));
    let daemon = home.serve_with(&["--no-observers"]);
    // The daemon answers before this row is in the log.
    wait_until("the start is recorded", || !home.log(&["--kind", "daemon.started"]).is_empty());
    let rows = json!(home.log(&[]).len());
    wait_until("the relay has published everything", || {
        home.json(&["status", "--json"])["relay"]["published"] == rows
    });
    drop(daemon);
    let live = server.published().len();
    let report = home.json(&["replay", "--all", "--to-observers", "--publish", "--json"]);
    assert_eq!(report["published"], rows);
    assert_eq!(server.published().len(), live, "nothing was published to the live stream");
    let run = report["run"].as_str().expect("a run").to_owned();
    let given = home.json(&["observe", "watch", "--replay", &run, "--json"]);
    let unknown = home.run(&["observe", "watch", "--replay", "nosuchrun"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("nothing was published as"));
    let expected_rows = home.log(&["--kind", "tool.before"]);
    assert_eq!(given["handled"], expected_rows.len());
    let expected: Vec<String> =
        expected_rows.iter().map(|row| format!("{} True 1", row["seq"])).collect();
    assert_eq!(seen(&home), expected);
}

/// A recording names commands that another person may have written: an export, another home, an archive.
#[test]
fn commands_of_a_foreign_recording_run_only_if_they_are_approved_by_name() {
    let theirs = Home::new();
    let ran = theirs.work().join("ran");
    theirs.script(
        "evil.sh",
        &format!(
            "#!/bin/sh\ntouch {}\necho '{{\"decision\": \"block\", \"reason\": \"evil\"}}'\n",
            path_text(&ran)
        ),
    );
    theirs
        .write_hooks("trust: home\nhooks: { tool.before: [{ name: evil, command: ../evil.sh }] }");
    assert_eq!(theirs.answer("hermes", &hermes_shell("ls"))["reason"], "evil");
    fs::remove_file(&ran).expect("it ran");
    let export = path_text(&theirs.work().join("all.jsonl"));
    theirs.text(&["export", "-o", &export]);
    let archive = path_text(&theirs.work().join("archive"));
    theirs.text(&["import", &export, "--into", &archive]);
    let home = path_text(&theirs.path());
    let mine = Home::new();
    for log in [&export, &home, &archive] {
        let report = summary(&mine, &["--all", "--as-recorded", "--yes", "--log", log]);
        assert_eq!(report["not_comparable"], 1, "{log}: {report}");
        assert!(!ran.exists(), "{log}");
        let shown = mine.run(&["replay", "--all", "--as-recorded", "--yes", "--log", log]);
        let (text, told) =
            (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
        assert!(text.contains("not run (foreign command): evil"), "{text}");
        assert!(told.contains("evil.sh") && told.contains(log.as_str()), "{told}");
        let plan =
            mine.json(&["replay", "--all", "--as-recorded", "--log", log, "--dry-run", "--json"]);
        assert_eq!((&plan["commands"], &plan["foreign"][0]["hook"]), (&json!([]), &json!("evil")));
        assert!(!ran.exists(), "{log}");
        let by_name = ["--all", "--as-recorded", "--run", "evil", "--log", log];
        assert_eq!(summary(&mine, &by_name)["unchanged"], 1, "{log}");
        // Where the system has no bubblewrap, it could write the file.
        drop(fs::remove_file(&ran));
    }
    // The home of an archive is foreign too.
    let mut in_archive = mine.command(["replay", "--all", "--as-recorded", "--yes", "--json"]);
    let in_archive = in_archive.env("HOOKBUS_HOME", &archive).output().expect("hookbus runs");
    assert!(String::from_utf8_lossy(&in_archive.stdout).contains("not run (foreign command)"));
    // So is a log that was copied into a home: its hooks were recorded at another path.
    let copied = Home::new();
    fs::create_dir(copied.path()).expect("a home");
    let copy = copied.path().join("log.db");
    fs::copy(theirs.path().join("log.db-wal"), copied.path().join("log.db-wal")).expect("a copy");
    fs::copy(theirs.path().join("log.db"), &copy).expect("a copy");
    let report = summary(&copied, &["--all", "--as-recorded", "--yes"]);
    assert_eq!((&report["not_comparable"], ran.exists()), (&json!(1), false), "{report}");
    let told = copied.run(&["replay", "--all", "--as-recorded", "--yes"]);
    assert!(String::from_utf8_lossy(&told.stderr).contains(&path_text(&copy)), "{told:?}");
    assert_eq!(summary(&copied, &["--all", "--as-recorded", "--run", "evil"])["unchanged"], 1);
    drop(fs::remove_file(&ran));
    let unknown = mine.run(&["replay", "--all", "--as-recorded", "--run", "guard", "--log", &home]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("has the name `guard`"));
    // In its own home it is the user's own command, also if a link leads there.
    let own = summary(&theirs, &["--all", "--as-recorded", "--yes"]);
    assert_eq!(own["unchanged"], 1, "{own}");
    let link = path_text(&theirs.work().join("link"));
    std::os::unix::fs::symlink(theirs.path(), &link).expect("a link");
    let linked = summary(&theirs, &["--all", "--as-recorded", "--yes", "--home", &link]);
    assert_eq!(linked["unchanged"], 1, "{linked}");
}

/// The namespace of the network tells whether a command is kept apart.
#[test]
fn a_foreign_command_runs_in_the_sandbox_that_the_system_has() {
    let theirs = Home::new();
    theirs.script(
        "where.sh",
        "#!/bin/sh\necho \"{\\\"decision\\\": \\\"block\\\", \\\"reason\\\": \\\"$(readlink /proc/self/ns/net)\\\"}\"\n",
    );
    theirs.write_hooks(
        "trust: home\nhooks: { tool.before: [{ name: where, command: ../where.sh }] }",
    );
    let here = theirs.answer("hermes", &hermes_shell("ls"))["reason"].clone();
    assert!(here.as_str().is_some_and(|reason| reason.starts_with("net:")), "{here}");
    let log = path_text(&theirs.path());
    let replay = |home: &Home, more: &[&str]| {
        let arguments = [&["replay", "--all", "--as-recorded", "--json"], more].concat();
        let ran = home.run(&arguments);
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        let report: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        (report["summary"]["changed"] == 1, told)
    };
    for (elsewhere, told) in [
        replay(&Home::new(), &["--run", "where", "--log", &log]),
        replay(&theirs, &["--yes", "--sandbox"]),
    ] {
        assert!(told.contains("commands run "), "{told}");
        assert_eq!(elsewhere, !told.contains("this system has no sandbox"), "{told}");
    }
    let (elsewhere, told) = replay(&theirs, &["--yes"]);
    assert!(!elsewhere && !told.contains("commands run "), "{told}");
}
