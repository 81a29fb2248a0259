//! How fast events are counted: a rebuild compared in one run with a scan of the same log that only parses the JSON, the
//! observer in events per second, and every view of `hookbus stats` at a million events.
//!
//! `cargo build --release && cargo bench -p hookbus-tests --bench analytics`; `HOOKBUS_BENCH_EVENTS` sets another number.

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hookbus::event::Agent;
use hookbus_tests::home::Home;
use hookbus_tests::payloads::{gemini_shell, hermes_shell, one};
use hookbus_tests::recording::{query, record, scan};
use serde_json::json;

const MILLION: usize = 1_000_000;

const POLICY: &str = r#"
log: { synchronous: normal }
hooks:
  tool.before:
    - { name: no-rm, tool: shell, rule: { when: { command: 'rm\s+-rf\s+[/~]' }, block: deleting needs a person } }
    - { name: no-push, tool: shell, rule: { when: { command: 'git\s+push\s.*--force' }, block: pushing needs a person } }
  "*":
    - { mode: observe, analytics: true, source: log }
"#;

fn main() {
    let home = Home::with_hooks(POLICY);
    let after = one("hermes", "post_tool_call");
    let (hermes, gemini) = (hermes_shell(""), gemini_shell(""));
    let events = std::env::var_os("HOOKBUS_BENCH_EVENTS");
    let events =
        events.map_or(MILLION, |events| events.to_string_lossy().parse().expect("a number"));
    record(&home, events, |index| {
        let (agent, mut payload) = match index % 4 {
            0 | 2 => (Agent::Hermes, hermes.clone()),
            1 => (Agent::Hermes, after.clone()),
            _ => (Agent::Gemini, gemini.clone()),
        };
        // Calls and their results have the same session, input and id.
        let number = index / 2;
        payload["session_id"] = json!(format!("session-{:05}", index / 1000));
        payload["cwd"] = json!(format!("/srv/project-{}", index / 20_000));
        payload["tool_input"]["command"] = json!(command(number));
        if index % 4 != 3 {
            payload["extra"]["tool_call_id"] = json!(format!("call-{number}"));
        }
        (agent, payload)
    });
    let rows = query(&home, "SELECT count(*) FROM events")[0];
    // Each runs twice and the faster run counts: the first one also fills the page cache.
    let scan_time = (0..2).map(|_| scan(&home)).min().expect("two runs");
    let rebuild = || time(&home, &["stats", "--rebuild", "--json"]);
    let rebuild_time = (0..2).map(|_| rebuild()).min().expect("two runs");
    println!("{rows} rows");
    println!("  scan and parse         {:>7.2} s", scan_time.as_secs_f64());
    println!("  rebuild                {:>7.2} s", rebuild_time.as_secs_f64());
    let ratio = scan_time.as_secs_f64() / rebuild_time.as_secs_f64();
    println!("  scan / rebuild {ratio:.2}   (aim: 0.20 or more)");
    fs::remove_file(home.path().join("analytics.db")).expect("a database");
    let observer = time(&home, &["observe", "analytics", "--drain"]);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = rows as f64 / observer.as_secs_f64();
    println!("  observer               {rate:>7.0} rows per second   (aim: 5,000 or more)");
    for by in ["agent", "tool", "hook", "project", "model", "host", "day", "site", "file"] {
        let took = (0..3).map(|_| time(&home, &["stats", "--by", by, "--json"])).min();
        let took = took.expect("three runs").as_secs_f64() * 1000.0;
        println!("  stats --by {by:<10} {took:>9.1} ms   (aim: under 100)");
    }
    let took = (0..3).map(|_| time(&home, &["stats"])).min().expect("three runs");
    println!("  stats                {:>9.1} ms   (aim: under 100)", took.as_secs_f64() * 1000.0);
}

fn command(index: usize) -> String {
    match index % 100 {
        0 => format!("git push --force origin topic-{index}"),
        1 => "rm -rf /srv/data".to_owned(),
        2 => format!("curl -o page-{} https://host-{}.example.org/x", index % 50, index % 20),
        _ => format!("cargo test --package shop-{} -- --nocapture && echo done", index % 500),
    }
}

/// How long the real command takes.
fn time(home: &Home, arguments: &[&str]) -> Duration {
    let started = Instant::now();
    let status = home
        .command(arguments.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("hookbus starts");
    assert!(status.success(), "{arguments:?}");
    started.elapsed()
}
