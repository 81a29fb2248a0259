//! A load test: 16 clients send 50,000 events while the NATS server and the daemon are killed at random,
//! twenty times each. Two observers, one on the log and one over NATS, must get every event.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use hookbus::event::EventId;
use hookbus::log::{LogPath, LogReader, Query, ReadError, Row};
use hookbus_tests::client::Client;
use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;
use serde_json::{Value, json};

const CLIENTS: usize = 16;
const EVENTS: usize = 50_000;
const KILLS: usize = 20;

/// The test kills processes but does not cut the power, so commits need not wait for the disk.
const HOOKS: &str = r#"
log: {synchronous: normal}
hooks:
  tool.before:
    - rule: {when: {command: rm}, block: guarded}
  "*":
    - {name: log, source: log, mode: observe, from: start, long_lived: true, command: ../watch.py log}
    - {name: nats, source: nats, mode: observe, from: start, long_lived: true, command: ../watch.py nats}
"#;

/// Writes the seq of each event to a file.
const WATCH: &str = r#"#!/usr/bin/python3 -S
import json, os, sys
seen = open(os.path.join(os.path.dirname(sys.argv[0]), "seen-" + sys.argv[1]), "a", buffering=1)
for line in sys.stdin:
    seen.write(f"{json.loads(line)['hookbus']['seq']}\n")
    print("ok", flush=True)
"#;

/// A random number below `end`.
fn random(end: usize) -> usize {
    let number = RandomState::new().build_hasher().finish();
    usize::try_from(number % u64::try_from(end).expect("small")).expect("small")
}

/// Random points of the run, as numbers of finished events.
fn kill_points() -> Vec<usize> {
    let mut points: Vec<usize> = (0..KILLS).map(|_| random(EVENTS)).collect();
    points.sort_unstable();
    points
}

/// Calls `kill` at random points of the run, while the clients continue.
fn at_random_points(done: &Arc<AtomicUsize>, mut kill: impl FnMut() + Send) {
    for point in kill_points() {
        while done.load(Ordering::Relaxed) < point {
            thread::sleep(Duration::from_millis(1));
        }
        kill();
    }
}

/// Sends the events of one client. The rule blocks every tenth one.
fn send_events(home: &Home, client: usize, done: &AtomicUsize) -> Vec<EventId> {
    let sender = Client::new(home);
    let call = |round: usize| {
        let verb = if round.is_multiple_of(10) { "rm" } else { "echo" };
        let result = sender.call(&hermes_shell(&format!("{verb} {client}-{round}")));
        let reason = result.answer["reason"].as_str();
        assert_eq!(
            reason,
            (verb == "rm").then_some("guarded (hookbus rule tool.before#1)"),
            "{verb} {client}-{round}"
        );
        done.fetch_add(1, Ordering::Relaxed);
        result.id
    };
    (0..EVENTS / CLIENTS).map(call).collect()
}

fn rows(home: &Home) -> Vec<Row> {
    let log = LogReader::open(&LogPath::in_home(&home.path())).expect("a log");
    let mut rows = Vec::new();
    let read = log.each::<ReadError>(&Query::default(), None, |row| {
        rows.push(row);
        Ok(())
    });
    read.expect("every row");
    rows
}

/// The seqs that an observer got, without repetitions, in the order in which it first got them.
fn observed_seqs(home: &Home, observer: &str) -> Vec<i64> {
    let file = home.path().join("..").join(format!("seen-{observer}"));
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut known = HashSet::new();
    let seqs = text.lines().map(|line| line.parse::<i64>().expect("a seq"));
    seqs.filter(|seq| known.insert(*seq)).collect()
}

/// Waits until an observer got `rows` events, for as long as it makes progress.
fn wait_for_observer(home: &Home, observer: &str, rows: usize) -> Vec<i64> {
    let mut seen = 0;
    while seen < rows {
        wait_until("the observer makes progress", || observed_seqs(home, observer).len() > seen);
        seen = observed_seqs(home, observer).len();
        thread::sleep(Duration::from_millis(200));
    }
    observed_seqs(home, observer)
}

#[test]
fn no_answered_event_is_missing_doubled_or_out_of_order() {
    let server = NatsServer::start();
    let home = Home::with_new_binary("running");
    home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{HOOKS}", server.url()));
    home.script("watch.py", WATCH);
    let (home, done) = (Arc::new(home), Arc::new(AtomicUsize::new(0)));
    let daemon = home.serve();
    let (answered, server, daemon) = thread::scope(|scope| {
        let servers = scope.spawn(|| {
            let mut server = server;
            at_random_points(&done, || {
                server.kill();
                thread::sleep(Duration::from_millis(u64::try_from(random(300)).expect("small")));
                server.run();
            });
            server
        });
        let daemons = scope.spawn(|| {
            let mut daemon = daemon;
            at_random_points(&done, || {
                daemon.kill();
                daemon = home.serve();
            });
            daemon
        });
        let client = |client| {
            let (home, done) = (&home, &done);
            scope.spawn(move || send_events(home, client, done))
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        let answered = clients.into_iter().map(|client| client.join().expect("no client fails"));
        let answered: Vec<EventId> = answered.flatten().collect();
        let server = servers.join().expect("the server runs again");
        (answered, server, daemons.join().expect("the daemon runs again"))
    });
    let head = json!(rows(&home).last().expect("rows").seq.as_i64());
    wait_until("the relay has published everything", || {
        let status = home.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        status["relay"]["published"] == head && status["relay"]["phase"] == "publishing"
    });
    let rows = rows(&home);
    for observer in ["log", "nats"] {
        let all: Vec<i64> = rows.iter().map(|row| row.seq.as_i64()).collect();
        assert!(wait_for_observer(&home, observer, rows.len()) == all, "{observer}: all, in order");
    }
    drop(daemon);
    let mut times: HashMap<EventId, usize> = HashMap::new();
    for row in &rows {
        *times.entry(row.id).or_default() += 1;
    }
    assert_eq!(answered.iter().collect::<HashSet<_>>().len(), EVENTS);
    assert!(answered.iter().all(|id| times.get(id) == Some(&1)), "each is in the log once");
    assert!(home.is_sound());
    let logged: Vec<_> = rows.iter().map(|row| (row.seq.as_i64(), hex(row))).collect();
    let streamed: Vec<_> =
        server.published().into_iter().map(|message| (message.seq, message.hash)).collect();
    assert!(streamed == logged, "{} in the stream, {} in the log", streamed.len(), logged.len());
}

fn hex(row: &Row) -> String {
    use std::fmt::Write;
    row.hash.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("memory");
        text
    })
}
