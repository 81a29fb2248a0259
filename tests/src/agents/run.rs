//! The result of one run: the agent's exit, its output, its requests to the model, and its directories, which
//! stay on disk until the [`Run`] is dropped.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::mask::Mask;
use super::outcome::Protocol;
use super::process::ProcessResult;
use super::process_group::ProcessGroup;
use super::scratch::Scratch;
use super::{ModelServer, Outcome, outcome};

/// One run of a real agent.
#[derive(Debug)]
pub struct Run {
    /// The name the test gave it.
    pub label: String,
    /// The exit code of the last prompt; `None` if a signal or the time limit ended it.
    pub exit: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// The stdout of all prompts.
    pub stdout: String,
    /// The stderr of all prompts.
    pub stderr: String,
    /// The agent's working directory.
    pub work: PathBuf,
    /// The agent's home directory.
    pub home: PathBuf,
    /// The bodies of the main conversation's requests, in order.
    pub requests: Vec<Value>,
    /// The bodies of every other model request, in order.
    pub side_requests: Vec<Value>,
    /// How many steps of the script were not used.
    pub steps_left: usize,
    /// How long all prompts took together.
    pub took: Duration,
    pub(super) protocol: Protocol,
    // Fields are dropped in this order: processes first, then their directory.
    _groups: Vec<ProcessGroup>,
    pub(super) scratch: Scratch,
}

impl Run {
    pub(super) fn new(
        label: String,
        protocol: Protocol,
        scratch: Scratch,
        output: RunOutput,
        model: &ModelServer,
    ) -> Self {
        Self {
            label,
            exit: output.exit,
            timed_out: output.timed_out,
            stdout: output.stdout,
            stderr: output.stderr,
            work: scratch.work(),
            home: scratch.home(),
            requests: model.requests(),
            side_requests: model.side_requests(),
            steps_left: model.steps_left(),
            took: output.took,
            protocol,
            _groups: output.groups,
            scratch,
        }
    }

    /// The run in a form that can be compared with another run of the same script.
    pub fn outcome(&self) -> Outcome {
        outcome::of(self)
    }

    /// A value with ids, times and paths masked, which differ between two runs of the same script.
    pub fn masked(&self, value: &Value) -> Value {
        Mask::of(self).value(value)
    }

    /// A file of the working directory, if it exists.
    pub fn file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work.join(path)).ok()
    }

    /// All requests to the model, as one text to search in.
    pub fn sent_to_the_model(&self) -> String {
        self.requests.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    }

    /// The agent's log; empty for Gemini CLI, which has none.
    pub fn agent_log(&self) -> String {
        fs::read_to_string(self.home.join(".hermes/logs/agent.log")).unwrap_or_default()
    }
}

/// The results of all processes of one run.
#[derive(Debug, Default)]
pub(super) struct RunOutput {
    exit: Option<i32>,
    timed_out: bool,
    stdout: String,
    stderr: String,
    groups: Vec<ProcessGroup>,
    pub(super) took: Duration,
}

impl RunOutput {
    pub(super) fn add(&mut self, process: ProcessResult) {
        self.exit = process.exit;
        self.timed_out = process.timed_out;
        self.stdout.push_str(&process.stdout);
        self.stderr.push_str(&process.stderr);
        self.groups.push(process.group);
    }
}
