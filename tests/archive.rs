//! The archive observer: one log with the events of many buses, which can be queried and verified like the
//! original logs.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::{self, hermes_shell};
use serde_json::Value;

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";
const KEEP: &str = "hooks:\n  \"*\":\n    - {name: keep, mode: observe, archive: .}\n";

fn bus_on(server: &NatsServer) -> Home {
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{GUARD}", server.url()));
    home
}

/// The rows of a log, with the seq that they have on their own bus.
fn rows(home: &Home, filters: &[&str]) -> Vec<Value> {
    let mut rows = home.log(filters);
    for row in &mut rows {
        let fields = row.as_object_mut().expect("a row");
        let seq = fields.remove("bus_seq").unwrap_or_else(|| fields["seq"].clone());
        fields.insert("seq".to_owned(), seq);
        fields.remove("bus");
        fields.remove("cause");
    }
    rows
}

fn bus_of(home: &Home) -> String {
    home.json(&["verify", "--json"])["bus"].as_str().expect("a bus").to_owned()
}

fn sql(home: &Home, statement: &str) {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.close()";
    let done = Command::new("python3")
        .args(["-c", script])
        .arg(home.path().join("log.db"))
        .arg(statement)
        .status();
    assert!(done.expect("python runs").success());
}

#[test]
fn an_archive_holds_many_buses_and_can_be_verified() {
    let server = NatsServer::start();
    let buses = [bus_on(&server), bus_on(&server)];
    let _daemons: Vec<_> = buses.iter().map(Home::serve).collect();
    let archive_home = Home::new();
    archive_home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{KEEP}", server.url()));
    for (round, (agent, _, bytes)) in payloads::all().iter().enumerate() {
        buses[round % 2].hook(agent, bytes);
    }
    let mut large = hermes_shell("rm large");
    large["extra"]["filler"] = "x".repeat(3 << 20).into();
    for (round, home) in buses.iter().enumerate() {
        home.hook("hermes", b"\xff not text");
        home.answer("hermes", &hermes_shell(&format!("rm {round}")));
        home.answer("hermes", &large);
    }
    let total: usize = buses.iter().map(|home| home.log(&[]).len()).sum();
    wait_until("all rows are archived", || {
        archive_home.text(&["observe", "keep", "--drain"]);
        archive_home.log(&[]).len() == total
    });
    for home in &buses {
        let bus = bus_of(home);
        assert_eq!(rows(&archive_home, &["--bus", &bus[..20]]), rows(home, &[]));
        let raw = |home: &Home, seq: &Value| {
            home.run(&["log", "--seq", &seq.to_string(), "--raw"]).stdout
        };
        for row in archive_home.log(&["--bus", &bus]) {
            assert_eq!(
                raw(&archive_home, &row["seq"]),
                raw(home, &row["bus_seq"]),
                "byte for byte"
            );
        }
    }
    // In the archive, too, decisions point at their events.
    for decision in archive_home.log(&["--kind", "decision"]) {
        let cause = archive_home.log(&["--seq", &decision["cause"].to_string()]);
        assert_eq!(cause[0]["session"], decision["session"]);
    }
    let verified = archive_home.json(&["verify", "--json"]);
    assert_eq!(
        (verified["sound"].as_bool(), verified["buses"].as_array().map(Vec::len)),
        (Some(true), Some(2))
    );
    let heads = |home: &Home| home.json(&["verify", "--json"])["head"]["hash"].clone();
    for home in &buses {
        let found = verified["buses"].as_array().into_iter().flatten();
        assert!(found.into_iter().any(|bus| bus["head"]["hash"] == heads(home)));
    }
    let session = hermes_shell("")["session_id"].as_str().expect("a session").to_owned();
    assert!(archive_home.text(&["show", &session]).contains("rm 1"));
    assert!(archive_home.text(&["sessions"]).contains(&session));
    // An event of this machine is not added to the archive, but spooled.
    archive_home.answer("hermes", &hermes_shell("rm own"));
    assert_eq!(archive_home.log(&[]).len(), total);
    assert!(archive_home.path().join("spool").exists());
}

#[test]
fn verify_finds_a_row_that_was_changed_in_the_archive() {
    let home = Home::with_daemon("running");
    home.write_hooks(&KEEP.replace("archive: .", "archive: ../archive"));
    for round in 0..5 {
        home.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    home.text(&["observe", "keep", "--drain"]);
    let archived = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("HOOKBUS_HOME", home.path().join("../archive")).output().expect("hookbus runs")
    };
    assert!(archived(&["verify"]).status.success());
    // Events that are delivered a second time are skipped.
    fs::remove_dir_all(home.path().join("observers")).expect("ours");
    home.text(&["observe", "keep", "--drain"]);
    let listed = String::from_utf8(archived(&["log", "--json"]).stdout).expect("text");
    assert_eq!(listed.lines().count(), 6);
    let archive = home.path().join("../archive/log.db");
    change_archive(&archive, "UPDATE events SET payload = '{}' WHERE seq = 3");
    let verified = archived(&["verify"]);
    assert!(!verified.status.success());
    assert!(String::from_utf8_lossy(&verified.stdout).contains("seq 3"), "{verified:?}");
}

fn change_archive(file: &Path, statement: &str) {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript('DROP TRIGGER events_are_never_changed; ' + sys.argv[2]); db.close()";
    let done = Command::new("python3").args(["-c", script]).arg(file).arg(statement).status();
    assert!(done.expect("python runs").success());
}

/// A log that was restored from a backup and written on has rows that differ from those in the archive. They
/// become dead letters, so that the user can see them.
#[test]
fn rows_that_differ_from_the_archive_become_dead_letters() {
    let home = Home::with_daemon("running");
    home.write_hooks(&KEEP.replace("archive: .", "archive: ../archive, tries: 1"));
    for round in 0..3 {
        home.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    home.text(&["observe", "keep", "--drain"]);
    sql(
        &home,
        "PRAGMA wal_checkpoint(TRUNCATE); DROP TRIGGER events_are_never_deleted; DELETE FROM events WHERE seq > 3",
    );
    home.answer("hermes", &hermes_shell("echo another"));
    fs::remove_dir_all(home.path().join("observers")).expect("ours");
    let summary = home.json(&["observe", "keep", "--drain", "--from", "start", "--json"]);
    assert_eq!(summary["set_aside"], 1);
    let dead = home.run(&["dead", "list", "--json"]);
    let dead: Value = serde_json::from_slice(&dead.stdout).expect("one dead letter");
    assert!(dead["error"].as_str().expect("an error").contains("restored from an older copy"));
}

#[test]
fn the_log_of_a_bus_cannot_become_an_archive() {
    let home = Home::with_hooks(&KEEP.replace("archive: .", "archive: ., tries: 1"));
    home.answer("hermes", &hermes_shell("echo 1"));
    let observed = home.run(&["observe", "keep", "--drain"]);
    assert_eq!(observed.status.code(), Some(1));
    let error = String::from_utf8_lossy(&observed.stderr).into_owned();
    assert!(error.contains("choose another directory"), "{error}");
    assert_eq!(home.text(&["dead", "list"]), "no dead letters\n", "the event is not to blame");
    assert!(home.is_sound());
}
