//! What was recorded goes elsewhere and comes back: exported files, archives, the stream; and
//! observers are given it once more.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;

use hookbus_tests::home::{Home, shown, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::{self, hermes_shell};
use hookbus_tests::recording::damage;
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// An observer that writes down what it is told, in `seen` beside the home.
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

fn watch(home: &Home) {
    let script = "#!/usr/bin/python3 -S\nimport json, os, sys\nfor line in sys.stdin:\n    ours = json.loads(line)['hookbus']\n    with open(os.path.dirname(sys.argv[0]) + '/seen', 'a') as seen:\n        print(ours['seq'], ours['replay'], os.environ.get('HOOKBUS_REPLAY'), file=seen)\n    print('ok', flush=True)\n";
    home.script("watch.py", script);
}

fn seen(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.path().join("../seen")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn sum(home: &Home, arguments: &[&str]) -> Value {
    let output = home.run(&[&["replay", "--json"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    report["summary"].clone()
}

#[test]
fn an_exported_log_is_imported_whole_and_replays_the_same() {
    let home = recorded(GUARD);
    let file = shown(&home.work().join("all.jsonl"));
    home.text(&["export", "-o", &file]);
    let text = fs::read_to_string(&file).expect("an export");
    assert_eq!(text.lines().count(), home.log(&[]).len(), "one row a line");
    let into = shown(&home.path().join("../imported"));
    let told = home.json(&["import", &file, "--into", &into, "--json"]);
    assert_eq!((&told["added"], &told["mistakes"]), (&json!(home.log(&[]).len()), &json!([])));
    let again = home.json(&["import", &file, "--into", &into, "--json"]);
    assert_eq!((&again["added"], &again["known"]), (&json!(0), &told["added"]));
    let verified = home.command(["verify", "--json"]).env("HOOKBUS_HOME", &into).output();
    let verified: Value = serde_json::from_slice(&verified.expect("it runs").stdout).expect("JSON");
    assert_eq!(verified["buses"][0]["head"], home.json(&["verify", "--json"])["head"]);
    let here = sum(&home, &["--all", "--as-recorded"]);
    assert_eq!(here["unchanged"], here["events"]);
    for place in [&file, &into] {
        assert_eq!(sum(&home, &["--all", "--as-recorded", "--log", place]), here, "{place}");
    }
}

#[test]
fn in_an_archive_each_bus_has_its_own_scripts() {
    let homes = ["one", "two"].map(|word| {
        let home = Home::with_hooks("hooks: { tool.before: [{ command: ../say.sh }] }");
        let says = format!("{{\"decision\": \"block\", \"reason\": \"{word}\"}}");
        home.script("say.sh", &format!("#!/bin/sh\necho '{says}'\n"));
        home.answer("hermes", &hermes_shell("ls"));
        home
    });
    let into = shown(&homes[0].path().join("../both"));
    for home in &homes {
        let file = shown(&home.work().join("all.jsonl"));
        home.text(&["export", "-o", &file]);
        home.text(&["import", &file, "--into", &into]);
    }
    let told = sum(&homes[0], &["--all", "--as-recorded", "--yes", "--log", &into]);
    assert_eq!((&told["unchanged"], &told["events"]), (&json!(2), &json!(2)), "{told}");
}

#[test]
fn a_part_of_a_log_can_be_exported() {
    let home = recorded(GUARD);
    let session = hermes_shell("")["session_id"].as_str().expect("a session").to_owned();
    let text = home.text(&["export", &session]);
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(rows.iter().any(|row| row["type"] == "hookbus.hooks.loaded"));
    assert!(rows.iter().any(|row| row["type"] == "hookbus.decision"));
    let strangers =
        |row: &&Value| row["subject"] != session && row["type"] != "hookbus.hooks.loaded";
    assert_eq!(rows.iter().filter(strangers).count(), 0);
    let file = home.work().join("part.jsonl");
    fs::write(&file, text).expect("a file");
    let told = sum(&home, &["--all", "--as-recorded", "--log", &shown(&file)]);
    assert_eq!((&told["unchanged"], &told["not_comparable"]), (&told["events"], &json!(0)));
}

#[test]
fn what_was_changed_on_its_way_is_left_out_and_told() {
    let home = recorded(GUARD);
    let text = home.text(&["export"]).replace("rm 2", "ls 2");
    let file = home.work().join("forged.jsonl");
    fs::write(&file, format!("not a row\n{text}")).expect("a file");
    let into = shown(&home.path().join("../imported"));
    let told = home.run(&["import", &shown(&file), "--into", &into]);
    assert_eq!(told.status.code(), Some(1));
    let said = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        said.contains("line 1: not an envelope") && said.contains("changed on its way"),
        "{said}"
    );
    let own = home.run(&["import", &shown(&file), "--into", &shown(&home.path())]);
    assert!(String::from_utf8_lossy(&own.stderr).contains("name another directory"));
}

#[test]
fn a_stream_is_replayed_like_the_log_it_came_from() {
    let server = NatsServer::start();
    let home = recorded(&format!("nats: {{url: \"{}\"}}\n{GUARD}", server.url()));
    let daemon = home.serve();
    let rows = json!(home.log(&[]).len());
    wait_until("it is relayed", || home.json(&["status", "--json"])["relay"]["published"] == rows);
    drop(daemon);
    let here = sum(&home, &["--all", "--as-recorded"]);
    assert_eq!(sum(&home, &["--all", "--as-recorded", "--nats"]), here);
    // The hooks came into force before that.
    let daemon = home.serve();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    home.answer("hermes", &hermes_shell("rm since"));
    let since = home.log(&["--kind", "tool.before"]).pop().expect("a row")["time"].clone();
    let since = since.as_str().expect("a time").to_owned();
    let rows = home.log(&[]).len();
    wait_until("it is relayed", || server.published().len() == rows);
    drop(daemon);
    let late = sum(&home, &["--since", &since, "--as-recorded", "--nats"]);
    assert_eq!((&late["events"], &late["unchanged"]), (&json!(1), &json!(1)), "{late}");
    let here = sum(&home, &["--all", "--as-recorded"]);
    let elsewhere = Home::new();
    let url = format!("--nats={}", server.url());
    assert_eq!(sum(&elsewhere, &["--all", "--as-recorded", &url]), here);
    assert!(!elsewhere.path().join("log.db").exists());
}

#[test]
fn observers_are_given_a_session_again_and_can_tell() {
    let home = recorded(&format!("{GUARD}{WATCH}"));
    watch(&home);
    let before = fs::read(home.path().join("log.db")).expect("a log");
    let session = hermes_shell("")["session_id"].as_str().expect("a session").to_owned();
    let refused = home.run(&["replay", &session, "--to-observers"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"), "nobody was asked");
    assert_eq!(seen(&home), Vec::<String>::new());
    let told = home.json(&["replay", &session, "--to-observers", "--yes", "--json"]);
    let own = home.log(&["--kind", "tool.before", "--session", &session]);
    assert_eq!(told["observers"][0]["given"], own.len());
    let expected: Vec<String> = own.iter().map(|row| format!("{} True 1", row["seq"])).collect();
    assert_eq!(seen(&home), expected);
    assert_eq!(fs::read(home.path().join("log.db")).expect("a log"), before);
    assert!(!home.path().join("observers").exists(), "no position was moved");
    let paced = home.run(&["replay", &session, "--to-observers", "--yes", "--pace", "quick"]);
    assert!(String::from_utf8_lossy(&paced.stderr).contains("such as `10x`"));
    home.text(&["replay", &session, "--to-observers", "--yes", "--pace", "1000x"]);
    assert_eq!(seen(&home).len(), 2 * expected.len());
}

#[test]
fn a_dry_run_gives_nothing_to_anybody_and_says_what_it_would() {
    // Nobody is there: nothing could be published.
    let home = recorded(&format!("nats: {{url: \"nats://127.0.0.1:1\"}}\n{GUARD}{WATCH}"));
    watch(&home);
    let told = home.json(&["replay", "--all", "--to-observers", "--dry-run", "--json"]);
    let own = home.log(&["--kind", "tool.before"]).len();
    assert_eq!(told["observers"], json!([{"observer": "watch", "would_be_given": own}]));
    let publish = ["replay", "--all", "--to-observers", "--publish", "--dry-run", "--json"];
    assert_eq!(home.json(&publish)["would_be_published"], home.log(&[]).len());
    assert_eq!(seen(&home).len(), 0);
}

#[test]
fn a_damaged_row_is_passed_over_and_told() {
    let home = Home::with_hooks(&format!("{GUARD}{WATCH}"));
    watch(&home);
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
fn a_published_replay_is_beside_the_live_stream() {
    let server = NatsServer::start();
    let home = recorded(&format!("nats: {{url: \"{}\"}}\n{GUARD}{WATCH}", server.url()));
    watch(&home);
    // One that no message can hold.
    home.answer("hermes", &hermes_shell(&"x".repeat(2 << 20)));
    let daemon = home.serve_with(&["--no-observers"]);
    let rows = json!(home.log(&[]).len());
    wait_until("it is relayed", || home.json(&["status", "--json"])["relay"]["published"] == rows);
    drop(daemon);
    let live = server.published().len();
    let told = home.json(&["replay", "--all", "--to-observers", "--publish", "--json"]);
    assert_eq!(told["published"], rows);
    assert_eq!(server.published().len(), live, "nothing came into the live stream");
    let run = told["run"].as_str().expect("a run").to_owned();
    let given = home.json(&["observe", "watch", "--replay", &run, "--json"]);
    let nobody = home.run(&["observe", "watch", "--replay", "nosuchrun"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("nothing was published as"));
    let own = home.log(&["--kind", "tool.before"]);
    assert_eq!(given["handled"], own.len());
    let expected: Vec<String> = own.iter().map(|row| format!("{} True 1", row["seq"])).collect();
    assert_eq!(seen(&home), expected);
}
