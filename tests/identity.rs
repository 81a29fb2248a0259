//! Who was it: each row tells the machine, the user, the home and the readable name of the bus that recorded it: in the log,
//! through the spool, over NATS and in an archive.

#![expect(clippy::expect_used, reason = "a test that cannot set up its files has failed")]

use std::process::Command;

use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::log_holder::LogHolder;
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::{gemini_shell, hermes_shell};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Host, user and home of every row that this process and its children record.
fn expected(home: &Home) -> [String; 3] {
    [output_of("uname", &["-n"]), output_of("id", &["-un"]), path_text(&home.path())]
}

fn who(row: &Value) -> [&str; 3] {
    ["host", "user", "home"].map(|key| row[key].as_str().unwrap_or("not recorded"))
}

fn sql(home: &Home, statement: &str) {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.close()";
    let log = path_text(&home.path().join("log.db"));
    output_of("python3", &["-c", script, &log, statement]);
}

#[test]
fn every_row_tells_who_recorded_it_whatever_the_environment_says() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks(GUARD);
        let daemon = (mode == "running").then(|| home.serve());
        let mut hook = home.command(["hook", "hermes"]);
        hook.env("USER", "mallory").env("LOGNAME", "mallory").env("HOSTNAME", "elsewhere");
        feed(hook, hermes_shell("rm -r x").to_string().as_bytes());
        home.answer("gemini", &gemini_shell("ls"));
        let rows = home.log(&[]);
        assert!(rows.len() >= 4, "{rows:?}");
        let [host, user, folder] = expected(&home);
        for row in &rows {
            assert_eq!(who(row), [&host, &user, &folder], "{mode}: {row}");
            assert_eq!(row["bus_name"], format!("{user}@{host}"));
        }
        let status: Value =
            serde_json::from_slice(&home.run(&["status", "--json"]).stdout).expect("JSON");
        assert_eq!((&status["bus"]["host"], &status["bus"]["user"]), (&json!(host), &json!(user)));
        assert_eq!(status["bus"]["id"], home.json(&["verify", "--json"])["bus"]);
        drop(daemon);
        let text = String::from_utf8(home.run(&["status"]).stdout).expect("text");
        assert!(text.contains(&format!("bus       {user}@{host} (")), "{text}");
    }
}

#[test]
fn the_name_of_a_bus_counts_from_the_next_row_on_and_a_bad_one_never() {
    let home = Home::with_hooks(&format!("name: build 1\n{GUARD}"));
    home.answer("hermes", &hermes_shell("one"));
    home.write_hooks_file(&format!("name: build 2\n{GUARD}"));
    home.answer("hermes", &hermes_shell("two"));
    home.write_hooks_file(&format!("name: \"a\\eb\"\n{GUARD}"));
    home.answer("hermes", &hermes_shell("three"));
    let names: Vec<Value> =
        home.log(&["--kind", "tool.before"]).iter().map(|row| row["bus_name"].clone()).collect();
    assert_eq!(names, ["build 1", "build 2", "build 2"], "the last good name stays");
    let list = home.run(&["hooks", "list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("visible characters"), "{list:?}");
    assert!(!home.log(&["--kind", "settings.changed"]).is_empty());
    assert!(home.text(&["verify"]).contains("(bus build 2 "), "{}", home.text(&["verify"]));
}

#[test]
fn a_spooled_event_tells_who_spooled_it() {
    let home = Home::with_hooks(&format!("name: early\n{GUARD}"));
    home.answer("hermes", &hermes_shell("one"));
    let holder = LogHolder::flock(&home);
    home.answer("hermes", &hermes_shell("two"));
    holder.release();
    home.write_hooks_file(&format!("name: late\n{GUARD}"));
    home.answer("hermes", &hermes_shell("three"));
    wait_until("the spool is empty", || {
        home.run(&["status"]);
        home.answer("hermes", &hermes_shell("four"));
        home.log(&["--kind", "tool.before"]).iter().any(|row| row["context"]["late"] == true)
    });
    let rows = home.log(&["--kind", "tool.before"]);
    let name_of = |command: &str| {
        let row = rows.iter().find(|row| row["payload"]["tool_input"]["command"] == command);
        row.expect("a row")["bus_name"].clone()
    };
    assert_eq!(["one", "two", "three"].map(name_of), ["early", "early", "late"]);
    assert!(home.is_sound());
}

#[test]
fn an_identity_that_was_changed_or_removed_shows() {
    for (change, kind) in [
        ("UPDATE identities SET user = 'mallory'", "altered"),
        ("DELETE FROM identities", "missing"),
    ] {
        let home = Home::with_hooks(GUARD);
        home.answer("hermes", &hermes_shell("ls"));
        assert!(home.is_sound());
        let unguarded = format!(
            "CREATE TABLE kept AS SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'; \
             DROP TRIGGER identities_are_never_changed; DROP TRIGGER identities_are_never_deleted; {change};"
        );
        sql(&home, &unguarded);
        let report: Value =
            serde_json::from_slice(&home.run(&["verify", "--json"]).stdout).expect("JSON");
        let flaws = report["flaws"].as_array().expect("flaws");
        assert!(flaws.iter().any(|flaw| flaw["kind"] == kind), "{change}: {report}");
        assert_eq!(home.log(&[])[0]["user"], Value::Null, "it is not believed");
    }
}

#[test]
fn an_archive_names_its_buses_by_what_their_rows_refer_to() {
    let server = NatsServer::start();
    let buses = ["anna", "ben", "ben"].map(|name| {
        let home = Home::with_daemon("running");
        home.write_hooks(&format!("name: {name}\nnats: {{url: \"{}\"}}\n{GUARD}", server.url()));
        home
    });
    let _daemons: Vec<_> = buses.iter().map(Home::serve).collect();
    for (number, home) in buses.iter().enumerate() {
        let mut call = hermes_shell("rm x");
        call["session_id"] = json!(format!("session-{number}"));
        home.answer("hermes", &call);
    }
    let archive = Home::new();
    archive.write_hooks(&format!(
        "nats: {{url: \"{}\"}}\nhooks:\n  \"*\":\n    - {{name: keep, mode: observe, archive: .}}\n",
        server.url()
    ));
    let total: usize = buses.iter().map(|home| home.log(&[]).len()).sum();
    wait_until("all rows are archived", || {
        archive.text(&["observe", "keep", "--drain"]);
        archive.log(&[]).len() == total
    });
    for (home, name) in buses.iter().zip(["anna", "ben", "ben"]) {
        let id = home.json(&["verify", "--json"])["bus"].as_str().expect("a bus").to_owned();
        let [host, user, folder] = expected(home);
        for row in archive.log(&["--bus", &id]) {
            assert_eq!(who(&row), [&host, &user, &folder], "{row}");
            assert_eq!(row["bus_name"], name);
        }
    }
    assert_eq!(archive.log(&["--bus", "anna"]).len(), buses[0].log(&[]).len());
    let ambiguous = archive.run(&["log", "--bus", "ben"]);
    let stderr = String::from_utf8_lossy(&ambiguous.stderr).into_owned();
    assert!(!ambiguous.status.success() && stderr.contains("several buses"), "{stderr}");
    let described: Vec<&str> = stderr.split("ben ").skip(1).collect();
    assert_eq!(described.len(), 2, "each with its id: {stderr}");
    let sessions = archive.text(&["sessions"]);
    assert!(sessions.contains(", on anna ") && sessions.contains(", on ben "), "{sessions}");
    let verified = archive.text(&["verify"]);
    assert!(verified.contains("(bus anna ") && verified.contains("(bus ben "), "{verified}");
    assert!(archive.text(&["log"]).contains("  on anna "));
    // The same through a file.
    let exported = archive.work().join("rows.jsonl");
    archive.text(&["export", "--output", &path_text(&exported)]);
    let imported = Home::new();
    imported.text(&["import", "--into", &path_text(&imported.path()), &path_text(&exported)]);
    assert!(imported.text(&["verify"]).contains("(bus anna "));
}
