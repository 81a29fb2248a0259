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

fn cut_off(path: &Path) {
    OpenOptions::new().write(true).open(path).expect("our file").set_len(0).expect("it is shorter");
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
    for pause in [Duration::ZERO, Duration::from_secs(2)] {
        let (home, mut daemon) = home_with_events();
        sleep(pause);
        fs::remove_file(home.path().join("log.db-wal")).expect("our file");
        wait_until("the log can be read", || home.run(&["log"]).status.success());
        sleep(Duration::from_secs(2));
        daemon.kill();
        assert_eq!(commands(&home), ["a1", "a2", "a3"], "{pause:?}");
        assert!(home.is_sound(), "{pause:?}");
    }
}

#[test]
fn a_write_ahead_log_that_is_cut_off_is_told_and_later_rows_are_kept() {
    let (home, mut daemon) = home_with_events();
    let bus_before = bus(&home);
    cut_off(&home.path().join("log.db-wal"));
    answer(&home, &["b1", "b2", "b3"]);
    let (is_healthy, text) = health(&home);
    assert!(!is_healthy && text.contains("log.db-wal was cut off"), "{text}");
    daemon.kill();
    assert_eq!(commands(&home), ["b1", "b2", "b3"]);
    assert!(home.is_sound());
    assert_eq!(bus(&home), bus_before, "it is the same log");
    // A daemon that starts later tells it too, until the user has seen it.
    let _daemon = home.serve();
    assert!(health(&home).1.contains("log.db-wal was cut off"));
    fs::remove_file(home.path().join("log.damage")).expect("the file that was named");
    assert_eq!(health(&home).1, "healthy\n");
}

#[test]
fn a_log_that_is_cut_off_is_told_and_later_rows_are_kept() {
    let (home, mut daemon) = home_with_events();
    cut_off(&home.path().join("log.db"));
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
#[expect(clippy::disallowed_methods, reason = "another program opens the log as it likes")]
fn a_checkpoint_by_another_program_is_no_loss() {
    let (home, mut daemon) = home_with_events();
    let log = rusqlite::Connection::open(home.path().join("log.db")).expect("a log");
    for mode in ["wal_checkpoint(TRUNCATE)", "wal_checkpoint(RESTART)"] {
        log.query_row(&format!("PRAGMA {mode}"), [], |_| Ok(())).expect("a checkpoint");
        answer(&home, &[mode]);
    }
    assert_eq!(health(&home).1, "healthy\n");
    daemon.kill();
    assert_eq!(commands(&home).len(), 5);
    assert!(home.is_sound());
}
