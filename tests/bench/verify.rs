//! How fast `hookbus verify` checks a log, compared in one run with a scan of the same log that only parses the JSON.
//!
//! `cargo build --release -p hookbus-cli && cargo bench -p hookbus-tests --bench verify`; `HOOKBUS_BENCH_EVENTS=10000000` for a log of
//! ten million events.

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::time::{Duration, Instant};

use hookbus_tests::home::Home;
use hookbus_tests::recording::{Mixed, scan};

fn main() {
    let events = std::env::var_os("HOOKBUS_BENCH_EVENTS");
    let events = events.and_then(|text| text.to_str()?.parse().ok()).unwrap_or(1_000_000);
    let home = Home::with_hooks("log: { synchronous: normal }\n");
    Mixed { events, sessions: events / 500 + 1 }.record(&home);
    // Each runs twice and the faster run counts: the first one also fills the page cache.
    let scanned = (0..2).map(|_| scan(&home)).min().expect("two runs");
    let verified = (0..2).map(|_| run(&home, &["verify"])).min().expect("two runs");
    println!("{events} events");
    println!("  scan and parse             {:>7.2} s", scanned.as_secs_f64());
    println!("  hookbus verify             {:>7.2} s", verified.as_secs_f64());
    let ratio = scanned.as_secs_f64() / verified.as_secs_f64();
    println!("  verify / scan  {ratio:.2}   (aim: 0.3 or more)");
    let signed = run(&home, &["anchor"]);
    println!("  hookbus anchor, the first  {:>7.2} s", signed.as_secs_f64());
    println!(
        "  hookbus verify --from last {:>7.2} s",
        run(&home, &["verify", "--from", "last"]).as_secs_f64()
    );
}

fn run(home: &Home, arguments: &[&str]) -> Duration {
    let started = Instant::now();
    home.text(arguments);
    started.elapsed()
}
