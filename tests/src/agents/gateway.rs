//! A real `hermes gateway run` whose only chat platform is a pair of files: what a test says arrives as
//! a message, what the gateway answers can be read.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::group::Group;
use super::outcome::Wire;
use super::process::{Ended, wait};
use super::run::Played;
use super::stage::Stage;
use super::{ModelServer, Run, hermes_program};
use crate::home::wait_until;

/// The platform, as a plugin.
pub(super) const PLUGIN: [(&str, &str); 2] = [
    ("plugin.yaml", "name: filechat-platform\nlabel: FileChat\nkind: platform\nversion: 0.0.1\n"),
    ("__init__.py", include_str!("filechat.py")),
];

const GOODBYE: Duration = Duration::from_secs(30);

/// A gateway that runs; ended when dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    group: Option<Group>,
    stage: Option<Stage>,
    model: ModelServer,
    inbox: PathBuf,
    outbox: PathBuf,
    log: PathBuf,
}

impl Gateway {
    pub(super) fn start(mut stage: Stage, model: ModelServer) -> Self {
        let place = |name: &str| stage.scratch.root().join(name);
        let (inbox, outbox, log) = (place("inbox"), place("outbox"), place("gateway.log"));
        stage.env("FILECHAT_INBOX", &inbox);
        stage.env("FILECHAT_OUTBOX", &outbox);
        stage.env("FILECHAT_ALLOW_ALL_USERS", "true");
        let mut command = Command::new(hermes_program());
        command.args(["gateway", "run"]);
        stage.enclose(&mut command);
        let file = || File::create(&log).expect("a file in the scratch place");
        command.stdin(Stdio::null()).stdout(file()).stderr(file()).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let group = Some(Group::of(&child));
        Self { child, group, stage: Some(stage), model, inbox, outbox, log }
    }

    /// Says something in a chat.
    pub fn say(&self, text: &str) {
        let mut inbox =
            OpenOptions::new().create(true).append(true).open(&self.inbox).expect("the inbox");
        writeln!(inbox, "{}", json!({"text": text})).expect("the inbox");
    }

    /// What the gateway has answered so far.
    pub fn answers(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.outbox).unwrap_or_default();
        let content = |line: &str| {
            serde_json::from_str::<Value>(line).ok()?["content"].as_str().map(str::to_owned)
        };
        text.lines().filter_map(content).collect()
    }

    /// Says something and waits until an answer holds this.
    pub fn hears(&self, text: &str, answer: &str) {
        let before = self.answers().len();
        self.say(text);
        let found = || self.answers().iter().skip(before).any(|heard| heard.contains(answer));
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

    /// What the model was asked so far.
    pub fn requests(&self) -> Vec<Value> {
        self.model.requests()
    }

    /// Runs a command of Hermes' command line beside the gateway, in the same home.
    pub fn beside(&self, words: &[&str]) {
        let mut command = Command::new(hermes_program());
        command.args(words).stdin(Stdio::null());
        self.stage.as_ref().expect("it runs").enclose(&mut command);
        let output = command.output().expect("Hermes runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    /// Waits for something that must come true.
    pub fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        wait_until(what, is_so);
    }

    /// Asks it to end, and waits for that.
    pub fn stop(mut self) -> Run {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), Signal::TERM).expect("our own child");
        let ended = wait(&mut self.child, Instant::now(), GOODBYE);
        let mut group = self.group.take().expect("it runs");
        if ended.is_none() {
            group.kill_with_descendants();
            self.child.wait().expect("our own child");
        }
        group.look_for_members();
        let mut played = Played::default();
        played.add(Ended {
            exit: ended.and_then(|status| status.code()),
            timed_out: ended.is_none(),
            stdout: fs::read_to_string(&self.log).unwrap_or_default(),
            stderr: String::new(),
            group,
        });
        let stage = self.stage.take().expect("it runs");
        Run::new(stage.label, Wire::OpenAi, stage.scratch, played, &self.model)
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
