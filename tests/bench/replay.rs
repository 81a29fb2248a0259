//! How fast recorded tool calls are replayed through rules, compared in one run with a scan of the same log that only
//! parses the JSON; and how much memory a replay of one and of two million needs.
//!
//! `cargo build --release && cargo bench -p hookbus-tests --bench replay`

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hookbus::event::Agent;
use hookbus_tests::home::Home;
use hookbus_tests::payloads::{gemini_shell, hermes_shell};
use hookbus_tests::recording::{record_after, scan};
use serde_json::json;

const MILLION: usize = 1_000_000;

const POLICY: &str = r"
log: { synchronous: normal }
hooks:
  tool.before:
    - { name: no-rm, tool: shell, rule: { when: { command: 'rm\s+-rf\s+[/~]' }, block: deleting needs a person } }
    - { name: no-push, tool: shell, rule: { when: { command: 'git\s+push\s.*--force' }, block: pushing needs a person } }
    - { name: no-secrets, tool: [file.read, file.write], rule: { when: { path: '\.env$|id_rsa' }, block: secrets } }
";

fn main() {
    let home = Home::with_hooks(POLICY);
    let candidate = home.work().join("candidate.yaml");
    fs::write(&candidate, POLICY.replace("--force", "--(force|mirror)")).expect("a candidate");
    let candidate = candidate.to_string_lossy().into_owned();
    let mut before = None;
    for millions in 1..=2 {
        let (hermes, gemini) = (hermes_shell(""), gemini_shell(""));
        record_after(&home, (millions - 1) * MILLION, MILLION, |index| {
            let (agent, mut payload) = match index % 2 {
                0 => (Agent::Hermes, hermes.clone()),
                _ => (Agent::Gemini, gemini.clone()),
            };
            payload["session_id"] = json!(format!("session-{:05}", index / 1000));
            payload["tool_input"]["command"] = json!(command(index));
            (agent, payload)
        });
        // Each runs twice and the faster run counts: the first one also fills the page cache.
        let scan_time = (0..2).map(|_| scan(&home)).min().expect("two runs");
        let (took, memory) = (0..2).map(|_| replay(&home, &candidate)).min().expect("two runs");
        let ratio = scan_time.as_secs_f64() / took.as_secs_f64();
        println!("{millions} million tool calls");
        println!("  scan and parse          {:>7.2} s", scan_time.as_secs_f64());
        println!(
            "  hookbus replay --all    {:>7.2} s, {} MB at most",
            took.as_secs_f64(),
            memory >> 10
        );
        println!("  replay / scan  {ratio:.2}   (aim: 0.25 or more; memory under 200 MB)");
        if let Some(first) = before.replace(took) {
            let growth = took.as_secs_f64() / first.as_secs_f64();
            println!("  twice the log takes {growth:.2} times as long   (aim: about 2)");
        }
    }
}

fn command(index: usize) -> String {
    match index % 100 {
        0 => format!("git push --force origin topic-{index}"),
        1 => format!("git push --mirror backup-{index}"),
        2 => "rm -rf /srv/data".to_owned(),
        _ => format!("cargo test --package shop-{index} -- --nocapture && echo done"),
    }
}

/// Runs the real command; returns its time and its peak memory in KB.
fn replay(home: &Home, candidate: &str) -> (Duration, u64) {
    let started = Instant::now();
    let mut child = home
        .command(["replay", "--all", "--json", "--hooks", candidate])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("hookbus starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(now.unwrap_or(0));
        if let Some(ended) = child.try_wait().expect("it is ours") {
            break ended;
        }
        sleep(Duration::from_millis(2));
    };
    assert!(ended.success(), "the replay failed");
    (started.elapsed(), peak)
}
