//! What the starter packs cost, as ratios in one run: `hookbus hook` with all of them beside one rule, with a daemon and
//! without; a replay of a million calls through them beside a scan that only parses the JSON; and how long the worst
//! shell lines take to read. No time limit, so a slow machine causes no failure.
//!
//! `cargo build --release && cargo bench -p hookbus-tests --bench policy`

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hookbus::event::Agent;
use hookbus::shell::{Start, read};
use hookbus_tests::home::Home;
use hookbus_tests::payloads::{gemini_shell, hermes_shell};
use hookbus_tests::recording::{record_after, scan};
use hookbus_tests::timing::{Percentiles, time};
use hookbus_tests::words::Words;
use serde_json::json;

const ROUNDS: usize = 400;
const MILLION: usize = 1_000_000;

const ONE_RULE: &str = "hooks:\n  tool.before:\n    - name: no-rm\n      tool: shell\n      \
                        rule: {when: {command: 'rm\\s+-rf\\s+/'}, block: no}\n";
const STARTER: &str = "use: [starter]\n";

/// What agents run most of the time.
const LINES: [&str; 8] = [
    "cargo test --package shop -- --nocapture && echo done",
    "git status --short && git diff --stat HEAD~1 -- src tests",
    "cd packages/web && npm run build 2>&1 | tail -n 40",
    "rg -n 'fn handle' src | head -20; sed -n '1,80p' src/main.rs",
    "python3 -m pytest tests/test_api.py -x -q --maxfail=1",
    "cat > notes.md <<'EOF'\n# Notes\n\n- one\n- two\nEOF",
    "find . -name '*.orig' -delete; ls -la target/debug | wc -l",
    "git commit -am 'Read the file once' && git push -u origin topic",
];

/// How many random lines are read.
const FUZZED: usize = 20_000;

/// What random lines are made of: the words and signs that a reader of shell lines treats in a way of its own.
const PIECES: [&str; 72] = [
    " ",
    "  ",
    "\n",
    "\t",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "(",
    ")",
    "((",
    "))",
    "{ ",
    "}",
    "[[ ",
    " ]]",
    "[",
    "]",
    "$(",
    "`",
    "${",
    "${a:-",
    "$((",
    "$x",
    "$@",
    "$'",
    "$\"",
    "'",
    "\"",
    "\\",
    "<",
    ">",
    ">>",
    "<<E\n",
    "E\n",
    "<<<",
    "<(",
    ">&2",
    "2>",
    "#",
    "!",
    "*",
    "?",
    "~/",
    "{a,b}",
    "{1..9}",
    "x=",
    "x=$x",
    "x+=(1 2)",
    "if ",
    "then ",
    "else ",
    "fi ",
    "for a in 1 2; do ",
    "while ",
    "do ",
    "done ",
    "case x in ",
    "esac ",
    "f() ",
    "eval ",
    "sh -c '",
    "xargs ",
    "sudo ",
    "env -S ",
    "find . -exec ",
    "python3 -c '",
    "rm -rf ",
    "git -c a=b push -f ",
    "é漢🦀",
];

fn main() {
    front_door("with a daemon", "running");
    front_door("without a daemon", "off");
    shell_lines();
    fuzzed_lines();
    replay_a_million("as agents repeat them", |_| String::new());
    replay_a_million("no line twice", |index| format!(" # {index}"));
}

/// Both in turn, so that other load affects both.
fn front_door(what: &str, daemon: &'static str) {
    let homes = [ONE_RULE, STARTER].map(|policy| {
        let home = Home::with_daemon(daemon);
        home.write_hooks(policy);
        home
    });
    let _daemons = (daemon == "running").then(|| homes.each_ref().map(Home::serve));
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..ROUNDS {
        let payload = hermes_shell(LINES[round % LINES.len()]).to_string().into_bytes();
        for (times, home) in times.iter_mut().zip(&homes) {
            times.push(time(home.command(["hook", "hermes"]), &payload));
        }
    }
    let [one, all] = times.map(Percentiles::of);
    println!("hookbus hook, one rule, {what}          {one}");
    println!("hookbus hook, starter packs, {what}     {all}");
    println!("packs / one rule  {:.2}   (aim: 1.1 or less)", all.median() / one.median());
}

/// Usual lines, and lines that are made to be slow.
fn shell_lines() {
    let start = Start { home: Some("/home/you".into()), ..Start::default() };
    let each = LINES.map(|line| timed(line, &start));
    let worst = each.into_iter().max().expect("some lines");
    println!("reading a usual shell line: {worst:?} at most");
    let hard = [
        "(".repeat(60_000),
        "$(".repeat(30_000),
        "`".repeat(60_001),
        "{ ".repeat(30_000),
        "a && ".repeat(12_000),
        "<<E ".repeat(15_000),
        "${a:-".repeat(12_000),
        "x=$x$x; ".repeat(8_000),
        "{a,b}".repeat(12_000),
        "case x in ".repeat(6_000),
        "[[ ( ".repeat(12_000),
        "sh -c '".repeat(9_000),
        "f() { f | f; }; f; ".repeat(3_000),
        "for a in 1 2 3 4; do ".repeat(3_000),
        "rm -rf ".to_owned() + &"a ".repeat(30_000),
    ];
    for line in hard {
        println!("  {:<24} {:?}", line.chars().take(20).collect::<String>(), timed(&line, &start));
    }
}

/// Lines of random pieces, of up to 64 KiB: the slowest of them, and how many took longer than the aim.
fn fuzzed_lines() {
    const AIM: Duration = Duration::from_millis(5);
    let start = Start { home: Some("/home/you".into()), ..Start::default() };
    let mut random = Words::new(11);
    let (mut slowest, mut late) = ((Duration::ZERO, String::new()), 0);
    for round in 0..FUZZED {
        // Most are short; every tenth is as long as a line may be read.
        let length = if round % 10 == 0 { 65_536 } else { 16 + below(&mut random, 2_000) };
        // A few pieces per line, so that each is repeated and nested.
        let pieces: Vec<&str> =
            (0..=below(&mut random, 6)).map(|_| PIECES[below(&mut random, PIECES.len())]).collect();
        let mut line = String::new();
        while line.len() < length {
            line.push_str(pieces[below(&mut random, pieces.len())]);
        }
        let first = timed_once(&line, &start);
        // Other processes take time too: a line counts as slow if it is slow each time.
        let took = if first > AIM { timed(&line, &start) } else { first };
        late += usize::from(took > AIM);
        if took > slowest.0 {
            slowest = (took, line.chars().take(60).collect());
        }
    }
    println!("{FUZZED} fuzzed lines: {late} took longer than {AIM:?}   (aim: none)");
    println!("  the slowest: {:?} for {:?}", slowest.0, slowest.1);
}

fn below(random: &mut Words, limit: usize) -> usize {
    let limit = u64::try_from(limit).expect("a small number");
    usize::try_from(random.below(limit)).expect("a small number")
}

/// The fastest of some readings: what other processes take does not count.
fn timed(line: &str, start: &Start) -> Duration {
    (0..20).map(|_| timed_once(line, start)).min().expect("some readings")
}

fn timed_once(line: &str, start: &Start) -> Duration {
    let started = Instant::now();
    let view = read(line, start);
    let took = started.elapsed();
    drop(view);
    took
}

/// A replay asks rules once about calls that repeat, so it also matters how often they do.
fn replay_a_million(what: &str, end_of_line: impl Fn(usize) -> String + Sync) {
    let home = Home::with_hooks("log: { synchronous: normal }\n");
    let candidate = home.work().join("starter.yaml");
    fs::write(&candidate, STARTER).expect("a candidate");
    let (hermes, gemini) = (hermes_shell(""), gemini_shell(""));
    record_after(&home, 0, MILLION, |index| {
        let (agent, mut payload) = match index % 2 {
            0 => (Agent::Hermes, hermes.clone()),
            _ => (Agent::Gemini, gemini.clone()),
        };
        payload["session_id"] = json!(format!("session-{:05}", index / 1000));
        payload["tool_input"]["command"] =
            json!(LINES[index % LINES.len()].to_owned() + &end_of_line(index));
        (agent, payload)
    });
    let scan = (0..2).map(|_| scan(&home)).min().expect("two runs");
    let replay =
        (0..2).map(|_| replay(&home, &candidate.to_string_lossy())).min().expect("two runs");
    println!(
        "a million calls, {what}: scan and parse {scan:.2?}, replay through the packs {replay:.2?}"
    );
    println!(
        "replay / scan  {:.2}   (aim: 0.2 or more)",
        scan.as_secs_f64() / replay.as_secs_f64()
    );
}

fn replay(home: &Home, candidate: &str) -> Duration {
    let started = Instant::now();
    let mut command = home.command(["replay", "--all", "--json", "--hooks", candidate]);
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("hookbus runs");
    assert!(ended.success(), "the replay failed");
    started.elapsed()
}
