//! The relay at full size: 16 clients, 50,000 events, the NATS server and the daemon killed twenty
//! times each, at random.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use hookbus::event::EventId;
use hookbus::log::{LogPath, LogReader, Query, ReadError, Row};
use hookbus_tests::caller::Caller;
use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;
use serde_json::{Value, json};

const CLIENTS: usize = 16;
const EVENTS: usize = 50_000;
const KILLS: usize = 20;

/// Processes die here, the power stays: so the disk need not be waited for.
const HOOKS: &str = "log: {synchronous: normal}\nhooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// A number below `end`; another one in each run.
fn any(end: usize) -> usize {
    let random = RandomState::new().build_hasher().finish();
    usize::try_from(random % u64::try_from(end).expect("small")).expect("small")
}

/// Twenty moments of the run, by how many events are done.
fn moments() -> Vec<usize> {
    let mut moments: Vec<usize> = (0..KILLS).map(|_| any(EVENTS)).collect();
    moments.sort_unstable();
    moments
}

/// Does something at each of twenty moments, while the clients go on.
fn at_random(done: &Arc<AtomicUsize>, mut each: impl FnMut() + Send) {
    for moment in moments() {
        while done.load(Ordering::Relaxed) < moment {
            thread::sleep(Duration::from_millis(1));
        }
        each();
    }
}

/// One client's share; every tenth event is one that the guard blocks.
fn fire(home: &Home, client: usize, done: &AtomicUsize) -> Vec<EventId> {
    let caller = Caller::new(home);
    let call = |round: usize| {
        let verb = if round.is_multiple_of(10) { "rm" } else { "echo" };
        let answered = caller.call(&hermes_shell(&format!("{verb} {client}-{round}")));
        let heard = answered.answer["reason"].as_str();
        assert_eq!(heard, (verb == "rm").then_some("guarded"), "{verb} {client}-{round}");
        done.fetch_add(1, Ordering::Relaxed);
        answered.id
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
    read.expect("all of it");
    rows
}

#[test]
fn nothing_acknowledged_is_missing_doubled_or_out_of_order() {
    let server = NatsServer::start();
    let home = Home::with_new_binary("running");
    home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{HOOKS}", server.url()));
    let (home, done) = (Arc::new(home), Arc::new(AtomicUsize::new(0)));
    let daemon = home.serve();
    let (answered, server, daemon) = thread::scope(|scope| {
        let servers = scope.spawn(|| {
            let mut server = server;
            at_random(&done, || {
                server.kill();
                thread::sleep(Duration::from_millis(u64::try_from(any(300)).expect("small")));
                server.run();
            });
            server
        });
        let daemons = scope.spawn(|| {
            let mut daemon = daemon;
            at_random(&done, || {
                daemon.kill();
                daemon = home.serve();
            });
            daemon
        });
        let client = |client| {
            let (home, done) = (&home, &done);
            scope.spawn(move || fire(home, client, done))
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
    drop(daemon);
    let rows = rows(&home);
    let mut times: HashMap<EventId, usize> = HashMap::new();
    for row in &rows {
        *times.entry(row.id).or_default() += 1;
    }
    assert_eq!(answered.iter().collect::<HashSet<_>>().len(), EVENTS);
    assert!(answered.iter().all(|id| times.get(id) == Some(&1)), "each is in the log, once");
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
