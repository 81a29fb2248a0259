//! What works on the whole log is killed at any moment while agents send events: nothing is lost, nothing is there twice,
//! the chain is sound, and what was not selected is as it was. A last run that is let alone finishes the work.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use hookbus::event::{Agent, EventId, payload_digest};
use hookbus::log::Row;
use hookbus_tests::home::Home;
use hookbus_tests::recording::{query, record, rows, store_whole};
use serde_json::{Value, json};

/// How often each job is killed.
const ROUNDS: usize = 8;

/// Sessions with histories that share their beginnings; every fourth message has a token in it.
fn history(index: usize) -> (Agent, Value) {
    let message = |at: usize| {
        let token = format!("{}{}{:04}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6", at);
        let word = |word: usize| {
            let digest = payload_digest(format!("{at} {word}").as_bytes());
            digest.iter().take(8).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
        };
        let words: Vec<String> = (0..60).map(word).collect();
        let last = if at.is_multiple_of(4) { token } else { "plain".to_owned() };
        json!({"role": "user", "content": format!("{} {last}", words.join(" "))})
    };
    let payload = json!({
        "hook_event_name": "pre_llm_call", "session_id": format!("session-{}", index % 3),
        "extra": {"conversation_history": (0..index % 40).map(message).collect::<Vec<_>>()},
    });
    (Agent::Hermes, payload)
}

fn start(home: &Home, job: &[&str]) -> Child {
    let mut command = home.command(job);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("hookbus runs")
}

/// Whether a job may have changed a row, or removed it.
type IsSelected = fn(&Row) -> bool;

fn kill_rounds(job: &[&str], is_selected: IsSelected, prepare: impl Fn(&Home)) {
    let home = Home::with_hooks("redact: false\n");
    record(&home, 90, history);
    prepare(&home);
    let before = rows(&home);
    let (mut sent, mut killed) = (0, 0);
    for round in 0..ROUNDS {
        let mut child = start(&home, job);
        // Killed at once in the first round; later while events are sent, a little later each round.
        for _ in 0..round % 3 {
            let event =
                json!({"hook_event_name": "pre_llm_call", "session_id": "agents", "number": sent});
            home.answer("hermes", &event);
            sent += 1;
        }
        sleep(Duration::from_millis(7) * u32::try_from(round).unwrap_or(0));
        child.kill().expect("a signal");
        killed += usize::from(child.wait().expect("an end").signal().is_some());
        check(&before, &rows(&home), is_selected);
        assert!(home.is_sound(), "{job:?} {round}");
    }
    assert!(killed > 0, "it was never killed");
    assert!(start(&home, job).wait().expect("an end").success(), "{job:?}");
    // The next event takes in what may be in the spool.
    home.answer(
        "hermes",
        &json!({"hook_event_name": "pre_llm_call", "session_id": "agents", "number": sent}),
    );
    let now = rows(&home);
    check(&before, &now, is_selected);
    let mut numbers: Vec<i64> = now
        .iter()
        .filter(|row| row.session == "agents")
        .filter_map(|row| row.payload_json()["number"].as_i64())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..=sent).collect::<Vec<i64>>(), "{job:?}: each event once");
    assert!(home.is_sound(), "{job:?}");
    assert_eq!(query(&home, "SELECT count(*) - count(DISTINCT id) FROM events")[0], 0);
}

/// What was not selected is there as it was, and of the rest is there what can be.
fn check(before: &[Row], now: &[Row], is_selected: IsSelected) {
    let now: HashMap<EventId, &Row> = now.iter().map(|row| (row.id, row)).collect();
    for was in before {
        match now.get(&was.id) {
            Some(is) if is.removed.is_none() && is.redaction.is_none() => assert_eq!(*is, was),
            Some(is) => {
                assert!(is_selected(was), "{}", was.seq);
                assert_eq!(
                    (is.seq, is.hash, is.payload_digest()),
                    (was.seq, was.hash, was.payload_digest())
                );
            }
            None => assert!(is_selected(was), "row {} is lost", was.seq),
        }
    }
}

#[test]
fn compacting_is_killed_while_agents_go_on() {
    kill_rounds(&["compact"], |_| false, store_whole);
}

#[test]
fn removing_payloads_is_killed_while_agents_go_on() {
    let job = ["prune", "--session", "session-0", "--yes"];
    kill_rounds(&job, |row| row.session == "session-0", |_| {});
}

#[test]
fn removing_rows_is_killed_while_agents_go_on() {
    // By kind: a session that is gone as a whole cannot be named again.
    let job = ["prune", "--agent", "hermes", "--older-than", "2d", "--rows", "--yes"];
    kill_rounds(&job, |row| row.session != "agents" && row.agent == "hermes", |_| {});
}

#[test]
fn redacting_is_killed_while_agents_go_on() {
    kill_rounds(
        &["scan", "--redact", "--yes"],
        |row| String::from_utf8_lossy(&row.payload).contains("ghp_"),
        |_| {},
    );
}
