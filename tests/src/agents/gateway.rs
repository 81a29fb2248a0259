//! A real `hermes gateway run` whose only chat platform is a pair of files: a test writes messages to one
//! and reads the gateway's answers from the other.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::outcome::Protocol;
use super::process::{ProcessResult, wait};
use super::process_group::ProcessGroup;
use super::run::RunOutput;
use super::setup::RunSetup;
use super::{ModelServer, Run, hermes_program};

/// The chat platform, a Hermes plugin.
pub(super) const PLUGIN: [(&str, &str); 2] = [
    ("plugin.yaml", "name: filechat-platform\nlabel: FileChat\nkind: platform\nversion: 0.0.1\n"),
    ("__init__.py", include_str!("filechat.py")),
];

/// How long it may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A running gateway; killed when dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    group: Option<ProcessGroup>,
    setup: Option<RunSetup>,
    model: ModelServer,
    inbox: PathBuf,
    outbox: PathBuf,
    log: PathBuf,
}

impl Gateway {
    pub(super) fn start(mut setup: RunSetup, model: ModelServer) -> Self {
        let file = |name: &str| setup.scratch.root().join(name);
        let (inbox, outbox, log) = (file("inbox"), file("outbox"), file("gateway.log"));
        setup.env("FILECHAT_INBOX", &inbox);
        setup.env("FILECHAT_OUTBOX", &outbox);
        setup.env("FILECHAT_ALLOW_ALL_USERS", "true");
        let mut command = Command::new(hermes_program());
        command.args(["gateway", "run"]);
        setup.isolate(&mut command);
        let log_file = || File::create(&log).expect("a log file");
        command.stdin(Stdio::null()).stdout(log_file()).stderr(log_file()).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let group = Some(ProcessGroup::of(&child));
        Self { child, group, setup: Some(setup), model, inbox, outbox, log }
    }

    /// Sends a chat message.
    pub fn send(&self, text: &str) {
        let mut inbox =
            OpenOptions::new().create(true).append(true).open(&self.inbox).expect("the inbox");
        writeln!(inbox, "{}", json!({"text": text})).expect("the inbox");
    }

    /// The gateway's answers so far.
    pub fn answers(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.outbox).unwrap_or_default();
        let content = |line: &str| {
            serde_json::from_str::<Value>(line).ok()?["content"].as_str().map(str::to_owned)
        };
        text.lines().filter_map(content).collect()
    }

    /// Sends a chat message and waits for an answer that contains `answer`.
    pub fn send_and_expect(&self, text: &str, answer: &str) {
        let before = self.answers().len();
        self.send(text);
        let found = || self.answers().iter().skip(before).any(|it| it.contains(answer));
        let started = Instant::now();
        while !found() {
            assert!(
                started.elapsed() < Duration::from_mins(1),
                "no `{answer}` after `{text}`: {:?}\n{}",
                self.answers(),
                fs::read_to_string(&self.log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The requests to the model so far.
    pub fn requests(&self) -> Vec<Value> {
        self.model.requests()
    }

    /// Runs a `hermes` command while the gateway runs, with the same home.
    pub fn run_hermes(&self, words: &[&str]) {
        let mut command = Command::new(hermes_program());
        command.args(words).stdin(Stdio::null());
        self.setup.as_ref().expect("it runs").isolate(&mut command);
        let output = command.output().expect("Hermes runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    /// Stops it with SIGTERM and waits for its exit.
    pub fn stop(mut self) -> Run {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), Signal::TERM).expect("our own child");
        let ended = wait(&mut self.child, Instant::now(), STOP_LIMIT);
        let mut group = self.group.take().expect("it runs");
        if ended.is_none() {
            group.kill_with_descendants();
            self.child.wait().expect("our own child");
        }
        group.look_for_members();
        let mut output = RunOutput::default();
        output.add(ProcessResult {
            exit: ended.and_then(|status| status.code()),
            timed_out: ended.is_none(),
            stdout: fs::read_to_string(&self.log).unwrap_or_default(),
            stderr: String::new(),
            group,
        });
        let setup = self.setup.take().expect("it runs");
        Run::new(setup.label, Protocol::OpenAi, setup.scratch, output, &self.model)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(group) = &mut self.group {
            group.kill_with_descendants();
            drop(self.child.wait());
        }
    }
}
