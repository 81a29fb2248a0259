//! How long an agent's call takes without NATS, with NATS running, with NATS killed repeatedly, and with NATS
//! down: in turn in one run, as ratios. No time limit, so a slow machine causes no failure.
//!
//! `tests/fetch-nats && cargo build --release && cargo bench -p hookbus-tests --bench nats_failures`

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hookbus_tests::client::Client;
use hookbus_tests::home::{Daemon, Home};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;
use hookbus_tests::timing::{Percentiles, time};

/// Calls through `hookbus hook`, one at a time.
const ROUNDS: usize = 400;

/// Rounds of concurrent clients, and how many calls each makes in a round.
const CLIENT_ROUNDS: usize = 12;
const CLIENTS: usize = 16;
const CALLS: usize = 40;

const NAMES: [&str; 4] =
    ["no NATS configured", "NATS running", "NATS killed repeatedly", "NATS down"];

const RULE: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: no}\n";

fn main() {
    let (up, down) = (NatsServer::start(), NatsServer::prepare(&[]));
    let unstable = UnstableServer::start();
    let urls = [None, Some(up.url()), Some(unstable.url.clone()), Some(down.url())];
    let homes = urls.map(|url| Arc::new(home(url)));
    let _daemons: [Daemon; 4] = array::from_fn(|index| homes[index].serve());
    thread::sleep(Duration::from_secs(1));
    println!("hookbus hook, one at a time");
    compare(one_at_a_time(&homes));
    println!("{CLIENTS} concurrent clients, over the socket");
    compare(concurrent(&homes));
    println!("killed and restarted {} times", unstable.stop());
}

fn home(url: Option<String>) -> Home {
    let home = Home::with_new_binary("running");
    let nats = url.map_or_else(String::new, |url| format!("nats: {{url: \"{url}\"}}\n"));
    home.write_hooks(&format!("{nats}{RULE}"));
    home
}

/// Calls the homes in turn, so that other load affects all of them.
fn one_at_a_time(homes: &[Arc<Home>; 4]) -> [Vec<Duration>; 4] {
    let payload = hermes_shell("rm x").to_string().into_bytes();
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (times, home) in times.iter_mut().zip(homes) {
            times.push(time(home.command(["hook", "hermes"]), &payload));
        }
    }
    times
}

fn concurrent(homes: &[Arc<Home>; 4]) -> [Vec<Duration>; 4] {
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..CLIENT_ROUNDS {
        for (times, home) in times.iter_mut().zip(homes) {
            let client = |_| {
                let home = Arc::clone(home);
                thread::spawn(move || {
                    let (sender, payload) = (Client::new(&home), hermes_shell("rm x"));
                    let call = |_| {
                        let started = Instant::now();
                        sender.call(&payload);
                        started.elapsed()
                    };
                    (0..CALLS).map(call).collect::<Vec<_>>()
                })
            };
            let clients: Vec<_> = (0..CLIENTS).map(client).collect();
            let all = clients.into_iter().map(|client| client.join().expect("no client fails"));
            times.extend(all.flatten());
        }
    }
    times
}

fn compare(times: [Vec<Duration>; 4]) {
    let all = times.map(Percentiles::of);
    for (name, times) in NAMES.iter().zip(&all) {
        let ratio = |percent| times.at(percent) / all[0].at(percent);
        println!(
            "  {name:<28} {times}   compared with no NATS: p50 {:.2}, p99 {:.2}",
            ratio(50),
            ratio(99)
        );
    }
}

/// A server that is killed and restarted until it is stopped.
struct UnstableServer {
    url: String,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<usize>,
}

impl UnstableServer {
    fn start() -> Self {
        let mut server = NatsServer::start();
        let (url, stop) = (server.url(), Arc::new(AtomicBool::new(false)));
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut kills = 0;
            while !stopping.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(200 + 170 * (kills % 4)));
                server.kill();
                thread::sleep(Duration::from_millis(100 + 90 * (kills % 3)));
                server.run();
                kills += 1;
            }
            usize::try_from(kills).expect("few")
        });
        Self { url, stop, thread }
    }

    fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread ends")
    }
}
