//! How long `hookbus hook` takes, as ratios in one run: compared with a program that does nothing, and with a
//! Python script that makes the same decision. No time limit, so a slow machine causes no failure.
//!
//! `cargo build --release && cargo bench -p hookbus-tests --bench front_door`

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hookbus_tests::home::Home;
use hookbus_tests::payloads::hermes_shell;
use hookbus_tests::timing::{Percentiles, time};

const ROUNDS: usize = 500;

const RULE: &str = "hooks:\n  tool.before:\n    - name: no-rm\n      tool: shell\n      \
                    rule: {when: {command: 'rm\\s+-rf\\s+/'}, block: no}\n";

const SCRIPT: &str = "import json, re, sys\nevent = json.load(sys.stdin)\n\
                      if re.search(r'rm\\s+-rf\\s+/', event['tool_input'].get('command', '')):\n    \
                      print(json.dumps({'decision': 'block', 'reason': 'no'}))\n";

fn main() {
    let payload = hermes_shell("rm -rf /").to_string().into_bytes();
    one_at_a_time(&payload);
    without_a_daemon(&payload);
}

/// Runs the three in turn, so that other load affects all of them.
fn one_at_a_time(payload: &[u8]) {
    let home = Home::with_daemon("running");
    home.write_hooks(RULE);
    let script = home.script("hook.py", SCRIPT);
    let _daemon = home.serve();
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let nothing = Command::new(env!("CARGO_BIN_EXE_nothing"));
        let mut python = Command::new("/usr/bin/python3");
        python.arg(&script);
        let commands = [nothing, home.command(["hook", "hermes"]), python];
        for (times, command) in times.iter_mut().zip(commands) {
            times.push(time(command, payload));
        }
    }
    let [nothing, hook, python] = times.map(Percentiles::of);
    println!("a program that does nothing            {nothing}");
    println!("hookbus hook, daemon, rule, durable    {hook}");
    println!("the same decision by a Python script   {python}");
    println!("hookbus / nothing  {:.2}   (aim: 1.6 or less)", hook.median() / nothing.median());
    println!("hookbus / Python   1/{:.0}   (aim: 1/15 or less)", python.median() / hook.median());
}

/// Runs eight processes concurrently, each of which opens the log itself.
fn without_a_daemon(payload: &[u8]) {
    let home = Arc::new(Home::with_hooks(RULE));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (home, payload) = (Arc::clone(&home), payload.to_vec());
            thread::spawn(move || {
                let call = |_| time(home.command(["hook", "hermes"]), &payload);
                (0..ROUNDS / 8).map(call).collect::<Vec<_>>()
            })
        })
        .collect();
    let times = clients.into_iter().flat_map(|client| client.join().expect("no client fails"));
    println!("eight concurrent, without a daemon     {}", Percentiles::of(times.collect()));
}
