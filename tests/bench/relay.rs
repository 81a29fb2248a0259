//! How fast the relay publishes a log to a real NATS server, compared in one run with a plain pipelined publisher of
//! the same messages.
//!
//! `tests/fetch-nats && cargo bench -p hookbus-tests --bench relay`

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, stream};
use hookbus::bus::Bus;
use hookbus::caller::Caller;
use hookbus::config::NatsSettings;
use hookbus::event::{Agent, EventId};
use hookbus::pipeline::{Call, handle};
use hookbus::relay::Relay;
use hookbus_tests::home::Home;
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;

const EVENTS: usize = 30_000;

/// How many unacknowledged messages the plain publisher has in flight.
const WINDOW: usize = 256;

/// Each is measured this often, in turn; the median counts.
const ROUNDS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let home = Home::new();
    let bus = Arc::new(Bus::for_daemon(&home.path(), &[]));
    fill(&bus).await;
    let (mut relayed, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let server = quiet_server();
        relayed.push(relay(&bus, &server));
        let bodies = server.bodies().await;
        drop(server);
        plain.push(publish(&quiet_server(), bodies).await);
    }
    let (relayed, plain) = (rate(relayed), rate(plain));
    println!("the relay, from the log        {relayed:>8.0} events/s");
    println!("plain, {WINDOW} in flight           {plain:>8.0} events/s");
    println!("relay / plain  {:.2}   (aim: 0.7 or more)", relayed / plain);
}

fn rate(mut took: Vec<Duration>) -> f64 {
    took.sort();
    f64::from(u32::try_from(EVENTS).unwrap_or(u32::MAX)) / took[took.len() / 2].as_secs_f64()
}

/// A server, after pending writes to the disk are finished, so that they are not measured.
fn quiet_server() -> NatsServer {
    rustix::fs::sync();
    NatsServer::start()
}

fn relay(bus: &Bus, server: &NatsServer) -> Duration {
    let settings = NatsSettings::for_servers(vec![server.url()]);
    let (appended, clock) = (bus.recorder.appended(), Arc::clone(&bus.clock));
    let started = Instant::now();
    let relay = Relay::start(bus.log.clone(), settings, appended, clock);
    while relay.state().report(None, bus.clock.now())["published"] != EVENTS {
        sleep(Duration::from_millis(2));
    }
    started.elapsed()
}

/// Records events through the real pipeline, many concurrently.
async fn fill(bus: &Arc<Bus>) {
    let payload = hermes_shell("echo something of an ordinary length").to_string().into_bytes();
    let local = tokio::task::LocalSet::new();
    for _ in 0..EVENTS / 500 {
        let calls = (0..500).map(|_| {
            let (bus, raw, at) = (Arc::clone(bus), payload.clone().into(), bus.clock.now());
            let caller = Caller::default();
            let (id, agent, deadline) = (EventId::mint(at), Agent::Hermes, Duration::from_mins(1));
            let call = Call { id, at, agent, raw, caller, deadline };
            local.spawn_local(async move { handle(call, &bus).await })
        });
        let calls: Vec<_> = calls.collect();
        local
            .run_until(async {
                for call in calls {
                    call.await.expect("it is recorded");
                }
            })
            .await;
    }
}

async fn publish(server: &NatsServer, bodies: Vec<(String, Vec<u8>)>) -> Duration {
    let client = async_nats::connect(server.url()).await.expect("a server");
    let context = jetstream::new(client);
    let config = stream::Config {
        name: "PLAIN".to_owned(),
        subjects: vec!["hookbus.>".to_owned()],
        ..Default::default()
    };
    context.create_stream(config).await.expect("a stream");
    let started = Instant::now();
    let mut waiting = std::collections::VecDeque::new();
    for (subject, body) in bodies {
        waiting.push_back(context.publish(subject, body.into()).await.expect("it is sent"));
        if waiting.len() == WINDOW {
            waiting.pop_front().expect("one").await.expect("it is stored");
        }
    }
    for acknowledged in waiting {
        acknowledged.await.expect("it is stored");
    }
    started.elapsed()
}
