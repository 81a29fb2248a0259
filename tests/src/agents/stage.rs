//! What both agents' runs have in common: a scratch place, a script, prompts, an environment of its
//! own, configuration. It plays the prompts one process after the other and gathers the [`Run`].

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::outcome::Wire;
use super::run::Played;
use super::scratch::{self, Scratch};
use super::{Act, ModelServer, Run, Step, installed, process, settings, terminal};

/// A healthy run takes seconds; this one hangs.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// Agents look for updates and prices on the network; a proxy that is not there ends that at once.
const NO_WAY_OUT: &str = "http://127.0.0.1:9";

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) label: String,
    pub(super) scratch: Scratch,
    pub(super) settings: Value,
    pub(super) prompts: Vec<String>,
    pub(super) script: Vec<Step>,
    pub(super) limit: Duration,
    env: Vec<(String, OsString)>,
}

impl Stage {
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

    /// Starts every prompt with `command`, which is told whether the conversation goes on.
    pub(super) fn play(
        self,
        wire: Wire,
        model: &ModelServer,
        command: impl Fn(&str, Turn) -> Command,
    ) -> Run {
        let started = Instant::now();
        let mut played = Played::default();
        for (index, prompt) in self.prompts.iter().enumerate() {
            let turn = if index == 0 { Turn::First } else { Turn::Later };
            let mut command = command(prompt, turn);
            self.enclose(&mut command);
            let ended = process::run(command, &self.scratch, self.limit);
            let stop = ended.timed_out;
            played.add(ended);
            if stop {
                break;
            }
        }
        played.took = started.elapsed();
        Run::new(self.label, wire, self.scratch, played, model)
    }

    /// Starts `command` at a terminal, before a person who does `acts`.
    pub(super) fn play_at_a_terminal(
        self,
        wire: Wire,
        model: &ModelServer,
        mut command: Command,
        acts: &[Act<'_>],
    ) -> Run {
        let started = Instant::now();
        self.enclose(&mut command);
        let mut played = Played::default();
        played.add(terminal::run(command, acts, self.limit));
        played.took = started.elapsed();
        Run::new(self.label, wire, self.scratch, played, model)
    }

    /// Gives the agent nothing of the tester's environment but the way to programs.
    pub(super) fn enclose(&self, command: &mut Command) {
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
            .env("HTTP_PROXY", NO_WAY_OUT)
            .env("HTTPS_PROXY", NO_WAY_OUT)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
    }
}

/// Whether a prompt opens the conversation or goes on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    First,
    Later,
}
