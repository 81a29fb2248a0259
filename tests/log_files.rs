//! What other programs do to the files of the log while a daemon has them open: the write-ahead log is removed, replaced
//! or cut off, `log.db` is cut off.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

use hookbus_tests::home::{Daemon, Home, wait_until};
use hookbus_tests::payloads::hermes_shell;
use rusqlite::Connection;

/// Longer than the daemon waits for another event before it looks at the files and does a checkpoint.
const LONGER_THAN_IDLE: Duration = Duration::from_secs(2);

fn cut_off(path: &Path, length: u64) {
    let file = OpenOptions::new().write(true).open(path).expect("our file");
    file.set_len(length).expect("it is shorter");
}

#[expect(clippy::disallowed_methods, reason = "another program opens the log as it likes")]
fn other_program(home: &Home) -> Connection {
    Connection::open(home.path().join("log.db")).expect("a log")
}

fn checkpoint(db: &Connection, mode: &str) {
    db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).expect("a checkpoint");
}

/// A reader of the rows that are in the log now. Until it is dropped, no checkpoint moves later rows into `log.db`.
fn reader(home: &Home) -> Connection {
    let db = other_program(home);
    db.execute_batch("BEGIN; SELECT * FROM bus").expect("a transaction");
    db
}

/// A home with a daemon and three events.
fn home_with_events() -> (Home, Daemon) {
    let home = Home::with_daemon("running");
    let daemon = home.serve();
    answer(&home, &["a1", "a2", "a3"]);
    (home, daemon)
}

fn answer(home: &Home, commands: &[&str]) {
    for command in commands {
        home.answer("hermes", &hermes_shell(command));
    }
}

fn commands(home: &Home) -> Vec<String> {
    let rows = home.log(&["--kind", "tool.before"]);
    let command = |row: &serde_json::Value| row["payload"]["tool_input"]["command"].clone();
    rows.iter().map(|row| command(row).as_str().unwrap_or_default().to_owned()).collect()
}

fn bus(home: &Home) -> String {
    home.json(&["verify", "--json"])["bus"].to_string()
}

fn health(home: &Home) -> (bool, String) {
    let output: Output = home.run(&["status", "--check"]);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn rows_survive_that_the_write_ahead_log_is_removed_or_replaced_under_the_daemon() {
    for round in 0..4 {
        let (home, mut daemon) = home_with_events();
        let (bus_before, wal) = (bus(&home), home.path().join("log.db-wal"));
        let copy = home.path().join("copy");
        match round {
            0 => fs::remove_file(&wal).expect("our file"),
            1 => fs::rename(&wal, &copy).expect("our file"),
            // A copy, which does not get the rows that the daemon writes.
            2 => {
                fs::copy(&wal, &copy).expect("a copy");
                fs::rename(&copy, &wal).expect("our file");
            }
            _ => {
                fs::remove_file(&wal).expect("our file");
                fs::write(&wal, "no write-ahead log").expect("our file");
            }
        }
        answer(&home, &["b1", "b2", "b3"]);
        assert_eq!(health(&home), (true, "healthy\n".to_owned()), "round {round}");
        daemon.kill();
        assert_eq!(commands(&home), ["a1", "a2", "a3", "b1", "b2", "b3"], "round {round}");
        assert!(home.is_sound(), "round {round}");
        assert_eq!(bus(&home), bus_before, "round {round}");
    }
}

#[test]
fn rows_survive_a_write_ahead_log_that_is_removed_after_a_checkpoint_and_before_the_daemon_ends() {
    let (home, daemon) = home_with_events();
    let many: Vec<String> = (0..40).map(|number| format!("many {number}")).collect();
    answer(&home, &many.iter().map(String::as_str).collect::<Vec<_>>());
    fs::remove_file(home.path().join("log.db-wal")).expect("our file");
    home.text(&["stop"]);
    drop(daemon);
    assert_eq!(commands(&home).len(), 43);
    assert!(home.is_sound());
}

#[test]
fn rows_survive_a_write_ahead_log_that_is_removed_after_the_last_event() {
    // Removed while the daemon is idle for a moment, and for longer.
    for pause in [Duration::ZERO, LONGER_THAN_IDLE] {
        let (home, mut daemon) = home_with_events();
        sleep(pause);
        fs::remove_file(home.path().join("log.db-wal")).expect("our file");
        wait_until("the log can be read", || home.run(&["log"]).status.success());
        sleep(LONGER_THAN_IDLE);
        daemon.kill();
        assert_eq!(commands(&home), ["a1", "a2", "a3"], "{pause:?}");
        assert!(home.is_sound(), "{pause:?}");
    }
}

#[test]
fn a_write_ahead_log_that_is_cut_off_is_told_and_later_rows_are_kept() {
    // The daemon notices it with the next event, and when it is idle.
    for pause in [Duration::ZERO, LONGER_THAN_IDLE] {
        let home = Home::with_daemon("running");
        let mut daemon = home.serve();
        answer(&home, &["a0"]);
        checkpoint(&other_program(&home), "TRUNCATE");
        let reader = reader(&home);
        answer(&home, &["a1", "a2", "a3"]);
        let bus_before = bus(&home);
        cut_off(&home.path().join("log.db-wal"), 0);
        drop(reader);
        sleep(pause);
        if !pause.is_zero() {
            assert!(health(&home).1.contains("log.db-wal was cut off"), "{pause:?}");
        }
        answer(&home, &["b1", "b2", "b3"]);
        let (is_healthy, text) = health(&home);
        assert!(!is_healthy && text.contains("log.db-wal was cut off"), "{pause:?}: {text}");
        daemon.kill();
        assert_eq!(commands(&home), ["a0", "b1", "b2", "b3"], "{pause:?}");
        assert!(home.is_sound(), "{pause:?}");
        assert_eq!(bus(&home), bus_before, "it is the same log");
        // A daemon that starts later tells it too, until the user has seen it.
        let _daemon = home.serve();
        assert!(health(&home).1.contains("log.db-wal was cut off"), "{pause:?}");
        fs::remove_file(home.path().join("log.damage")).expect("the file that was named");
        assert_eq!(health(&home).1, "healthy\n", "{pause:?}");
    }
}

#[test]
fn a_log_that_is_cut_off_is_told_and_later_rows_are_kept() {
    for (pages, pause) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
        let (home, mut daemon) = home_with_events();
        // The rows of these are in `log.db`, the rows of those after them in the write-ahead log.
        checkpoint(&other_program(&home), "TRUNCATE");
        let reader = reader(&home);
        answer(&home, &["a4", "a5", "a6"]);
        cut_off(&home.path().join("log.db"), pages * 4096);
        drop(reader);
        sleep(Duration::from_secs(pause));
        answer(&home, &["b1", "b2", "b3"]);
        let (is_healthy, text) = health(&home);
        let case = format!("{pages} pages, {pause} seconds: {text}");
        assert!(!is_healthy && text.contains("log.db was cut off"), "{case}");
        if !daemon.has_exited() {
            daemon.kill();
        }
        assert_eq!(commands(&home), ["b1", "b2", "b3"], "{case}");
        assert!(home.is_sound(), "{case}");
    }
}

#[test]
fn a_log_that_is_cut_off_when_all_rows_are_in_it_is_told() {
    let (home, mut daemon) = home_with_events();
    sleep(LONGER_THAN_IDLE);
    let log = home.path().join("log.db");
    let length = fs::metadata(&log).expect("our file").len();
    cut_off(&log, length - 4096);
    answer(&home, &["b1", "b2", "b3"]);
    let (is_healthy, text) = health(&home);
    assert!(!is_healthy && text.contains("log.db was cut off"), "{text}");
    if !daemon.has_exited() {
        daemon.kill();
    }
    assert_eq!(commands(&home), ["b1", "b2", "b3"]);
    assert!(home.is_sound());
}

#[test]
fn a_checkpoint_by_another_program_is_no_loss() {
    let (home, mut daemon) = home_with_events();
    let log = other_program(&home);
    for mode in ["TRUNCATE", "RESTART"] {
        checkpoint(&log, mode);
        answer(&home, &[mode]);
    }
    assert_eq!(health(&home).1, "healthy\n");
    daemon.kill();
    assert_eq!(commands(&home).len(), 5);
    assert!(home.is_sound());
}

#[test]
fn a_log_that_another_program_makes_shorter_with_vacuum_is_no_loss() {
    let (home, mut daemon) = home_with_events();
    let log = other_program(&home);
    let write = |sql: &str| log.execute_batch(sql).expect("another program may write");
    let length = || fs::metadata(home.path().join("log.db")).expect("our file").len();
    write("CREATE TABLE other(data); INSERT INTO other VALUES (zeroblob(1 << 20))");
    checkpoint(&log, "TRUNCATE");
    let before = length();
    answer(&home, &["a4"]);
    write("DROP TABLE other; VACUUM");
    answer(&home, &["a5"]);
    checkpoint(&log, "TRUNCATE");
    assert!(length() < before, "it is shorter");
    // The next look finds a shorter file, and pages that are only in the write-ahead log.
    write("CREATE TABLE other(data); INSERT INTO other VALUES (zeroblob(1 << 16))");
    answer(&home, &["a6"]);
    write("DROP TABLE other; VACUUM");
    checkpoint(&log, "TRUNCATE");
    sleep(LONGER_THAN_IDLE);
    answer(&home, &["a7"]);
    assert_eq!(health(&home).1, "healthy\n");
    daemon.kill();
    assert_eq!(commands(&home), ["a1", "a2", "a3", "a4", "a5", "a6", "a7"]);
    assert!(home.is_sound());
}
