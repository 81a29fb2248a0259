//! The archive observer: one log with the events of many buses, which can be queried and verified like the
//! original logs.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use hookbus::envelope;
use hookbus::event::{BusId, Seq, payload_digest, subject};
use hookbus::log::{Received, row_hash};
use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::{self, hermes_shell};
use serde_json::{Value, json};

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
    assert!(archive_home.text(&["sessions", "--json"]).contains(&session));
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

/// Each forged row is made from the last one of the bus, which the archive holds.
#[test]
fn forged_rows_enter_no_archive_and_stop_none() {
    let server = NatsServer::start();
    let bus = bus_on(&server);
    let _daemon = bus.serve();
    let archive_home = Home::new();
    archive_home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{KEEP}", server.url()));
    let archived = |rows: usize| {
        wait_until("all rows are archived", || {
            archive_home.text(&["observe", "keep", "--drain"]);
            archive_home.log(&[]).len() == rows
        });
    };
    for round in 0..5 {
        bus.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    archived(bus.log(&[]).len());
    let last = server.published().pop().expect("a message");
    let forged = |changes: &[(&str, Value)]| {
        let mut envelope = last.envelope();
        for (key, value) in changes {
            envelope[key] = value.clone();
        }
        (last.subject.clone(), envelope.to_string().into_bytes())
    };
    let id = json!("01a1e357-920d-7e19-bab5-6636f7000000");
    server.forge([
        forged(&[("data", json!({"forged": true})), ("hash", json!("1".repeat(64)))]),
        forged(&[("seq", json!(last.seq + 1)), ("id", id)]),
        forged(&[("seq", json!(last.seq + 2))]),
    ]);
    for round in 5..10 {
        bus.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    archived(bus.log(&[]).len());
    assert_eq!(rows(&archive_home, &[]), rows(&bus, &[]));
    assert_eq!(archive_home.json(&["verify", "--json"])["sound"], true);
    let listed = archive_home.run(&["dead", "list", "--json"]);
    let listed = String::from_utf8(listed.stdout).expect("text");
    let errors: Vec<&str> = listed.lines().collect();
    assert_eq!(errors.len(), 3, "{listed}");
    assert!(errors[0].contains("holds a different row"), "{listed}");
    assert!(errors[1].contains("does not follow from the row before it"), "{listed}");
    assert!(errors[2].contains("the id of another row"), "{listed}");
}

/// A person with the password of the server invents a bus, whose decisions are not JSON.
#[test]
fn a_forged_decision_does_not_hide_the_sessions_of_the_others() {
    let server = NatsServer::start();
    let bus = bus_on(&server);
    let _daemon = bus.serve();
    let archive_home = Home::new();
    archive_home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{KEEP}", server.url()));
    bus.answer("hermes", &hermes_shell("rm x"));
    wait_until("all rows are published", || server.published().len() == bus.log(&[]).len());
    let own = bus.log(&[]).len();
    let event = server.published().into_iter().find(|it| it.envelope()["agent"] == "hermes");
    let Received { mut row, .. } = envelope::read(&event.expect("an event").body).expect("a row");
    row.session = "forged".to_owned();
    let invented: BusId = "01a1e357-920d-7e19-bab5-6636f7000000".parse().expect("a bus");
    let mut before = None;
    for (seq, id, kind, payload) in [
        (1, "01a1e357-920d-7e19-bab5-6636f7000001", "tool.before", &b"{}"[..]),
        (2, "01a1e357-920d-7e19-bab5-6636f7000002", "decision", b"garbage{"),
        // SQLite could take these bytes for its binary form of JSON.
        (3, "01a1e357-920d-7e19-bab5-6636f7000003", "decision", b"\x7c\xff"),
    ] {
        (row.seq, row.id) = (Seq::from_i64(seq), id.parse().expect("an id"));
        (row.kind, row.payload) = (kind.to_owned(), payload.to_vec());
        row.cause = (kind == "decision").then_some(Seq::FIRST);
        row.hash = row_hash(invented, before.as_ref(), &row, &payload_digest(payload));
        before = Some(row.hash);
        let subject = subject(invented, &row.agent, &row.session, &row.name);
        server.forge([(subject, envelope::write(invented, &row, None))]);
    }
    wait_until("all rows are archived", || {
        archive_home.text(&["observe", "keep", "--drain"]);
        archive_home.log(&[]).len() == own + 3
    });
    let session = hermes_shell("")["session_id"].as_str().expect("a session").to_owned();
    let listed = archive_home.text(&["sessions", "--json"]);
    let blocked = |session: &str| {
        let sessions = listed.lines().map(serde_json::from_str::<Value>);
        let mut sessions = sessions.map(|line| line.expect("JSON"));
        sessions.find(|it| it["session"] == session).map(|it| it["blocked"].clone())
    };
    assert_eq!(
        (blocked(&session), blocked("forged")),
        (Some(json!(1)), Some(json!(0))),
        "{listed}"
    );
    archive_home.text(&["show", "last"]);
}

#[test]
fn an_import_refuses_rows_with_impossible_numbers_and_goes_on() {
    let home = Home::new();
    for round in 0..3 {
        home.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    let lines = home.text(&["export"]);
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let with_seq = |seq: i64| {
        let mut line = lines[0].clone();
        line["seq"] = json!(seq);
        line["id"] = json!("01a1e357-920d-7e19-bab5-6636f7000000");
        line.to_string()
    };
    let mut exported = vec![with_seq(i64::MAX), with_seq(0), with_seq(-5)];
    exported.extend(lines.iter().map(Value::to_string));
    // A start in the middle of another log, which cannot be judged.
    exported.push(with_seq((1 << 53) - 1).replace("urn:hookbus:0", "urn:hookbus:1"));
    let file = home.work().join("rows.jsonl");
    fs::write(&file, exported.join("\n")).expect("a file");
    let into = home.work().join("imported");
    let (file, into) = (file.to_string_lossy(), into.to_string_lossy());
    let imported = home.run(&["import", &file, "--into", &into, "--json"]);
    let imported: Value = serde_json::from_slice(&imported.stdout).expect("JSON");
    assert_eq!(imported["added"], lines.len() + 1, "{imported}");
    assert_eq!(imported["mistakes"].as_array().map(Vec::len), Some(3), "{imported}");
    let mut verify = home.command(["verify"]);
    let verified = verify.env("HOOKBUS_HOME", &*into).output().expect("hookbus runs");
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(text.contains("rows 1 to 9007199254740990 are missing"), "{text}");
}

/// An earlier version archived whatever number a row had.
#[test]
fn verify_of_an_archive_ends_whatever_seqs_it_holds() {
    let home = Home::with_daemon("running");
    home.write_hooks(&KEEP.replace("archive: .", "archive: ../archive"));
    for round in 0..3 {
        home.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    home.text(&["observe", "keep", "--drain"]);
    let file = home.path().join("../archive/log.db");
    change_archive(
        &file,
        "DROP TRIGGER origins_are_never_changed; \
         UPDATE origins SET bus_seq = 9223372036854775807 WHERE seq = 4",
    );
    let mut verify = home.command(["verify"]);
    let verified = verify.env("HOOKBUS_HOME", home.path().join("../archive")).output();
    let verified = verified.expect("hookbus runs");
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(text.contains("rows 4 to 9223372036854775806 are missing"), "{verified:?}");
}

/// A full disk is not the fault of an event: the archive goes on where it was when there is space again.
#[test]
fn an_archive_on_a_full_disk_waits_for_space() {
    let home = Home::with_daemon("running");
    home.write_hooks(&KEEP.replace("archive: .", "archive: ../archive, tries: 1"));
    home.answer("hermes", &hermes_shell("echo 0"));
    home.text(&["observe", "keep", "--drain"]);
    let mut large = hermes_shell("echo 1");
    // Letters that cannot be packed.
    let mut state: u64 = 1;
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + 1 + u8::try_from((state >> 33) % 57).expect("small"))
    });
    large["extra"]["filler"] = letters.take(800 << 10).collect::<String>().into();
    home.answer("hermes", &large);
    // Files of this process cannot grow over 300 kB.
    let observe = home.command(["observe", "keep", "--drain"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 600; exec \"$0\" \"$@\""]);
    limited.arg(observe.get_program()).args(observe.get_args());
    limited.envs(observe.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = limited.output().expect("sh runs");
    assert!(!ended.status.success(), "{ended:?}");
    assert_eq!(home.text(&["dead", "list"]), "no dead letters\n");
    home.text(&["observe", "keep", "--drain"]);
    let mut archived = home.command(["log", "--json"]);
    let archived = archived.env("HOOKBUS_HOME", home.path().join("../archive")).output();
    let archived = String::from_utf8(archived.expect("hookbus runs").stdout).expect("text");
    assert_eq!(archived.lines().count(), home.log(&[]).len());
}
