//! Crashes and crowds: what was answered is in the log, once, whatever is killed.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hookbus_tests::home::Home;
use hookbus_tests::payloads::{gemini_shell, hermes_shell};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// Fires numbered events from several clients at once; gives back what was answered.
fn fire(home: &Arc<Home>, clients: usize, rounds: usize) -> Vec<String> {
    let client = |client: usize| {
        let home = Arc::clone(home);
        thread::spawn(move || {
            let fire = |round| {
                let mark = format!("rm client-{client}-round-{round}");
                let (agent, payload) = match client % 2 {
                    0 => ("hermes", hermes_shell(&mark)),
                    _ => ("gemini", gemini_shell(&mark)),
                };
                assert_eq!(home.answer(agent, &payload)["reason"], "guarded", "{mark}");
                mark
            };
            (0..rounds).map(fire).collect::<Vec<_>>()
        })
    };
    let clients: Vec<_> = (0..clients).map(client).collect();
    let answered = clients.into_iter().map(thread::JoinHandle::join);
    answered.flat_map(|marks| marks.expect("every client hears its answer")).collect()
}

/// Every mark stands in the log once, with one decision that points at it.
fn holds_each_once(home: &Home, answered: &[String]) {
    let rows = home.log(&[]);
    let mut events: HashMap<&str, Vec<i64>> = HashMap::new();
    let mut decisions: HashMap<i64, usize> = HashMap::new();
    for row in &rows {
        if let Some(mark) = row["payload"]["tool_input"]["command"].as_str() {
            events.entry(mark).or_default().push(row["seq"].as_i64().expect("a place"));
        }
        if row["kind"] == "decision" {
            *decisions.entry(row["cause"].as_i64().expect("a cause")).or_default() += 1;
        }
    }
    for mark in answered {
        let places = events.get(mark.as_str()).map_or(&[][..], Vec::as_slice);
        assert_eq!(places.len(), 1, "{mark} stands at {places:?}");
        assert_eq!(decisions.get(&places[0]), Some(&1), "{mark} has one decision");
    }
    let places: Vec<i64> = rows.iter().filter_map(|row| row["seq"].as_i64()).collect();
    let gapless: Vec<i64> = (1..=i64::try_from(rows.len()).expect("few")).collect();
    assert_eq!(places, gapless);
    assert!(home.is_sound());
}

#[test]
fn a_daemon_killed_under_load_loses_nothing_that_was_answered() {
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
    let answered = fire(&home, 16, 25);
    done.store(true, Ordering::Relaxed);
    let kills = killer.join().expect("the killer is done");
    assert!(kills >= 3, "only {kills} kills");
    assert_eq!(answered.len(), 400);
    holds_each_once(&home, &answered);
}

#[test]
fn clients_that_are_killed_leave_a_sound_log() {
    let home = Home::with_hooks(GUARD);
    let home = Arc::new(home);
    for kill in 0..40 {
        let mut command = home.command(["hook", "hermes"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        let mut client = command.spawn().expect("it starts");
        let mut stdin = client.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut stdin, hermes_shell("rm x").to_string().as_bytes())
            .expect("it reads");
        drop(stdin);
        // At another moment of its work each time.
        thread::sleep(Duration::from_micros(400 * (kill % 20)));
        client.kill().expect("ours");
        client.wait().expect("ours");
    }
    let answered = fire(&home, 2, 5);
    holds_each_once(&home, &answered);
}

#[test]
fn eight_processes_without_a_daemon_take_turns() {
    let home = Arc::new(Home::with_hooks(GUARD));
    let answered = fire(&home, 8, 25);
    assert_eq!(answered.len(), 200);
    holds_each_once(&home, &answered);
}
