//! The time from the start of a hook until a long-lived observer has read the event, from the log and over NATS,
//! compared with the time of the hook itself.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench whose setup fails has failed; the numbers are the result"
)]

use std::fs;
use std::time::{Duration, Instant};

use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;

const EVENTS: usize = 400;

fn main() {
    let nats = NatsServer::start();
    let from_log = measure("");
    let over_nats = measure(&format!("nats: {{url: \"{}\"}}\n", nats.url()));
    for (what, (hook, observed)) in [("from the log", from_log), ("over NATS", over_nats)] {
        println!(
            "observer {what}: p50 {:.2} ms, p99 {:.2} ms after the hook began; the hook itself took p50 {:.2} ms, p99 {:.2} ms ({:.2} times as long at p50)",
            at(&observed, 50),
            at(&observed, 99),
            at(&hook, 50),
            at(&hook, 99),
            at(&observed, 50) / at(&hook, 50),
        );
    }
}

/// The times of the hooks, and the times until the observer had the event, in milliseconds.
fn measure(nats: &str) -> (Vec<f64>, Vec<f64>) {
    let home = Home::with_daemon("running");
    let seen = home.work().join("seen");
    let script = format!(
        "#!/usr/bin/python3 -S\nimport json, sys, time, datetime\nfor line in sys.stdin:\n    now = time.time()\n    began = json.loads(line)['hookbus']['time']\n    began = datetime.datetime.fromisoformat(began.replace('Z', '+00:00')).timestamp()\n    print(f'{{(now - began) * 1000:.3f}}', file=open({:?}, 'a'))\n    print('ok', flush=True)\n",
        seen.to_string_lossy()
    );
    home.script("watch.py", &script);
    home.write_hooks(&format!(
        "{nats}hooks:\n  tool.before:\n    - {{name: watch, mode: observe, long_lived: true, command: ../watch.py}}\n"
    ));
    let _daemon = home.serve();
    let lines = || fs::read_to_string(&seen).unwrap_or_default();
    // The first events start all processes.
    for _ in 0..20 {
        home.answer("hermes", &hermes_shell("echo warm"));
    }
    wait_until("the first events are observed", || lines().lines().count() == 20);
    let mut hook = Vec::new();
    for round in 0..EVENTS {
        let started = Instant::now();
        home.answer("hermes", &hermes_shell(&format!("echo {round}")));
        hook.push(started.elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(Duration::from_millis(5));
    }
    wait_until("all are observed", || lines().lines().count() == 20 + EVENTS);
    let observed = lines().lines().skip(20).map(|line| line.parse().expect("a number")).collect();
    (sorted(hook), sorted(observed))
}

fn sorted(mut all: Vec<f64>) -> Vec<f64> {
    all.sort_by(f64::total_cmp);
    all
}

fn at(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}
