//! Retention: `hookbus prune` removes what it is told and nothing else, gives the space back, leaves a record, and the
//! chain stays sound. What another program removes is still found.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hookbus::event::{Agent, EventId, payload_digest};
use hookbus::log::{LogPath, LogReader, Row, row_hash};
use hookbus_tests::home::Home;
use hookbus_tests::recording::{damage, query, record, record_after, rows};
use serde_json::{Value, json};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Three sessions in turn. Each event carries the messages before it, and all sessions have their beginning in common.
fn of_three(index: usize) -> (Agent, Value) {
    let message = |at: usize, who: usize| {
        // Words that do not compress well.
        let word = |word: usize| {
            let mut word = hex(&payload_digest(format!("{at} {word} {who}").as_bytes()));
            word.truncate(16);
            word
        };
        let words: Vec<String> = (0..80).map(word).collect();
        json!({"role": "user", "content": words.join(" ")})
    };
    let (session, turn) = (index % 3, index / 3);
    let shared = (0..turn.min(5)).map(|at| message(at, 0));
    let own = (5..turn.max(5)).map(|at| message(at, session + 1));
    let payload = json!({
        "hook_event_name": "pre_llm_call", "session_id": format!("session-{session}"),
        "cwd": "/srv/shop",
        "extra": {"turn_id": turn, "conversation_history": shared.chain(own).collect::<Vec<_>>()},
    });
    (Agent::Hermes, payload)
}

/// Tool calls that a rule decides about, so that each has a decision.
fn decided(index: usize) -> (Agent, Value) {
    let payload = json!({
        "hook_event_name": "pre_tool_call", "session_id": format!("session-{}", index % 2),
        "tool_name": "terminal", "tool_input": {"command": format!("git push --force {index}")},
    });
    (Agent::Hermes, payload)
}

const NO_FORCE: &str = "hooks:\n  tool.before:\n    - { name: no-force, tool: shell, rule: { when: { command: force }, block: no } }\n";

fn of_session(rows: &[Row], session: &str) -> Vec<Row> {
    rows.iter().filter(|row| row.session == session).cloned().collect()
}

fn log_len(home: &Home) -> u64 {
    fs::metadata(home.path().join("log.db")).expect("a log").len()
}

fn parts(home: &Home) -> i64 {
    query(home, "SELECT count(*) FROM parts")[0]
}

/// What `verify` finds: whether it is sound, and how many payloads and rows were removed on purpose.
fn verified(home: &Home) -> (bool, u64, u64) {
    let output = home.run(&["verify", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let removed = |what: &str| report["removed"][what].as_u64().expect("a number");
    let is_sound = report["sound"] == true;
    assert!(is_sound == output.status.success(), "{report}");
    (is_sound, removed("payloads"), removed("rows"))
}

#[test]
fn payloads_of_a_session_go_and_others_that_share_parts_stay() {
    let home = Home::new();
    record(&home, 150, of_three);
    let (before, large, parts_before) = (rows(&home), log_len(&home), parts(&home));
    let plan = home.json(&["prune", "--session", "session-0", "--dry-run", "--json"]);
    assert_eq!((&plan["events"], &plan["sessions"]), (&json!(50), &json!(1)), "{plan}");
    assert_eq!(rows(&home), before);
    let refused = home.run(&["prune", "--session", "session-0"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"), "{refused:?}");
    let done = home.json(&["prune", "--session", "session-0", "--yes", "--json"]);
    assert_eq!(done["payloads"], 50, "{done}");
    let after = rows(&home);
    for other in ["session-1", "session-2"] {
        assert_eq!(of_session(&after, other), of_session(&before, other));
    }
    let gone = of_session(&after, "session-0");
    for (was, is) in of_session(&before, "session-0").iter().zip(&gone) {
        assert_eq!(is.removed, Some(was.payload_digest()));
        assert_eq!((is.payload.as_slice(), is.hash, is.id), (&b""[..], was.hash, was.id));
    }
    assert_eq!(gone.len(), 50);
    assert!(parts(&home) < parts_before * 3 / 4, "{} {parts_before}", parts(&home));
    assert!(log_len(&home) < large * 9 / 10, "{} {large}", log_len(&home));
    assert_eq!(verified(&home), (true, 50, 0));
    let shown = home.text(&["log", "--session", "session-0"]);
    assert!(shown.lines().all(|line| line.contains("(payload removed)")), "{shown}");
    let json = home.log(&["--session", "session-0", "-n", "1"]);
    assert_eq!((&json[0]["removed"], &json[0]["payload"]), (&json!(true), &Value::Null));
    // A second run is a no-op.
    let head = rows(&home).len();
    let again = home.json(&["prune", "--session", "session-0", "--yes", "--json"]);
    assert_eq!((&again["payloads"], rows(&home).len()), (&json!(0), head));
}

#[test]
fn rows_go_by_age_with_their_decisions_and_the_chain_stays_verifiable_over_the_cut() {
    let home = Home::with_hooks(NO_FORCE);
    record(&home, 60, decided);
    let before = rows(&home);
    assert!(before.iter().filter(|row| row.kind == "decision").count() >= 60);
    let middle = before.iter().filter(|row| row.kind == "tool.before").nth(30).expect("a row");
    let age = middle.at.to_string();
    // The session that was active last stays, unless it is named.
    let done = home.json(&["prune", "--older-than", &age, "--rows", "--yes", "--json"]);
    assert_eq!((&done["rows"], &done["latest"]), (&json!(30), &json!("session-1")), "{done}");
    let done = home.json(&[
        "prune",
        "--older-than",
        &age,
        "--session",
        "session-1",
        "--rows",
        "--yes",
        "--json",
    ]);
    assert_eq!(done["rows"], 30, "{done}");
    let after = rows(&home);
    let is_old = |row: &Row| row.agent == "hermes" && row.id < middle.id;
    let expected: Vec<Row> = before.iter().filter(|row| !is_old(row)).cloned().collect();
    assert_eq!(after[..expected.len()], expected[..]);
    assert_eq!(verified(&home), (true, 0, 60));
    assert!(home.text(&["verify"]).contains("60 rows removed on purpose"));
    let gone = before.iter().find(|row| is_old(row)).expect("a row").seq.to_string();
    let asked = home.run(&["log", "--seq", &gone]);
    assert!(String::from_utf8_lossy(&asked.stderr).contains("removed on purpose"), "{asked:?}");
    // The chain goes on, and more can be removed beside the cut.
    record_after(&home, 60, 4, decided);
    let done = home.json(&["prune", "--kind", "tool.*", "--rows", "--yes", "--json"]);
    assert!(done["rows"].as_u64() > Some(30), "{done}");
    assert!(verified(&home).0);
}

#[test]
fn a_held_session_stays_until_it_is_released() {
    let home = Home::new();
    record(&home, 30, of_three);
    home.text(&["hold", "session-0", "--note", "case 12"]);
    assert!(home.text(&["hold", "--list"]).contains("case 12"));
    let before = rows(&home);
    let said = home.text(&["prune", "--agent", "hermes", "--rows", "--yes"]);
    assert!(said.contains("session session-0 is held and stays"), "{said}");
    let after = rows(&home);
    assert_eq!(of_session(&after, "session-0"), of_session(&before, "session-0"));
    assert_eq!(of_session(&after, "session-1"), []);
    assert_eq!(of_session(&after, "session-2"), of_session(&before, "session-2"), "the latest");
    home.text(&["hold", "--release", "session-0"]);
    assert_eq!(home.json(&["hold", "--list", "--json"])["holds"], json!([]));
    let done = home.json(&["prune", "--session", "session-0", "--rows", "--yes", "--json"]);
    assert_eq!(done["rows"], 10, "{done}");
    assert_eq!(verified(&home), (true, 0, 20));
}

#[test]
fn the_oldest_payloads_go_until_the_log_fits() {
    let home = Home::new();
    record(&home, 150, of_three);
    let before = rows(&home);
    home.answer("hermes", &json!({"hook_event_name": "on_session_start", "session_id": "new"}));
    let most = log_len(&home) * 3 / 4;
    let done = home.json(&["prune", "--max-size", &most.to_string(), "--yes", "--json"]);
    assert!(done["payloads"].as_u64() > Some(0), "{done}");
    assert!(log_len(&home) <= most + 8192, "{} {most}", log_len(&home));
    let after = rows(&home);
    let removed: Vec<bool> =
        after.iter().filter(|row| row.agent == "hermes").map(|row| row.removed.is_some()).collect();
    let first_kept = removed.iter().position(|it| !it).expect("some stay");
    assert!(removed[first_kept..].iter().all(|it| !it), "the oldest go first: {removed:?}");
    for (was, is) in before.iter().zip(&after).filter(|(_, is)| is.removed.is_none()) {
        assert_eq!(was, is);
    }
    assert!(verified(&home).0);
}

#[test]
fn what_another_program_removes_is_still_found() {
    for (prune, statements) in [
        // A row that is deleted by hand.
        (None, &["DELETE FROM events WHERE seq = 5"][..]),
        // A payload, with its digest, but without a record.
        (None, &["UPDATE events SET payload = '{}', packed = NULL, digest = x'00' WHERE seq = 5"]),
        // A row beside those that were removed on purpose.
        (Some("--rows"), &["DELETE FROM events WHERE seq = 12"]),
        // The table is made to name it.
        (
            Some("--rows"),
            &[
                "INSERT INTO removed SELECT 12, 12, hash, (SELECT max(record) FROM removed) FROM events WHERE seq = 12",
                "DELETE FROM events WHERE seq = 12",
            ],
        ),
        (
            Some("--rows"),
            &[
                "INSERT INTO removed SELECT 12, 12, hash, 13 FROM events WHERE seq = 12",
                "DELETE FROM events WHERE seq = 12",
            ],
        ),
        // The hash of a range is changed, or the range is forgotten.
        (
            Some("--rows"),
            &["UPDATE removed SET hash = x'00' WHERE first = (SELECT min(first) FROM removed)"],
        ),
        (Some("--rows"), &["DELETE FROM removed WHERE first = (SELECT min(first) FROM removed)"]),
        // A record is changed.
        (
            Some("--payloads"),
            &[
                "UPDATE events SET payload = '{}' WHERE kind = 'log.pruned' AND payload LIKE '%seqs%'",
            ],
        ),
    ] {
        let home = Home::new();
        record(&home, 30, of_three);
        if let Some(strength) = prune {
            home.text(&["prune", "--session", "session-0", strength, "--yes"]);
        }
        assert!(verified(&home).0);
        damage(&home, statements);
        home.run(&["verify", "--repair"]);
        assert!(!verified(&home).0, "{prune:?} {statements:?}");
    }
}

/// What follows from the parts of a row that its hash covers is compared without its payload too.
#[test]
fn columns_of_a_row_without_payload_that_do_not_need_it_are_compared() {
    let home = Home::with_hooks(NO_FORCE);
    record(&home, 8, decided);
    home.text(&["prune", "--session", "session-0", "--yes"]);
    assert!(verified(&home).0);
    let of_event = rows(&home).into_iter().find(|row| row.removed.is_some()).expect("a row").seq;
    damage(&home, &[&format!("UPDATE events SET kind = 'model.before' WHERE seq = {of_event}")]);
    let report: Value =
        serde_json::from_slice(&home.run(&["verify", "--json"]).stdout).expect("JSON");
    let flaws = report["flaws"].as_array().expect("flaws");
    let is_told = |flaw: &&Value| flaw["kind"] == "derived" && flaw["seq"] == of_event.as_i64();
    assert!(flaws.iter().any(|flaw| is_told(&flaw)), "{report}");
    home.text(&["verify", "--repair"]);
    assert!(verified(&home).0);
    assert_eq!(
        rows(&home).into_iter().find(|row| row.seq == of_event).expect("a row").kind,
        "tool.before"
    );
}

/// Changes the first row and computes its hash again, as a forger would. Without the rows after it, only the record of
/// their removal shows it.
#[test]
fn a_row_before_a_cut_cannot_be_replaced() {
    let home = Home::new();
    record(&home, 30, of_three);
    home.text(&["prune", "--session", "session-1", "--rows", "--yes"]);
    let log = LogReader::open(&LogPath::in_home(&home.path())).expect("a log");
    let first = rows(&home).into_iter().find(|row| row.session == "session-0").expect("a row");
    assert_eq!(query(&home, "SELECT min(first) FROM removed"), [first.seq.as_i64() + 1]);
    let before = rows(&home).into_iter().rfind(|row| row.seq < first.seq).map(|row| row.hash);
    let bus = log.bus().expect("a bus");
    let payload = r#"{"hook_event_name":"pre_llm_call","session_id":"session-0"}"#;
    let digest = payload_digest(payload.as_bytes());
    let hash = row_hash(bus, before.as_ref(), &first, &digest);
    let hash = hex(&hash);
    damage(
        &home,
        &[&format!(
            "UPDATE events SET payload = '{payload}', packed = NULL, hash = x'{hash}' WHERE seq = {}",
            first.seq
        )],
    );
    home.run(&["verify", "--repair"]);
    assert!(!verified(&home).0);
}

#[test]
fn pruning_can_be_killed_at_any_moment() {
    let home = Home::with_hooks(NO_FORCE);
    record(&home, 1600, |index| if index % 4 == 3 { decided(index) } else { of_three(index % 90) });
    let copy = home.work().join("full.db");
    home.text(&["backup", copy.to_str().expect("a path")]);
    let before = rows(&home);
    let by_id: HashMap<EventId, &Row> = before.iter().map(|row| (row.id, row)).collect();
    let mut killed = 0;
    // How long it takes if it is let alone, so that it is killed at moments all over its work.
    let mut whole = Duration::ZERO;
    for pause in 0..26_u32 {
        for name in ["log.db", "log.db-wal", "log.db-shm"] {
            fs::remove_file(home.path().join(name)).unwrap_or_default();
        }
        fs::copy(&copy, home.path().join("log.db")).expect("the whole log");
        let strength = if pause % 2 == 0 { "--payloads" } else { "--rows" };
        let arguments = ["prune", "--session", "session-0", strength, "--yes"];
        let mut child: Child = home
            .command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hookbus runs");
        if pause == 0 {
            let started = Instant::now();
            assert!(child.wait().expect("an end").success());
            whole = started.elapsed();
        } else {
            sleep(whole * pause / 26);
            child.kill().expect("a signal");
            killed += usize::from(child.wait().expect("an end").signal().is_some());
        }
        let now = rows(&home);
        check_rest(&now, &by_id);
        assert!(home.is_sound(), "{pause}");
        // Started again, it removes the rest. If all rows are gone, there is no such session.
        let again = home.run(&arguments);
        let now = rows(&home);
        check_rest(&now, &by_id);
        let is_gone = |row: &Row| row.session != "session-0" || row.removed.is_some();
        assert!(now.iter().all(is_gone), "{pause} {again:?}");
        assert!(home.is_sound(), "{pause}");
    }
    assert!(killed > 0, "it was never killed");
}

/// What is still there is what it was, and nothing is gone that was not selected.
fn check_rest(now: &[Row], before: &HashMap<EventId, &Row>) {
    let is_there: HashMap<EventId, &Row> = now.iter().map(|row| (row.id, row)).collect();
    for (id, was) in before {
        match is_there.get(id) {
            Some(row) if row.removed.is_none() => assert_eq!(row, was),
            Some(_) | None => assert_eq!(was.session, "session-0"),
        }
    }
}

#[test]
fn a_daemon_goes_on_while_the_log_is_pruned() {
    let home = Home::new();
    record(&home, 600, |index| of_three(index % 300));
    let daemon = home.serve();
    let mut pruning = Vec::new();
    let mut sent = Vec::new();
    for index in 0..60 {
        if index % 10 == 0 {
            let session = format!("session-{}", index / 10 % 3);
            pruning.extend(pruning_of(&home, &session));
        }
        // The same history again: its parts may be deleted at this moment.
        let (_, mut payload) = of_three(297 + index % 3);
        payload["session_id"] = json!("live");
        payload["extra"]["nth"] = json!(index);
        home.answer("hermes", &payload);
        sent.push(payload.to_string());
    }
    for mut child in pruning {
        assert!(child.wait().expect("an end").success());
    }
    let live = of_session(&rows(&home), "live");
    let read: Vec<String> =
        live.into_iter().map(|row| String::from_utf8(row.payload).expect("text")).collect();
    assert_eq!(read, sent);
    drop(daemon);
    assert!(home.is_sound());
}

fn pruning_of(home: &Home, session: &str) -> Option<Child> {
    let arguments = ["prune", "--session", session, "--yes"];
    home.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

#[test]
fn archives_exports_and_replays_know_that_a_payload_was_removed() {
    let home = Home::with_hooks(NO_FORCE);
    record(&home, 20, decided);
    let archive = home.work().join("archive");
    let archive = archive.to_str().expect("a path");
    let file = home.work().join("all.jsonl");
    let file = file.to_str().expect("a path");
    home.text(&["export", "-o", file]);
    home.text(&["import", file, "--into", archive]);
    home.text(&["prune", "--session", "session-0", "--yes"]);
    home.text(&["prune", "--session", "session-1", "--rows", "--yes"]);
    // The archive still has what was removed, which is no flaw.
    let against = home.json(&["verify", "--against", archive, "--json"]);
    assert_eq!(against["sound"], true, "{against}");
    let report = home.run(&["replay", "--all", "--yes"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("its payload was removed"), "{report}");
    // What is exported now says that the payloads are gone, and can be imported elsewhere.
    let later = home.work().join("later.jsonl");
    let later = later.to_str().expect("a path");
    home.text(&["export", "-o", later]);
    let text = fs::read_to_string(later).expect("an export");
    assert!(text.lines().any(|line| line.contains(r#""dataremoved":true"#)), "{text}");
    let other = home.work().join("other");
    let other = other.to_str().expect("a path");
    home.text(&["import", later, "--into", other]);
    assert!(home.run(&["--home", other, "verify"]).status.success());
    let removed = home.text(&["--home", other, "log", "--session", "session-0"]);
    assert!(removed.contains("(payload removed)"), "{removed}");
    // The rows that the first archive has are those that come again: it keeps its payloads.
    home.text(&["import", later, "--into", archive]);
    let kept = home.text(&["--home", archive, "log", "--session", "session-0"]);
    assert!(!kept.contains("(payload removed)"), "{kept}");
    let refused = home.run(&["--home", archive, "prune", "--agent", "hermes", "--yes"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("archive"), "{refused:?}");
}
