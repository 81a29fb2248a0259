//! `hookbus verify`: tells what happened to a log, compares it with what was kept elsewhere, and mends what can be
//! computed again.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use async_nats::HeaderMap;
use hookbus_tests::home::{Home, path_text, wait_until};
use hookbus_tests::nats::NatsServer as Nats;
use hookbus_tests::payloads::hermes_shell;
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// Moves rows to other numbers, in two steps, because two rows cannot have one number.
const RENUMBER: &str = "UPDATE events SET seq = -seq WHERE seq > {after}; UPDATE events SET seq = -seq + {by} WHERE seq < 0";

/// Changes a log with SQL, as an attacker would: without its triggers, which are put back afterwards.
fn tamper(file: &Path, sql: &str) {
    let program = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                   triggers = db.execute(\"SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'\").fetchall()\n\
                   for name, _ in triggers: db.execute('DROP TRIGGER ' + name)\n\
                   db.executescript(sys.argv[2])\n\
                   for _, sql in triggers: db.execute(sql)\n\
                   db.execute('PRAGMA wal_checkpoint(TRUNCATE)')";
    let status = Command::new("python3").args(["-c", program]).arg(file).arg(sql).status();
    assert!(status.expect("python3 runs").success(), "{sql}");
}

fn log_file(home: &Home) -> PathBuf {
    home.path().join("log.db")
}

/// A home with a log of ten events.
fn home_with_events() -> Home {
    let home = Home::new();
    for number in 1..=10 {
        home.answer("hermes", &hermes_shell(&format!("echo {number}")));
    }
    assert_eq!(home.json(&["verify", "--json"])["rows"], 10);
    home
}

/// A home with a log of six events and of what the daemon did, all of it published. The daemon has ended.
fn home_with_published_events(nats: &Nats) -> Home {
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{ url: \"{}\" }}\n", nats.url()));
    let mut daemon = home.serve();
    for number in 1..=6 {
        home.answer("hermes", &hermes_shell(&format!("echo {number}")));
    }
    wait_until("all rows are published", || {
        home.json(&["status", "--json"])["relay"]["lag_events"] == 0
    });
    daemon.kill();
    home
}

/// The flaws that `verify` finds: kind and seq.
fn flaws(home: &Home, arguments: &[&str]) -> Vec<(String, Option<i64>)> {
    let output = home.run(&[&["verify", "--json"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("verify prints JSON");
    let listed = report["flaws"].as_array().cloned().unwrap_or_default();
    assert_eq!(report["sound"].as_bool(), Some(output.status.success()), "{report}");
    let flaw =
        |flaw: &Value| (flaw["kind"].as_str().unwrap_or_default().to_owned(), flaw["seq"].as_i64());
    listed.iter().map(flaw).collect()
}

fn flaw(kind: &str, seq: i64) -> (String, Option<i64>) {
    (kind.to_owned(), Some(seq))
}

#[test]
fn verify_tells_altered_missing_inserted_and_reordered_rows_apart() {
    let renumber = |after: i64, by: i64| {
        RENUMBER.replace("{after}", &after.to_string()).replace("{by}", &by.to_string())
    };
    let copy_row = |from: i64, to: i64| {
        format!(
            "INSERT INTO events SELECT {to}, x'0000000000007000800000000000{to:02}00', time, agent, session, turn, name, kind, \
             tool, tool_class, cause, context, payload, hash, packed, digest, redacted, redacted_columns FROM events WHERE seq = {from}"
        )
    };
    let swap = |one: i64, other: i64| {
        format!(
            "UPDATE events SET seq = -1 WHERE seq = {one}; UPDATE events SET seq = {one} WHERE seq = {other}; \
             UPDATE events SET seq = {other} WHERE seq = -1"
        )
    };
    for (sql, expected) in [
        (
            "UPDATE events SET payload = replace(payload, 'echo 4', 'echo x') WHERE seq = 4"
                .to_owned(),
            vec![flaw("altered", 4)],
        ),
        (
            "UPDATE events SET context = '{}' WHERE seq IN (3, 7)".to_owned(),
            vec![flaw("altered", 3), flaw("altered", 7)],
        ),
        ("DELETE FROM events WHERE seq = 4".to_owned(), vec![flaw("missing", 4)]),
        (
            "DELETE FROM events WHERE seq IN (1, 5, 6)".to_owned(),
            vec![flaw("missing", 1), flaw("missing", 5)],
        ),
        // The gap is closed, so that no number is missing.
        (
            format!("DELETE FROM events WHERE seq IN (4, 5); {}", renumber(5, -2)),
            vec![flaw("missing", 4)],
        ),
        (format!("{}; {}", renumber(4, 1), copy_row(2, 5)), vec![flaw("inserted", 5)]),
        (
            format!("{}; {}; {}", renumber(4, 2), copy_row(2, 5), copy_row(3, 6)),
            vec![flaw("inserted", 5), flaw("inserted", 6)],
        ),
        (copy_row(2, 0), vec![flaw("inserted", 0)]),
        (swap(4, 5), vec![flaw("reordered", 4)]),
        (swap(9, 10), vec![flaw("reordered", 9)]),
        (
            "UPDATE events SET seq = 11 WHERE seq = 4".to_owned(),
            vec![flaw("missing", 4), flaw("reordered", 11)],
        ),
        (
            "UPDATE events SET seq = 9223372036854775807 WHERE seq = 10".to_owned(),
            vec![flaw("missing", 10)],
        ),
    ] {
        let home = home_with_events();
        tamper(&log_file(&home), &sql);
        assert_eq!(flaws(&home, &[]), expected, "{sql}");
    }
}

#[test]
fn verify_finds_derived_columns_that_do_not_follow_from_their_row_and_repair_mends_them() {
    for (sql, seq) in [
        // This hid every decision, and `verify` called the log sound.
        ("UPDATE events SET kind = 'other' WHERE kind = 'decision'", 3),
        ("UPDATE events SET kind = 'tool.before' WHERE kind = 'hooks.loaded'", 1),
        ("UPDATE events SET kind = 'decision' WHERE seq = 2", 2),
        ("UPDATE events SET session = 'elsewhere' WHERE seq = 2", 2),
        ("UPDATE events SET session = 'elsewhere' WHERE seq = 3", 3),
        ("UPDATE events SET tool = 'read_file' WHERE seq = 4", 4),
        ("UPDATE events SET tool_class = NULL WHERE seq = 4", 4),
        ("UPDATE events SET turn = 'another' WHERE seq = 4", 4),
    ] {
        let home = Home::with_hooks(GUARD);
        home.answer("hermes", &hermes_shell("rm x"));
        home.answer("hermes", &hermes_shell("ls"));
        let before = home.text(&["log", "--json"]);
        tamper(&log_file(&home), sql);
        assert_ne!(home.text(&["log", "--json"]), before);
        assert_eq!(flaws(&home, &[])[0], flaw("derived", seq), "{sql}");
        let text = home.run(&["verify"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains(&format!("derived, seq {seq}: ")), "{text}");
        let repaired = home.json(&["verify", "--repair", "--json"]);
        assert_eq!(repaired["sound"], true, "{sql}: {repaired}");
        let backup = repaired["repaired"]["backup"].as_str().expect("a backup").to_owned();
        assert!(Path::new(&backup).is_file());
        assert_eq!(home.text(&["log", "--json"]), before, "{sql}");
        // It is a log like before: events are appended, and nothing can be changed.
        home.answer("hermes", &hermes_shell("rm x"));
        assert!(home.is_sound());
        let update = "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute(\"UPDATE events SET kind = 'x'\")";
        let refused = Command::new("python3").args(["-c", update]).arg(log_file(&home)).output();
        assert!(!refused.expect("python3 runs").status.success());
    }
}

#[test]
fn values_with_the_hash_of_no_value_are_told_as_altered() {
    for (sql, seq) in [
        // This hid the last good hooks, and `verify` called the log sound.
        ("UPDATE events SET context = '' WHERE kind = 'hooks.loaded'", 1),
        ("UPDATE events SET cause = 0 WHERE seq = 2", 2),
    ] {
        let home = Home::with_hooks(GUARD);
        home.answer("hermes", &hermes_shell("rm x"));
        tamper(&log_file(&home), sql);
        assert_eq!(flaws(&home, &[]), [flaw("altered", seq)], "{sql}");
    }
}

/// The bytes, and so the hash, are the same. But SQL finds nothing in a text that was turned into a BLOB.
#[test]
fn a_value_that_was_turned_into_another_type_is_told_as_altered() {
    let turn = |column: &str, into: &str| {
        format!("UPDATE events SET {column} = CAST({column} AS {into}) WHERE seq = 1")
    };
    for (payload, into) in [("{}", "BLOB"), ("123", "INTEGER"), ("1.5", "REAL"), ("\u{0}", "TEXT")]
    {
        let home = Home::new();
        home.hook("hermes", payload);
        assert!(home.is_sound());
        tamper(&log_file(&home), &turn("payload", into));
        assert_eq!(flaws(&home, &[]), [flaw("altered", 1)], "{payload:?} as {into}");
    }
    // The other columns cannot have another type, unless the table is changed in between.
    let table = |sql: &str| {
        format!(
            "PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = {sql} WHERE type = 'table' AND name = 'events'; \
             PRAGMA writable_schema = RESET"
        )
    };
    let (lax, strict) = (table("replace(sql, ') STRICT', ')')"), table("sql || ' STRICT'"));
    let texts = ["agent", "session", "name", "kind", "tool", "tool_class", "context"];
    let texts = texts.map(|column| turn(column, "BLOB"));
    let bytes = ["id", "hash"].map(|column| turn(column, "TEXT"));
    let time = "UPDATE events SET time = CAST(CAST(time AS TEXT) AS BLOB)".to_owned();
    for sql in texts.into_iter().chain(bytes).chain([time]) {
        let home = Home::new();
        home.answer("hermes", &hermes_shell("ls"));
        tamper(&log_file(&home), &format!("{lax}; {sql}; {strict}"));
        let found = flaws(&home, &[]);
        assert!(found.contains(&flaw("altered", 1)), "{sql}: {found:?}");
    }
}

#[test]
fn a_session_that_the_payload_does_not_name_is_verified_too() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    let mut named = hermes_shell("ls");
    named["session_id"] = json!("s1");
    named["extra"] = json!({"task_id": "t1"});
    home.answer("hermes", &named);
    let mut unnamed = hermes_shell("ls");
    unnamed["session_id"] = json!("");
    unnamed["extra"] = json!({"task_id": "t1"});
    home.answer("hermes", &unnamed);
    let rows = home.log(&["--agent", "hermes"]);
    assert_eq!(rows[1]["session"], "s1", "found by its task");
    assert_eq!(rows[1]["context"]["session"], "s1");
    assert_eq!(rows[0]["context"].get("session"), None, "the payload names it");
    assert!(home.is_sound());
    let seq = rows[1]["seq"].as_i64().expect("a seq");
    let sql = format!("UPDATE events SET session = 's2' WHERE seq = {seq}");
    tamper(&log_file(&home), &sql);
    assert_eq!(flaws(&home, &[]), [flaw("derived", seq)]);
}

#[test]
fn a_changed_schema_is_found_and_missing_triggers_are_restored() {
    let home = home_with_events();
    let run = |sql: &str| {
        let program = "import sqlite3, sys\nsqlite3.connect(sys.argv[1], isolation_level=None).executescript(sys.argv[2])";
        let status =
            Command::new("python3").args(["-c", program]).arg(log_file(&home)).arg(sql).status();
        assert!(status.expect("python3 runs").success(), "{sql}");
    };
    run("DROP TRIGGER events_are_never_deleted");
    assert_eq!(flaws(&home, &[]), [("schema".to_owned(), None)]);
    assert_eq!(
        home.json(&["verify", "--repair", "--json"])["repaired"]["restored"],
        json!(["events_are_never_deleted"])
    );
    assert!(home.is_sound());
    run(
        "CREATE TRIGGER hide AFTER INSERT ON events WHEN NEW.kind = 'decision' BEGIN SELECT 1; END",
    );
    assert_eq!(flaws(&home, &[]), [("schema".to_owned(), None)]);
    // Which is removed, with other things that are none of ours; a changed one is put back.
    run("CREATE VIEW \"a \"\"view\" AS SELECT 1; CREATE INDEX slow ON events (payload); \
         DROP TRIGGER events_are_never_changed; \
         CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events BEGIN SELECT 1; END");
    assert_eq!(flaws(&home, &[]).len(), 4);
    let told = home.run(&["verify"]);
    let told = String::from_utf8_lossy(&told.stdout);
    assert!(told.contains("`hookbus verify --repair` removes it"), "{told}");
    assert!(!told.contains("\nsound:") && told.contains("the rows themselves are sound"), "{told}");
    let repaired = home.json(&["verify", "--repair", "--json"])["repaired"].clone();
    assert_eq!(repaired["removed"], json!(["trigger hide", "index slow", "view a \"view"]));
    assert_eq!(repaired["restored"], json!(["events_are_never_changed"]));
    assert!(home.is_sound());
}

#[test]
fn events_that_a_foreign_trigger_kept_out_are_in_the_log_after_a_repair() {
    for what in ["ABORT, 'no'", "IGNORE"] {
        let home = home_with_events();
        let trigger =
            format!("CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE({what}); END");
        tamper(&log_file(&home), &trigger);
        home.answer("hermes", &hermes_shell("kept out"));
        assert_eq!(home.log(&["--agent", "hermes"]).len(), 10, "{what}");
        let text = home.text(&["verify", "--repair"]);
        assert!(text.contains("removed trigger no") && !text.contains("nothing"), "{text}");
        home.answer("hermes", &hermes_shell("next"));
        assert_eq!(home.log(&["--agent", "hermes"]).len(), 12, "{what}");
        assert!(home.is_sound(), "{what}");
    }
}

#[test]
fn a_table_that_is_gone_is_told_with_what_to_do() {
    for table in ["events", "origins", "bus"] {
        let home = home_with_events();
        let program = "import sqlite3, sys\nsqlite3.connect(sys.argv[1], isolation_level=None).execute('DROP TABLE ' + sys.argv[2])";
        let mut python = Command::new("python3");
        python.args(["-c", program]).arg(log_file(&home)).arg(table);
        assert!(python.status().expect("python3 runs").success(), "{table}");
        let verified = home.run(&["verify"]);
        let told = String::from_utf8_lossy(&verified.stdout);
        assert_eq!(verified.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("the table {table} is missing")), "{told}");
        assert!(told.contains("restore log.db from a backup"), "{told}");
        let repair = home.run(&["verify", "--repair"]);
        assert!(String::from_utf8_lossy(&repair.stderr).contains("restore log.db"), "{repair:?}");
    }
}

#[test]
fn a_trigger_with_the_name_of_an_index_is_found_and_loses_no_event() {
    let home = home_with_events();
    let program = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                   index = db.execute(\"SELECT sql FROM sqlite_schema WHERE name = 'origins_by_place'\").fetchone()[0]\n\
                   db.execute('DROP INDEX origins_by_place')\n\
                   db.execute(\"CREATE TRIGGER origins_by_place BEFORE INSERT ON events \
                   WHEN NEW.payload LIKE '%secret%' BEGIN SELECT RAISE(IGNORE); END\")\n\
                   db.execute(index)";
    let status = Command::new("python3").args(["-c", program]).arg(log_file(&home)).status();
    assert!(status.expect("python3 runs").success());
    assert_eq!(flaws(&home, &[]), [("schema".to_owned(), None)]);
    home.answer("hermes", &hermes_shell("cat secret"));
    home.answer("hermes", &hermes_shell("echo 11"));
    let waiting = |count: u64| {
        let status = home.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        assert_eq!(status["spool"]["waiting"], count, "{status}");
    };
    waiting(1);
    assert_eq!(home.log(&["--agent", "hermes"]).len(), 11);
    let remove = "import sqlite3, sys\nsqlite3.connect(sys.argv[1], isolation_level=None).execute('DROP TRIGGER origins_by_place')";
    let status = Command::new("python3").args(["-c", remove]).arg(log_file(&home)).status();
    assert!(status.expect("python3 runs").success());
    home.answer("hermes", &hermes_shell("echo 12"));
    wait_until("the event is in the log", || home.log(&["--agent", "hermes"]).len() == 13);
    waiting(0);
    assert!(home.is_sound());
}

#[test]
fn a_saved_head_shows_a_cut_tail_a_rewritten_log_and_another_log() {
    let home = home_with_events();
    let head = path_text(&home.work().join("head.json"));
    let whole = path_text(&home.work().join("verified.json"));
    home.text(&["verify", "--save-head", &head]);
    fs::write(&whole, home.text(&["verify", "--json"])).expect("a file");
    for saved in [&head, &whole] {
        assert_eq!(flaws(&home, &["--against", saved]), []);
    }
    home.answer("hermes", &hermes_shell("more"));
    assert_eq!(flaws(&home, &["--against", &head]), [], "a longer log holds the same rows");
    let copy = home.work().join("copy.db");
    let into = format!("VACUUM INTO '{}'", copy.display());
    tamper(&log_file(&home), &into);
    tamper(&log_file(&home), "DELETE FROM events WHERE seq > 7");
    assert_eq!(flaws(&home, &[]), [], "the file alone does not show it");
    for kept in [&head, &whole, &path_text(&copy)] {
        assert_eq!(flaws(&home, &["--against", kept]), [flaw("truncated", 8)], "{kept}");
    }
    // It goes on as if nothing had happened, with other rows.
    for _ in 0..5 {
        home.answer("hermes", &hermes_shell("other"));
    }
    assert_eq!(flaws(&home, &["--against", &head]), [flaw("altered", 10)]);
    assert_eq!(flaws(&home, &["--against", &path_text(&copy)]), [flaw("altered", 8)]);
    // Another log in its place.
    let other = home_with_events();
    for kept in [&head, &path_text(&copy)] {
        assert_eq!(flaws(&other, &["--against", kept]), [("replaced".to_owned(), None)], "{kept}");
    }
    // One without any row.
    let empty = Home::new();
    empty.answer("hermes", &hermes_shell("ls"));
    tamper(&log_file(&empty), "DELETE FROM events");
    for kept in [&head, &path_text(&copy)] {
        assert_eq!(flaws(&empty, &["--against", kept]), [("replaced".to_owned(), None)], "{kept}");
    }
    let nothing = home.work().join("nothing.json");
    fs::write(&nothing, "{}").expect("a file");
    let refused = home.run(&["verify", "--against", &path_text(&nothing)]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--save-head"), "{refused:?}");
}

#[test]
fn an_archive_shows_a_cut_tail_and_a_row_with_a_huge_number_does_not_keep_verify_busy() {
    let home = home_with_events();
    let (exported, archive) = (home.work().join("all.jsonl"), home.work().join("archive"));
    fs::write(&exported, home.text(&["export"])).expect("a file");
    home.text(&["import", &path_text(&exported), "--into", &path_text(&archive)]);
    let archive_text = path_text(&archive);
    assert_eq!(flaws(&home, &["--against", &archive_text]), []);
    tamper(&log_file(&home), "DELETE FROM events WHERE seq > 4");
    assert_eq!(flaws(&home, &["--against", &archive_text]), [flaw("truncated", 5)]);
    // A forged row in the archive.
    tamper(
        &archive.join("log.db"),
        "INSERT INTO events SELECT 11, x'00000000000070008000000000000000', time, agent, session, turn, name, kind, tool, \
         tool_class, cause, context, payload, hash, packed, digest, redacted, redacted_columns FROM events WHERE seq = 10; \
         INSERT INTO origins SELECT 11, bus, 9000000000000000000, NULL FROM origins WHERE seq = 10",
    );
    let mut verify = home.command(["verify", "--json"]);
    let verified = verify.env("HOOKBUS_HOME", &archive).output().expect("hookbus runs");
    let report: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!(report["buses"][0]["gaps"], json!([[11, 8_999_999_999_999_999_999_i64]]));
}

#[test]
fn an_archive_without_the_rows_of_a_whole_bus_is_told() {
    let (home, other) = (home_with_events(), home_with_events());
    let archive = home.work().join("archive");
    for (source, name) in [(&home, "one.jsonl"), (&other, "other.jsonl")] {
        let exported = home.work().join(name);
        fs::write(&exported, source.text(&["export"])).expect("a file");
        home.text(&["import", &path_text(&exported), "--into", &path_text(&archive)]);
    }
    let (head, copy) = (home.work().join("head.json"), home.work().join("copy.db"));
    let in_archive = |arguments: &[&str]| {
        let mut verify = home.command(["verify", "--json"]);
        let output = verify.args(arguments).env("HOOKBUS_HOME", &archive).output();
        let output = output.expect("hookbus runs").stdout;
        serde_json::from_slice::<Value>(&output).expect("JSON")["flaws"].clone()
    };
    in_archive(&["--save-head", &path_text(&head)]);
    tamper(&archive.join("log.db"), &format!("VACUUM INTO '{}'", copy.display()));
    // A log of one of the buses is compared with an archive of both.
    assert_eq!(flaws(&home, &["--against", &path_text(&copy)]), []);
    tamper(
        &archive.join("log.db"),
        "DELETE FROM events WHERE seq > 10; DELETE FROM origins WHERE seq > 10",
    );
    for kept in [&head, &copy] {
        let found = in_archive(&["--against", &path_text(kept)]);
        assert_eq!(found[0]["kind"], "missing", "{found}");
    }
}

#[test]
fn rows_that_were_taken_out_of_an_archive_since_its_head_was_saved_are_told() {
    let home = home_with_events();
    let (exported, archive) = (home.work().join("all.jsonl"), home.work().join("archive"));
    // An archive that never had row 3.
    let lines = home.text(&["export"]);
    let lines: Vec<&str> =
        lines.lines().enumerate().filter(|it| it.0 != 2).map(|it| it.1).collect();
    fs::write(&exported, lines.join("\n")).expect("a file");
    home.text(&["import", &path_text(&exported), "--into", &path_text(&archive)]);
    let verify = |arguments: &[&str]| {
        let mut verify = home.command([&["verify"], arguments].concat());
        verify.env("HOOKBUS_HOME", &archive).output().expect("hookbus runs")
    };
    let (head, whole) = (home.work().join("head.json"), home.work().join("verified.json"));
    assert!(verify(&["--save-head", &path_text(&head)]).status.success());
    fs::write(&whole, verify(&["--json"]).stdout).expect("a file");
    let found = |kept: &Path| {
        let output = verify(&["--json", "--against", &path_text(kept)]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["sound"].as_bool(), Some(output.status.success()), "{report}");
        let flaws = report["buses"][0]["flaws"].as_array().cloned().unwrap_or_default();
        flaws.iter().map(|it| (it["kind"].clone(), it["seq"].clone())).collect::<Vec<_>>()
    };
    // Only the first gaps are saved, so the rest is known by the number of its rows.
    let counted = home.work().join("counted.json");
    let text = fs::read_to_string(&head).expect("our file");
    fs::write(&counted, text.replace("[[3,3]]", "[]")).expect("a file");
    for kept in [&head, &whole, &counted] {
        assert_eq!(found(kept), [], "a gap that was saved with the head is no loss");
    }
    for (seq, first) in [(7, 7), (8, 7), (2, 2)] {
        let sql = format!(
            "DELETE FROM events WHERE seq IN (SELECT seq FROM origins WHERE bus_seq = {seq}); \
             DELETE FROM origins WHERE bus_seq = {seq}"
        );
        tamper(&archive.join("log.db"), &sql);
        assert!(verify(&[]).status.success(), "the archive alone does not show it");
        for kept in [&head, &whole] {
            assert_eq!(found(kept), [(json!("missing"), json!(first))], "{seq}");
        }
        assert_eq!(found(&counted), [(json!("missing"), Value::Null)], "{seq}");
    }
}

#[test]
fn a_nats_stream_shows_a_cut_tail_and_a_swapped_log() {
    let nats = Nats::start();
    let home = home_with_published_events(&nats);
    let rows = home.log(&[]).len();
    assert_eq!(flaws(&home, &["--against", "nats"]), []);
    assert_eq!(flaws(&home, &["--against", &nats.url()]), []);
    tamper(&log_file(&home), "DELETE FROM events WHERE seq > 3");
    assert!(rows > 3);
    assert_eq!(flaws(&home, &["--against", "nats"]), [flaw("truncated", 4)]);
    let other = home_with_events();
    let replaced = flaws(&other, &["--against", &nats.url()]);
    assert_eq!(replaced, [("replaced".to_owned(), None)]);
}

/// A person with the password of the server wants the stream to say that nothing is missing.
#[test]
fn what_others_publish_on_the_subjects_of_a_bus_does_not_hide_a_cut_tail() {
    let nats = Nats::start();
    let home = home_with_published_events(&nats);
    let own = nats.published();
    let headers = |seq: i64, hash: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("Hookbus-Seq", seq.to_string());
        headers.insert("Hookbus-Hash", hash);
        headers
    };
    let (old, last) = (&own[1], own.last().expect("a row"));
    let copy = || (old.subject.clone(), headers(old.seq, &old.hash), old.body.clone());
    let mut changed = last.envelope();
    changed["hash"] = json!("0".repeat(64));
    let mut forged: Vec<_> = (0..300).map(|_| copy()).collect();
    forged.extend([
        // Garbage: without headers, and with those of the last row, of a later one and of none.
        (old.subject.clone(), HeaderMap::new(), b"garbage".to_vec()),
        (old.subject.clone(), headers(last.seq, &"0".repeat(64)), b"garbage".to_vec()),
        (old.subject.clone(), headers(last.seq + 5, &"0".repeat(64)), old.body.clone()),
        (old.subject.clone(), headers(i64::MAX, "x"), b"{}".to_vec()),
        (
            last.subject.clone(),
            headers(last.seq, &"0".repeat(64)),
            changed.to_string().into_bytes(),
        ),
        copy(),
    ]);
    nats.forge_with_headers(forged);
    assert_eq!(flaws(&home, &["--against", "nats"]), []);
    tamper(&log_file(&home), "DELETE FROM events WHERE seq > 3");
    assert_eq!(flaws(&home, &["--against", "nats"]), [flaw("truncated", 4)]);
}

#[test]
fn a_log_that_is_made_to_look_like_an_archive_does_not_pass_for_an_incomplete_one() {
    for origins in [
        "INSERT INTO origins SELECT seq, (SELECT id FROM bus), seq, NULL FROM events",
        "INSERT INTO origins SELECT seq, zeroblob(16), seq, NULL FROM events WHERE seq = 1",
    ] {
        let home = home_with_events();
        tamper(&log_file(&home), &format!("DELETE FROM events WHERE seq = 5; {origins}"));
        assert_eq!(flaws(&home, &[])[0].0, "altered", "{origins}");
    }
}

#[test]
fn rows_that_were_taken_out_of_a_log_in_the_shape_of_an_archive_are_missing() {
    let origins = "INSERT INTO origins SELECT seq, (SELECT id FROM bus), seq, cause FROM events; \
                   DELETE FROM events WHERE seq = 5; UPDATE bus SET id = zeroblob(16)";
    let home = home_with_events();
    let copy = home.work().join("copy.db");
    tamper(&log_file(&home), &format!("VACUUM INTO '{}'", copy.display()));
    tamper(&log_file(&home), origins);
    assert_eq!(flaws(&home, &[]), [flaw("missing", 5)]);
    tamper(&log_file(&home), "DELETE FROM origins WHERE seq = 5");
    assert_eq!(flaws(&home, &[]), [], "an archive may have gaps");
    let compared = home.run(&["verify", "--against", &path_text(&copy)]);
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(!compared.status.success() && text.contains("missing, seq 5: "), "{text}");
}

#[test]
fn a_log_without_the_one_id_of_its_bus_is_told() {
    for sql in
        ["DELETE FROM bus", "INSERT INTO bus SELECT zeroblob(16), 1", "UPDATE bus SET id = x'00'"]
    {
        let home = home_with_events();
        tamper(&log_file(&home), sql);
        let found = flaws(&home, &[]);
        assert!(found.contains(&("schema".to_owned(), None)), "{sql}: {found:?}");
        let text = home.run(&["verify"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains("exactly one id"), "{sql}: {text}");
    }
}

#[test]
fn statistics_for_the_query_planner_are_no_flaw() {
    let home = home_with_events();
    tamper(&log_file(&home), "ANALYZE");
    assert_eq!(flaws(&home, &[]), []);
}

#[test]
fn repair_refuses_while_a_reader_keeps_rows_out_of_the_copy() {
    let home = home_with_events();
    let program = "import sqlite3, sys\n\
                   reader = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                   reader.execute('BEGIN')\n\
                   reader.execute('SELECT count(*) FROM events').fetchone()\n\
                   writer = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                   writer.execute('DROP TRIGGER events_are_never_deleted')\n\
                   print('ready', flush=True)\n\
                   sys.stdin.read()";
    let mut reader = Command::new("python3")
        .args(["-c", program])
        .arg(log_file(&home))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut ready = String::new();
    let output = reader.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut ready).expect("a line");
    assert_eq!(ready.trim(), "ready");
    let refused = home.run(&["verify", "--repair"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("nothing was changed"), "{text}");
    drop(reader.stdin.take());
    assert!(reader.wait().expect("our child").success());
    assert_eq!(home.json(&["verify", "--repair", "--json"])["sound"], true);
}

/// The page at which a table or an index begins.
fn root_page(file: &Path, name: &str) -> u64 {
    let program = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n\
                   db.execute('PRAGMA wal_checkpoint(TRUNCATE)')\n\
                   print(db.execute('SELECT rootpage FROM sqlite_schema WHERE name = ?', (sys.argv[2],)).fetchone()[0])";
    let output = Command::new("python3").args(["-c", program]).arg(file).arg(name).output();
    let output = String::from_utf8(output.expect("python3 runs").stdout).expect("text");
    output.trim().parse().expect("a page")
}

fn overwrite_page(file: &Path, page: u64) {
    let open = fs::File::options().write(true).open(file).expect("the log");
    open.write_all_at(&[0x5a; 4096], (page - 1) * 4096).expect("it is written");
}

#[test]
fn a_damaged_index_is_told_from_a_damaged_table_and_repaired() {
    for name in ["events_by_session", "events_by_id", "hooks_loaded"] {
        let home = home_with_events();
        let before = home.text(&["log", "--json"]);
        let file = log_file(&home);
        overwrite_page(&file, root_page(&file, name));
        let found = flaws(&home, &[]);
        assert!(!found.is_empty(), "{name}");
        assert!(found.iter().all(|(kind, _)| kind == "index"), "{name}: {found:?}");
        let report = home.json(&["verify", "--repair", "--json"]);
        assert_eq!(
            (&report["sound"], &report["repaired"]["indexes"]),
            (&json!(true), &json!(true))
        );
        let backup = report["repaired"]["backup"].as_str().expect("a backup").to_owned();
        assert!(Path::new(&backup).is_file());
        assert_eq!(home.text(&["log", "--json"]), before);
        home.answer("hermes", &hermes_shell("after"));
        assert_eq!(home.log(&["--since", "1h"]).len(), 11);
        assert!(home.is_sound(), "{name}");
    }
}

#[test]
fn an_index_that_lacks_an_entry_is_repaired_while_a_daemon_runs() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    for number in 1..=10 {
        home.answer("hermes", &hermes_shell(&format!("echo {number}")));
    }
    // SQLite does not see the index while the row is changed.
    tamper(
        &log_file(&home),
        "PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = replace(sql, '(session)', '(turn)') WHERE name = 'events_by_session'; \
         PRAGMA writable_schema = RESET; UPDATE events SET session = 'x' WHERE seq = 3; \
         PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = replace(sql, '(turn)', '(session)') WHERE name = 'events_by_session'; \
         PRAGMA writable_schema = RESET",
    );
    let kinds: Vec<String> = flaws(&home, &[]).into_iter().map(|(kind, _)| kind).collect();
    assert!(
        kinds.contains(&"index".to_owned()) && kinds.contains(&"derived".to_owned()),
        "{kinds:?}"
    );
    assert_eq!(home.json(&["verify", "--repair", "--json"])["sound"], true);
    home.answer("hermes", &hermes_shell("after"));
    assert_eq!(home.log(&["--agent", "hermes"]).len(), 11);
    assert!(home.is_sound());
}

#[test]
fn a_damaged_table_is_not_repaired_but_told() {
    let home = Home::new();
    for number in 1..=60 {
        home.answer("hermes", &hermes_shell(&format!("echo {number} {}", "x".repeat(900))));
    }
    let file = log_file(&home);
    // A page with rows, somewhere in the middle.
    let page = {
        let root = root_page(&file, "events");
        let bytes = fs::read(&file).expect("the log");
        let is_rows = |page: &u64| {
            let at = usize::try_from((page - 1) * 4096).expect("small");
            *page != root
                && bytes[at] == 0x0d
                && bytes[at..at + 4096].windows(13).any(|it| it == b"pre_tool_call")
        };
        (2..=bytes.len() as u64 / 4096).find(is_rows).expect("a page with rows")
    };
    overwrite_page(&file, page);
    let found = flaws(&home, &[]);
    assert!(found.iter().any(|(kind, seq)| kind == "page" && seq.is_some()), "{found:?}");
    let before = fs::read(&file).expect("the log");
    let refused = home.run(&["verify", "--repair"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("damaged") && text.contains("backup"), "{text}");
    assert_eq!(fs::read(&file).expect("the log"), before, "nothing was changed");
}
