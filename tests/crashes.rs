//! Killed processes and many concurrent clients: every event that was answered is in the log exactly once.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::payloads::{gemini_shell, hermes_shell};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// Sends numbered events from several clients at once; returns the commands that were answered.
fn send_events(home: &Arc<Home>, clients: usize, rounds: usize) -> Vec<String> {
    let client = |client: usize| {
        let home = Arc::clone(home);
        thread::spawn(move || {
            let send = |round| {
                let command = format!("rm client-{client}-round-{round}");
                let (agent, payload) = match client % 2 {
                    0 => ("hermes", hermes_shell(&command)),
                    _ => ("gemini", gemini_shell(&command)),
                };
                assert_eq!(
                    home.answer(agent, &payload)["reason"],
                    "guarded (hookbus rule tool.before#1)",
                    "{command}"
                );
                command
            };
            (0..rounds).map(send).collect::<Vec<_>>()
        })
    };
    let clients: Vec<_> = (0..clients).map(client).collect();
    let answered = clients.into_iter().map(thread::JoinHandle::join);
    answered.flat_map(|commands| commands.expect("every client gets its answer")).collect()
}

/// Asserts that every command is in the log once, with one decision about it, and that the log is valid.
fn assert_each_logged_once(home: &Home, answered: &[String]) {
    let rows = home.log(&[]);
    let mut events: HashMap<&str, Vec<i64>> = HashMap::new();
    let mut decisions: HashMap<i64, usize> = HashMap::new();
    for row in &rows {
        if let Some(command) = row["payload"]["tool_input"]["command"].as_str() {
            events.entry(command).or_default().push(row["seq"].as_i64().expect("a seq"));
        }
        if row["kind"] == "decision" {
            *decisions.entry(row["cause"].as_i64().expect("a cause")).or_default() += 1;
        }
    }
    for command in answered {
        let seqs = events.get(command.as_str()).map_or(&[][..], Vec::as_slice);
        assert_eq!(seqs.len(), 1, "{command} is in the rows {seqs:?}");
        assert_eq!(decisions.get(&seqs[0]), Some(&1), "{command} has one decision");
    }
    let seqs: Vec<i64> = rows.iter().filter_map(|row| row["seq"].as_i64()).collect();
    let gapless: Vec<i64> = (1..=i64::try_from(rows.len()).expect("few")).collect();
    assert_eq!(seqs, gapless);
    assert!(home.is_sound());
}

#[test]
fn a_daemon_killed_under_load_loses_no_answered_event() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    let home = Arc::new(home);
    let done = Arc::new(AtomicBool::new(false));
    let killer = {
        let (home, done) = (Arc::clone(&home), Arc::clone(&done));
        thread::spawn(move || {
            let mut kills = 0;
            while !done.load(Ordering::Relaxed) {
                let mut daemon = home.serve();
                thread::sleep(Duration::from_millis(150 + 70 * (kills % 3)));
                daemon.kill();
                kills += 1;
            }
            kills
        })
    };
    let answered = send_events(&home, 16, 25);
    done.store(true, Ordering::Relaxed);
    let kills = killer.join().expect("the killing thread ends");
    assert!(kills >= 3, "only {kills} kills");
    assert_eq!(answered.len(), 400);
    assert_each_logged_once(&home, &answered);
}

#[test]
fn killed_clients_leave_a_valid_log() {
    let home = Home::with_hooks(GUARD);
    let home = Arc::new(home);
    for kill in 0..40 {
        let mut command = home.command(["hook", "hermes"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut client = command.spawn().expect("it starts");
        let mut stdin = client.stdin.take().expect("a pipe");
        stdin.write_all(hermes_shell("rm x").to_string().as_bytes()).expect("it reads");
        drop(stdin);
        // After a different delay each time, to hit different steps of its work.
        thread::sleep(Duration::from_micros(400 * (kill % 20)));
        client.kill().expect("our child");
        client.wait().expect("our child");
    }
    let answered = send_events(&home, 2, 5);
    assert_each_logged_once(&home, &answered);
}

#[test]
fn eight_processes_without_a_daemon_write_in_turn() {
    let home = Arc::new(Home::with_hooks(GUARD));
    let answered = send_events(&home, 8, 25);
    assert_eq!(answered.len(), 200);
    assert_each_logged_once(&home, &answered);
}

#[test]
fn clients_killed_while_they_wait_for_a_locked_log_or_spool_lose_no_answered_event() {
    let home = Arc::new(Home::with_hooks(GUARD));
    home.answer("hermes", &hermes_shell("first"));
    let lock = fs::File::options().write(true).open(home.path().join("log.lock"));
    let lock = lock.expect("the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("it is free");
    // A tenth of the deadline is the wait for the log; the kills are before, during and after the spooling.
    let clients: Vec<_> = (0..24_u64)
        .map(|number| {
            let home = Arc::clone(&home);
            thread::spawn(move || {
                let command = format!("rm {number}");
                let mut client = home.command(["hook", "hermes", "--deadline", "4"]);
                client.stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut client = client.spawn().expect("it starts");
                let mut stdin = client.stdin.take().expect("a pipe");
                let payload = hermes_shell(&command).to_string();
                stdin.write_all(payload.as_bytes()).expect("it reads");
                drop(stdin);
                thread::sleep(Duration::from_millis(380 + 12 * number));
                client.kill().expect("our child");
                let output = client.wait_with_output().expect("our child");
                (!output.stdout.is_empty()).then_some(command)
            })
        })
        .collect();
    let answered: Vec<String> =
        clients.into_iter().filter_map(|client| client.join().expect("the thread ends")).collect();
    drop(lock);
    let _daemon = home.serve();
    let waiting = || home.json(&["status", "--json"])["spool"]["waiting"].as_u64();
    wait_until("the spool is empty", || waiting() == Some(0));
    assert_each_logged_once(&home, &answered);
}
