//! The archive: one log put together from many buses, elsewhere, that can be asked and verified like
//! the originals.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

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

/// The rows of a log as they are, without where they stand in it.
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
fn many_buses_become_one_verifiable_log() {
    let server = NatsServer::start();
    let buses = [bus_on(&server), bus_on(&server)];
    let _daemons: Vec<_> = buses.iter().map(Home::serve).collect();
    let keeper = Home::new();
    keeper.write_hooks(&format!("nats: {{url: \"{}\"}}\n{KEEP}", server.url()));
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
    let whole: usize = buses.iter().map(|home| home.log(&[]).len()).sum();
    wait_until("everything is kept", || {
        keeper.text(&["observe", "keep", "--drain"]);
        keeper.log(&[]).len() == whole
    });
    for home in &buses {
        let bus = bus_of(home);
        assert_eq!(rows(&keeper, &["--bus", &bus[..20]]), rows(home, &[]));
        let raw = |home: &Home, seq: &Value| {
            home.run(&["log", "--seq", &seq.to_string(), "--raw"]).stdout
        };
        for row in keeper.log(&["--bus", &bus]) {
            assert_eq!(raw(&keeper, &row["seq"]), raw(home, &row["bus_seq"]), "byte for byte");
        }
    }
    // Decisions point at their events here, too.
    for decision in keeper.log(&["--kind", "decision"]) {
        let cause = keeper.log(&["--seq", &decision["cause"].to_string()]);
        assert_eq!(cause[0]["session"], decision["session"]);
    }
    let verified = keeper.json(&["verify", "--json"]);
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
    assert!(keeper.text(&["show", &session]).contains("rm 1"));
    assert!(keeper.text(&["sessions"]).contains(&session));
    // Nothing of its own may be mixed in.
    keeper.answer("hermes", &hermes_shell("rm own"));
    assert_eq!(keeper.log(&[]).len(), whole);
    assert!(keeper.path().join("spool").exists());
}

#[test]
fn an_archive_tells_what_was_changed() {
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
    // At least once: what comes again is passed over.
    fs::remove_dir_all(home.path().join("observers")).expect("ours");
    home.text(&["observe", "keep", "--drain"]);
    let listed = String::from_utf8(archived(&["log", "--json"]).stdout).expect("text");
    assert_eq!(listed.lines().count(), 6);
    let archive = home.path().join("../archive/log.db");
    change(&archive, "UPDATE events SET payload = '{}' WHERE seq = 3");
    let told = archived(&["verify"]);
    assert!(!told.status.success());
    assert!(String::from_utf8_lossy(&told.stdout).contains("seq 3"), "{told:?}");
}

fn change(file: &Path, statement: &str) {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript('DROP TRIGGER events_are_never_changed; ' + sys.argv[2]); db.close()";
    let done = Command::new("python3").args(["-c", script]).arg(file).arg(statement).status();
    assert!(done.expect("python runs").success());
}

/// A log that was put back to an older state and written on has another history: it is not mixed
/// into the archive, and a person can see which events those are.
#[test]
fn another_history_is_set_aside() {
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
    let told = home.json(&["observe", "keep", "--drain", "--from", "start", "--json"]);
    assert_eq!(told["set_aside"], 1);
    let dead = home.run(&["dead", "list", "--json"]);
    let dead: Value = serde_json::from_slice(&dead.stdout).expect("one dead letter");
    assert!(dead["error"].as_str().expect("an error").contains("restored from an older copy"));
}

/// The directory of a log that events are appended to cannot become an archive.
#[test]
fn a_log_in_use_is_no_archive() {
    let home = Home::with_hooks(&KEEP.replace("archive: .", "archive: ., tries: 1"));
    home.answer("hermes", &hermes_shell("echo 1"));
    let told = home.run(&["observe", "keep", "--drain"]);
    assert_eq!(told.status.code(), Some(1));
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(said.contains("choose another directory"), "{said}");
    assert_eq!(home.text(&["dead", "list"]), "nothing was set aside\n", "no event's fault");
    assert!(home.is_sound());
}
