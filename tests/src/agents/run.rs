//! What happened in one run: how the agent ended, what it printed, what the model was asked, and the
//! places it worked in, which stay on disk until the [`Run`] is dropped.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::group::Group;
use super::mask::Mask;
use super::outcome::Wire;
use super::process::Ended;
use super::scratch::Scratch;
use super::{ModelServer, Outcome, outcome};

/// One run of a real agent.
#[derive(Debug)]
pub struct Run {
    /// The name the test gave it.
    pub label: String,
    /// The agent's exit code (of the last prompt); `None` when a signal or the time limit ended it.
    pub exit: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// What it printed, over all prompts.
    pub stdout: String,
    /// What it printed on the side, over all prompts.
    pub stderr: String,
    /// The directory the agent worked in.
    pub work: PathBuf,
    /// The agent's home directory.
    pub home: PathBuf,
    /// The main conversation's request bodies, in order.
    pub requests: Vec<Value>,
    /// Every other model request's body, in order.
    pub side_requests: Vec<Value>,
    /// How many steps of the script were never asked for.
    pub steps_left: usize,
    /// How long all prompts took together.
    pub took: Duration,
    pub(super) wire: Wire,
    // Fields drop in this order: processes first, then the place they work in.
    _groups: Vec<Group>,
    pub(super) scratch: Scratch,
}

impl Run {
    pub(super) fn new(
        label: String,
        wire: Wire,
        scratch: Scratch,
        played: Played,
        model: &ModelServer,
    ) -> Self {
        Self {
            label,
            exit: played.exit,
            timed_out: played.timed_out,
            stdout: played.stdout,
            stderr: played.stderr,
            work: scratch.work(),
            home: scratch.home(),
            requests: model.requests(),
            side_requests: model.side_requests(),
            steps_left: model.steps_left(),
            took: played.took,
            wire,
            _groups: played.groups,
            scratch,
        }
    }

    /// The run without what differs between two runs of the same script.
    pub fn outcome(&self) -> Outcome {
        outcome::of(self)
    }

    /// A value without what differs between two runs of the same script: ids, times, places.
    pub fn masked(&self, value: &Value) -> Value {
        Mask::of(self).value(value)
    }

    /// A file of the work directory, or `None` when it is not there.
    pub fn file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work.join(path)).ok()
    }

    /// Everything the model was sent, as one text to search in.
    pub fn sent_to_the_model(&self) -> String {
        self.requests.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    }

    /// The agent's own log; empty for Gemini CLI, which keeps none.
    pub fn agent_log(&self) -> String {
        fs::read_to_string(self.home.join(".hermes/logs/agent.log")).unwrap_or_default()
    }
}

/// The processes of one run, put together.
#[derive(Debug, Default)]
pub(super) struct Played {
    exit: Option<i32>,
    timed_out: bool,
    stdout: String,
    stderr: String,
    groups: Vec<Group>,
    pub(super) took: Duration,
}

impl Played {
    pub(super) fn add(&mut self, ended: Ended) {
        self.exit = ended.exit;
        self.timed_out = ended.timed_out;
        self.stdout.push_str(&ended.stdout);
        self.stderr.push_str(&ended.stderr);
        self.groups.push(ended.group);
    }
}
