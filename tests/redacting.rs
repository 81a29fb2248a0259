//! `hookbus scan --redact`: secrets that rows still hold are replaced on purpose. Nothing of them stays in the files, what
//! the rows hold since is bound by a record in the chain, and any other change of a row is still found.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hookbus::event::{Agent, EventId};
use hookbus::log::Row;
use hookbus_tests::home::{Home, feed, path_text};
use hookbus_tests::recording::{damage, query, record, record_after, rows};
use serde_json::{Value, json};

const RULE: &str = "redact: false\nhooks:\n  tool.before:\n    - { name: no-keys, tool: shell, rule: { when: { command: ghp_ }, block: 'not with a token' } }\n";

/// A token in the form that GitHub issues, put together here so that no scanner takes this file for a leak.
fn secret(number: usize) -> String {
    format!("{}{}{number:04}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6")
}

/// A text that other texts of its session are compressed with, because they are alike.
fn text(index: usize, with: &str) -> String {
    let words: Vec<String> =
        (0..150).map(|word| format!("{:x}", word * 7919 + index / 6)).collect();
    format!("{} {with} {}", words[..75].join(" "), words[75..].join(" "))
}

/// Two sessions in turn, with a history. Every third text has a secret; texts before and after it are much like it.
fn with_secrets(index: usize) -> (Agent, Value) {
    let session = format!("session-{}", index % 2);
    if index % 5 == 4 {
        let payload = json!({
            "hook_event_name": "pre_tool_call", "session_id": session, "tool_name": "terminal",
            "tool_input": {"command": format!("curl -H 'X-Key: {}' x", secret(index % 7))},
        });
        return (Agent::Hermes, payload);
    }
    let message = |at: usize| {
        let with =
            if at % 3 == 1 { format!("token {}", secret(at % 7)) } else { format!("plain {at}") };
        json!({"role": "user", "content": text(at, &with)})
    };
    let payload = json!({
        "hook_event_name": "pre_llm_call", "session_id": session,
        "extra": {"conversation_history": (0..index % 24).map(message).collect::<Vec<_>>()},
    });
    (Agent::Hermes, payload)
}

/// The files of a home that hold any of the secrets.
fn files_with_secrets(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with_secrets(&path));
        } else if let Ok(bytes) = fs::read(&path) {
            let needle = &secret(0).into_bytes()[..30];
            if bytes.windows(needle.len()).any(|it| it == needle) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn verified(home: &Home) -> Value {
    verified_at(home, &home.path())
}

fn verified_at(home: &Home, folder: &Path) -> Value {
    let output = home.run(&["--home", &path_text(folder), "verify", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // An archive has a report for each bus.
    report["buses"].get(0).filter(|_| report["sound"] == true).cloned().unwrap_or(report)
}

fn redact(home: &Home) -> Value {
    home.json(&["scan", "--redact", "--yes", "--json"])
}

#[test]
fn nothing_of_the_secrets_stays_and_everything_else_does() {
    let home = Home::with_hooks(RULE);
    record(&home, 60, with_secrets);
    let before = rows(&home);
    assert!(!files_with_secrets(&home.path()).is_empty());
    let refused = home.run(&["scan", "--redact"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"), "{refused:?}");
    assert_eq!(home.run(&["scan", "--redact", "--dry-run"]).status.code(), Some(1));
    assert_eq!(rows(&home), before);
    let done = redact(&home);
    assert!(done["redacted"].as_u64() > Some(40), "{done}");
    assert_eq!(files_with_secrets(&home.path()), [""; 0]);
    let after = rows(&home);
    for (was, is) in before.iter().zip(&after) {
        assert_eq!((is.seq, is.id, is.hash, is.at), (was.seq, was.id, was.hash, was.at));
        assert_eq!(is.payload_digest(), was.payload_digest());
        let had_secret =
            String::from_utf8_lossy(&was.payload).contains("ghp_") && was.kind != "hooks.loaded";
        assert_eq!(is.redaction.is_some(), had_secret, "{}", was.seq);
        if had_secret {
            let text = String::from_utf8_lossy(&is.payload).into_owned();
            assert!(text.contains("[redacted:github-token:"), "{text}");
            serde_json::from_str::<Value>(&text).expect("still JSON");
        } else {
            assert_eq!(is, was);
        }
    }
    let report = verified(&home);
    assert_eq!(
        (&report["sound"], &report["redacted"]["rows"]),
        (&json!(true), &done["redacted"]),
        "{report}"
    );
    assert!(home.text(&["scan"]).starts_with("no secrets found in "));
    let record = &home.log(&["--kind", "log.redacted"])[0];
    assert!(record["payload"]["kinds"]["github-token"].is_u64(), "{record}");
    // A second time there is nothing to do, and the next event fits.
    let head = rows(&home).len();
    assert_eq!((&redact(&home)["redacted"], rows(&home).len()), (&json!(0), head));
    home.write_hooks(&RULE.replace("redact: false\n", ""));
    record_after(&home, 60, 6, with_secrets);
    assert_eq!(verified(&home)["sound"], true);
    // What a hook saw is not in the log any more.
    let replayed = home.json(&["replay", "--all", "--json"]);
    assert!(replayed["not_comparable"].to_string().contains("redacted"), "{replayed:#}");
    // Redacted rows can be pruned.
    let pruned = home.json(&["prune", "--session", "session-0", "--yes", "--json"]);
    assert!(pruned["payloads"].as_u64() > Some(20), "{pruned}");
    assert_eq!((&pruned["damaged"], &verified(&home)["sound"]), (&json!(0), &json!(true)));
    let pruned = home.json(&["prune", "--session", "session-1", "--rows", "--yes", "--json"]);
    assert_eq!((&pruned["damaged"], &verified(&home)["sound"]), (&json!(0), &json!(true)));
}

#[test]
fn no_text_stays_because_another_one_is_compressed_with_it() {
    let home = Home::with_hooks("redact: false\n");
    record(&home, 48, with_secrets);
    redact(&home);
    let parts = query(&home, "SELECT count(*) FROM parts")[0];
    // Every part is needed by a row as it is: a sweep finds nothing more.
    assert_eq!(redact(&home)["redacted"], 0);
    assert_eq!(query(&home, "SELECT count(*) FROM parts")[0], parts);
    assert_eq!(verified(&home)["sound"], true);
}

#[test]
fn the_context_is_redacted_too_and_other_changes_of_it_are_found() {
    let home = Home::with_hooks("redact: false\n");
    record(&home, 6, with_secrets);
    let folder = home.work().join(secret(1));
    fs::create_dir_all(&folder).expect("a folder");
    let payload = with_secrets(4).1.to_string();
    let mut client = home.command(["hook", "hermes"]);
    client.current_dir(&folder);
    feed(client, payload.as_bytes());
    record_after(&home, 8, 3, with_secrets);
    let before = rows(&home);
    let at = before.iter().find(|row| row.context.as_deref().is_some_and(|it| it.contains("ghp_")));
    let at = at.expect("a row with a secret in its context").seq;
    redact(&home);
    assert_eq!(files_with_secrets(&home.path()), [""; 0]);
    let report = verified(&home);
    assert_eq!(report["sound"], true, "{report}");
    // It is left out of an archive with a sentence, and the rest is in it.
    let export = home.work().join("export.jsonl");
    let export = export.to_str().expect("a path");
    fs::write(export, home.text(&["export"])).expect("a file");
    let archive = home.work().join("archive");
    let imported = home.run(&["import", export, "--into", archive.to_str().expect("a path")]);
    let said = String::from_utf8_lossy(&imported.stdout).into_owned();
    assert!(said.contains("context was redacted on purpose"), "{said}");
    let report = verified_at(&home, &archive);
    assert_eq!(
        (&report["sound"], &report["redacted"]["unconfirmed"]),
        (&json!(true), &json!(0)),
        "{report}"
    );
    damage(
        &home,
        &[&format!("UPDATE events SET context = '{{\"cwd\":\"/elsewhere\"}}' WHERE seq = {at}")],
    );
    home.run(&["verify", "--repair"]);
    assert_eq!(verified(&home)["sound"], false);
}

#[test]
fn what_another_program_changes_is_still_found() {
    for statement in [
        // A redacted payload is changed, with its digest.
        "UPDATE events SET payload = '{\"hook_event_name\":\"pre_tool_call\"}', packed = NULL WHERE seq = {seq}",
        "UPDATE events SET redacted = x'00' WHERE seq = {seq}",
        "UPDATE events SET digest = x'00' WHERE seq = {seq}",
        "UPDATE events SET redacted = NULL WHERE seq = {seq}",
        "UPDATE events SET context = '{}', redacted_columns = 1 WHERE seq = {seq}",
        // A row is made to look redacted.
        "UPDATE events SET digest = redacted, redacted = digest, redacted_columns = 1 WHERE seq = {seq}",
        "UPDATE events SET redacted_columns = 1, redacted = hash, context = '{}' WHERE seq = (SELECT min(seq) FROM events WHERE redacted IS NULL AND agent = 'hermes')",
        // A record is changed.
        "UPDATE events SET payload = '{}' WHERE kind = 'log.redacted' AND payload LIKE '%seqs%'",
    ] {
        let home = Home::with_hooks(RULE);
        record(&home, 12, with_secrets);
        redact(&home);
        assert_eq!(verified(&home)["sound"], true);
        let seq =
            query(&home, "SELECT seq FROM events WHERE redacted IS NOT NULL AND packed IS NULL")[0];
        damage(&home, &[&statement.replace("{seq}", &seq.to_string())]);
        home.run(&["verify", "--repair"]);
        assert_eq!(verified(&home)["sound"], false, "{statement}");
    }
}

#[test]
fn a_held_session_stays_as_it_is() {
    let home = Home::with_hooks("redact: false\n");
    record(&home, 20, with_secrets);
    home.text(&["hold", "session-1"]);
    let before = rows(&home);
    let done = home.run(&["scan", "--redact", "--yes"]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("session session-1 is held and stays as it is"), "{said}");
    let after = rows(&home);
    for (was, is) in before.iter().zip(&after).filter(|(was, _)| was.session == "session-1") {
        assert_eq!(was, is);
    }
    assert_eq!(verified(&home)["sound"], true);
    home.text(&["hold", "--release", "session-1"]);
    redact(&home);
    assert_eq!(files_with_secrets(&home.path()), [""; 0]);
}

#[test]
fn an_archive_of_a_redacted_log_is_sound_and_says_what_it_holds() {
    let home = Home::with_hooks("redact: false\n");
    record(&home, 20, with_secrets);
    let early = home.work().join("early.jsonl");
    fs::write(&early, home.text(&["export"])).expect("a file");
    redact(&home);
    let late = home.work().join("late.jsonl");
    let exported = home.text(&["export"]);
    assert!(exported.contains("dataredacted"), "{exported}");
    fs::write(&late, exported).expect("a file");
    let into = |name: &str, files: &[&Path]| {
        let archive = home.work().join(name);
        for file in files {
            let file = file.to_str().expect("a path");
            home.text(&["import", file, "--into", archive.to_str().expect("a path")]);
        }
        archive
    };
    let archive = into("redacted", &[&late]);
    let report = verified_at(&home, &archive);
    assert_eq!(report["sound"], true, "{report}");
    assert!(report["redacted"]["rows"].as_u64() > Some(10), "{report}");
    assert_eq!(report["redacted"]["unconfirmed"], 0, "{report}");
    // An archive keeps what it has.
    let archive = into("early", &[&early, &late]);
    let report = verified_at(&home, &archive);
    assert_eq!(
        (&report["sound"], &report["redacted"]["rows"]),
        (&json!(true), &json!(0)),
        "{report}"
    );
}

#[test]
fn redacting_can_be_killed_at_any_moment_while_agents_go_on() {
    let home = Home::with_hooks(RULE);
    record(&home, 250, |index| with_secrets(index % 48));
    let copy = home.work().join("full.db");
    home.text(&["backup", copy.to_str().expect("a path")]);
    let (mut killed, mut whole) = (0, Duration::ZERO);
    for pause in 0..9_u32 {
        for name in ["log.db", "log.db-wal", "log.db-shm"] {
            fs::remove_file(home.path().join(name)).unwrap_or_default();
        }
        fs::copy(&copy, home.path().join("log.db")).expect("the whole log");
        let before = rows(&home);
        let mut child = home
            .command(["scan", "--redact", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hookbus runs");
        let started = Instant::now();
        let mut sent = 0;
        if pause == 0 {
            assert!(child.wait().expect("an end").success());
            whole = started.elapsed();
        } else {
            let mut client = home
                .command(["hook", "hermes"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .expect("a client");
            std::io::Write::write_all(
                &mut client.stdin.take().expect("stdin"),
                with_secrets(3).1.to_string().as_bytes(),
            )
            .expect("an event");
            sent = 1;
            sleep((whole * pause / 9).saturating_sub(started.elapsed()));
            child.kill().expect("a signal");
            killed += usize::from(child.wait().expect("an end").signal().is_some());
            assert!(client.wait().expect("an end").success());
        }
        check_rest(&before, &rows(&home));
        assert!(home.is_sound(), "{pause}");
        redact(&home);
        let now = rows(&home);
        check_rest(&before, &now);
        assert_eq!(
            now.iter().filter(|row| row.agent == "hermes" && row.kind != "decision").count(),
            250 + sent
        );
        assert!(home.is_sound(), "{pause}");
        fs::remove_dir_all(home.path().join("spool")).unwrap_or_default();
        assert_eq!(files_with_secrets(&home.path()), [""; 0], "{pause}");
    }
    assert!(killed > 0, "it was never killed");
}

/// Nothing is lost, and what is not redacted is what it was.
fn check_rest(before: &[Row], now: &[Row]) {
    let now: HashMap<EventId, &Row> = now.iter().map(|row| (row.id, row)).collect();
    for was in before {
        let is = now.get(&was.id).expect("the row is there");
        assert_eq!((is.seq, is.hash), (was.seq, was.hash));
        if is.redaction.is_none() {
            assert_eq!(*is, was);
        }
    }
}
