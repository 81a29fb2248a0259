//! What the runs of both agents have in common: temporary directories, a script, prompts, an environment and
//! configuration. It runs one process per prompt and collects the results in a [`Run`].

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::outcome::Protocol;
use super::run::RunOutput;
use super::scratch::{self, Scratch};
use super::{Act, ModelServer, Run, Step, installed, process, settings, terminal};

/// A run takes seconds, unless it hangs.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// Agents look for updates and prices on the network; with a proxy that does not exist, that fails at once.
const NO_PROXY: &str = "http://127.0.0.1:9";

#[derive(Debug)]
pub(super) struct RunSetup {
    pub(super) label: String,
    pub(super) scratch: Scratch,
    pub(super) settings: Value,
    pub(super) prompts: Vec<String>,
    pub(super) script: Vec<Step>,
    pub(super) limit: Duration,
    env: Vec<(String, OsString)>,
}

impl RunSetup {
    pub(super) fn new(label: &str, settings: Value) -> Self {
        Self {
            label: label.to_owned(),
            scratch: Scratch::new(),
            settings,
            prompts: vec!["Go on.".to_owned()],
            script: Vec::new(),
            limit: TIME_LIMIT,
            env: Vec::new(),
        }
    }

    pub(super) fn env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.to_owned(), value.into()));
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        settings::set(&mut self.settings, name, value);
    }

    pub(super) fn append(&mut self, name: &str, value: Value) {
        settings::append(&mut self.settings, name, value);
    }

    pub(super) fn file(&self, path: &str, content: &str) {
        scratch::write(&self.scratch.work().join(path), content);
    }

    pub(super) fn program(&self, name: &str, content: &str) -> PathBuf {
        self.scratch.program(name, content)
    }

    /// Runs every prompt with `command`.
    pub(super) fn run_prompts(
        self,
        protocol: Protocol,
        model: &ModelServer,
        command: impl Fn(&str, Turn) -> Command,
    ) -> Run {
        let started = Instant::now();
        let mut output = RunOutput::default();
        for (index, prompt) in self.prompts.iter().enumerate() {
            let turn = if index == 0 { Turn::First } else { Turn::Later };
            let mut command = command(prompt, turn);
            self.isolate(&mut command);
            let result = process::run(command, &self.scratch, self.limit);
            let stop = result.timed_out;
            output.add(result);
            if stop {
                break;
            }
        }
        output.took = started.elapsed();
        Run::new(self.label, protocol, self.scratch, output, model)
    }

    /// Runs `command` at a terminal, with a user who does `acts`.
    pub(super) fn run_at_a_terminal(
        self,
        protocol: Protocol,
        model: &ModelServer,
        mut command: Command,
        acts: &[Act<'_>],
    ) -> Run {
        let started = Instant::now();
        self.isolate(&mut command);
        let mut output = RunOutput::default();
        output.add(terminal::run(command, acts, self.limit));
        output.took = started.elapsed();
        Run::new(self.label, protocol, self.scratch, output, model)
    }

    /// Replaces the environment: only `PATH` is inherited.
    pub(super) fn isolate(&self, command: &mut Command) {
        let path = installed::variable("PATH").expect("a PATH to find programs with");
        command
            .current_dir(self.scratch.work())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.scratch.home())
            .env("TMPDIR", self.scratch.temporary())
            .env("USER", "tester")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", "1")
            .env("COLORTERM", "truecolor")
            .env("HTTP_PROXY", NO_PROXY)
            .env("HTTPS_PROXY", NO_PROXY)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
    }
}

/// Whether a prompt starts the conversation or continues it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    First,
    Later,
}
