//! What the log costs, as ratios in one run: the disk that a long session with full histories takes, beside the text that
//! is new in it; an append at the end of that session beside one near its beginning; redaction of a payload of 48 KB; and
//! appends, `show` and `sessions` on a log of many events beside an empty one. No limits, so a slow machine causes no failure.
//!
//! `cargo build --release && cargo bench -p hookbus-tests --bench log`; `HOOKBUS_BENCH_EVENTS` sets the number of events.

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::cast_precision_loss, reason = "rounded for people")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hookbus::bus::Bus;
use hookbus::caller::Caller;
use hookbus::event::{Agent, Clock, EventId, SystemClock};
use hookbus::pipeline::{Call, handle};
use hookbus_tests::home::Home;
use hookbus_tests::long_session::LongSession;
use hookbus_tests::payloads::hermes_shell;
use hookbus_tests::recording::record_after;
use hookbus_tests::timing::{Percentiles, time};
use hookbus_tests::words::Words;
use serde_json::json;
use tokio::runtime::Runtime;

const ROUNDS: usize = 300;
const EVENTS: usize = 1_000_000;
const SESSION: usize = 1_000;

fn main() {
    for turns in [120, 200] {
        long_session(turns);
    }
    for turns in [120, 200] {
        long_session_at_the_front_door(turns);
    }
    if std::env::var_os("HOOKBUS_BENCH_EVENTS").is_some_and(|events| events == "0") {
        return;
    }
    redaction();
    many_events();
}

/// A bus as a daemon has it, and the runtime that drives it.
struct Recording {
    bus: Bus,
    runtime: Runtime,
}

impl Recording {
    fn of(home: &Home) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { bus: Bus::for_daemon(&home.path(), &[]), runtime: runtime.expect("a runtime") }
    }

    /// Records one event; returns how long the agent would have waited.
    fn append(&self, raw: Vec<u8>) -> Duration {
        let at = SystemClock.now();
        let call = Call {
            id: EventId::mint(at),
            at,
            agent: Agent::Hermes,
            raw: raw.into(),
            caller: Caller::default(),
            deadline: Duration::from_mins(1),
        };
        let started = Instant::now();
        let answer = self.runtime.block_on(handle(call, &self.bus));
        let took = started.elapsed();
        drop(answer);
        took
    }

    /// Moves all rows into `log.db`.
    fn finish(self) {
        self.runtime.block_on(self.bus.recorder.checkpoint());
    }
}

/// The whole home after a session, and what its events cost at turn 10 and at the last turn.
fn long_session(turns: usize) {
    let home = Home::with_hooks("hooks: {}\n");
    let recording = Recording::of(&home);
    let mut session = LongSession::new(turns, 7);
    let mut times = TurnTimes::new(turns);
    for payload in session.by_ref() {
        times.add(payload, |payload| recording.append(payload));
    }
    recording.finish();
    let plain = times.bytes;
    let (disk, text) = (size_of(&home.path()) as f64, session.new_text as f64);
    println!(
        "{turns} turns: {:.2} MB of new text, {:.1} MB as JSON lines",
        text / 1e6,
        plain as f64 / 1e6
    );
    println!(
        "  the whole home  {:.2} MB = {:.2} x the new text   (aim: 3 or less)",
        disk / 1e6,
        disk / text
    );
    times.print("an append");
}

/// The same session, sent by `hookbus hook` to a daemon: what the agent waits for.
fn long_session_at_the_front_door(turns: usize) {
    let home = Home::with_daemon("running");
    home.write_hooks("hooks: {}\n");
    let _daemon = home.serve();
    let mut times = TurnTimes::new(turns);
    for payload in LongSession::new(turns, 7) {
        times.add(payload, |payload| time(home.command(["hook", "hermes"]), &payload));
    }
    println!("{turns} turns through `hookbus hook`");
    times.print("a call");
}

/// Every third turn calls a tool, so three turns are compared with three.
const TURNS: usize = 3;

/// How long the events around turn 10 and of the last turns took.
struct TurnTimes {
    turns: usize,
    ended: usize,
    /// Of all events.
    bytes: usize,
    early: Vec<(Duration, usize)>,
    late: Vec<(Duration, usize)>,
}

impl TurnTimes {
    const fn new(turns: usize) -> Self {
        Self { turns, ended: 0, bytes: 0, early: Vec::new(), late: Vec::new() }
    }

    fn add(&mut self, payload: Vec<u8>, record: impl FnOnce(Vec<u8>) -> Duration) {
        let ends_turn = payload.starts_with(b"{\"hook_event_name\": \"on_session_end");
        let bytes = payload.len();
        self.bytes += bytes;
        let took = record(payload);
        match self.ended {
            ended if (8..8 + TURNS).contains(&ended) => self.early.push((took, bytes)),
            ended if ended + TURNS >= self.turns => self.late.push((took, bytes)),
            _ => {}
        }
        self.ended += usize::from(ends_turn);
    }

    fn print(&self, what: &str) {
        let total = |events: &[(Duration, usize)]| {
            let (time, bytes) = events
                .iter()
                .fold((Duration::ZERO, 0), |(time, bytes), it| (time + it.0, bytes + it.1));
            (time.as_secs_f64() * 1e3 / events.len() as f64, bytes / events.len())
        };
        let ((early, early_bytes), (late, late_bytes)) = (total(&self.early), total(&self.late));
        println!("  {what} around turn 10     {early:.2} ms on average, of {early_bytes} bytes");
        println!("  {what} of the last turns  {late:.2} ms on average, of {late_bytes} bytes");
        println!("  last / turn 10  {:.2}   (aim: 2 or less)", late / early);
    }
}

/// `hookbus hook` with a payload of 48 KB, with redaction and without, in turn.
fn redaction() {
    let homes = ["hooks: {}\n", "redact: false\nhooks: {}\n"].map(|policy| {
        let home = Home::with_daemon("running");
        home.write_hooks(policy);
        home
    });
    let _daemons = homes.each_ref().map(Home::serve);
    let (mut words, mut times) = (Words::new(3), [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        let mut payload = hermes_shell("cat notes.txt");
        payload["tool_input"]["content"] = json!(words.text(48_000));
        let payload = payload.to_string().into_bytes();
        for (times, home) in times.iter_mut().zip(&homes) {
            times.push(time(home.command(["hook", "hermes"]), &payload));
        }
    }
    let [with, without] = times.map(Percentiles::of);
    println!("hookbus hook, 48 KB, redacted        {with}");
    println!("hookbus hook, 48 KB, as it is        {without}");
    println!("redacted / as it is  {:.2}   (aim: 1.15 or less)", with.median() / without.median());
}

/// Appends to a log of many events and to an empty one, in turn; and the two verbs that people type first.
fn many_events() {
    let events = std::env::var_os("HOOKBUS_BENCH_EVENTS");
    let events = events.and_then(|text| text.to_str()?.parse().ok());
    let events: usize = events.unwrap_or(EVENTS);
    let (large, empty) = (Home::with_hooks("log: { synchronous: normal }\n"), Home::new());
    let started = Instant::now();
    let template = hermes_shell("");
    record_after(&large, 0, events, |index| {
        let mut payload = template.clone();
        payload["session_id"] = json!(format!("session-{:06}", index / SESSION));
        payload["tool_input"]["command"] = json!(format!("cargo test --package shop-{index}"));
        (Agent::Hermes, payload)
    });
    let took = started.elapsed().as_secs_f64();
    println!(
        "{events} events: {:.0} a second, {:.2} GB",
        events as f64 / took,
        size_of(&large.path()) as f64 / 1e9
    );
    large.write_hooks("hooks: {}\n");
    empty.write_hooks("hooks: {}\n");
    let logs = [&large, &empty].map(Recording::of);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS * 4 {
        let payload = hermes_shell(&format!("echo {round}")).to_string().into_bytes();
        for (times, log) in times.iter_mut().zip(&logs) {
            times.push(log.append(payload.clone()));
        }
    }
    let [with, without] = times.map(Percentiles::of);
    println!("append to it               {with}");
    println!("append to an empty log     {without}");
    println!("large / empty  {:.2}   (aim: 1.3 or less)", with.median() / without.median());
    logs.into_iter().for_each(Recording::finish);
    let middle = format!("session-{:06}", events / SESSION / 2);
    let commands = [&[][..], &["show", &middle], &["show", "last"], &["sessions", "-n", "20"]];
    for arguments in commands {
        let run = |_| {
            let started = Instant::now();
            let status = large.command(arguments).stdout(Stdio::null()).status();
            assert!(status.expect("it starts").success());
            started.elapsed()
        };
        let best = (0..5).map(run).min().expect("some runs");
        println!("hookbus {:<24} {:.0} ms", arguments.join(" "), best.as_secs_f64() * 1e3);
    }
}

fn size_of(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).expect("a directory");
    files
        .map(|file| file.expect("a file"))
        .map(|file| match file.metadata() {
            Ok(data) if data.is_dir() => size_of(&file.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}
