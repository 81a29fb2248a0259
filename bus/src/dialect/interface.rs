//! The interface of a dialect: everything that one agent does its own way. An agent's folder
//! implements it; what an agent does not override is [`Common`]'s behaviour.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value};

use super::claude::CLAUDE;
use super::codex::CODEX;
use super::common::{self, Common};
use super::gemini::Gemini;
use super::hermes::Hermes;
use super::{
    Capabilities, HookOutput, Interpretation, LateOutput, LaunchError, NoticePlace, ParsedMatcher,
    Reports,
};
use crate::caller::Caller;
use crate::event::{Agent, Event, Kind, ToolClass, Verdict};

/// How one agent names things, what it acts on, and how it runs hooks. Pure functions, except
/// [`can_ask`](Self::can_ask), which may inspect the agent's process.
pub trait Dialect: Reports + fmt::Debug + Sync {
    /// The agent's event names and their kinds. A name that ends in `*` stands for a family.
    fn events(&self) -> &'static [(&'static str, Kind)] {
        &[]
    }

    /// The agent's tool names and their classes. A name that ends in `*` stands for a family.
    fn tools(&self) -> &'static [(&'static str, ToolClass)] {
        &[]
    }

    /// The variable that holds the session id, for payloads without one.
    fn session_variable(&self) -> Option<&'static str> {
        None
    }

    /// The variables that are recorded with each event: ids and directories, never secrets.
    fn recorded_variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// The turn's id in a payload.
    fn turn<'a>(&self, _payload: &'a Map<String, Value>) -> Option<&'a str> {
        None
    }

    /// The session's id inside a turn's id.
    fn session_in_turn<'a>(&self, _turn: &'a str) -> Option<&'a str> {
        None
    }

    /// Whether decision hooks run for this agent, or its events are only recorded.
    fn is_answered(&self) -> bool {
        false
    }

    /// Which answers the agent acts on at this event.
    fn capabilities(&self, _event: &Event) -> Capabilities {
        Capabilities::NONE
    }

    /// Whether there is a person that the agent can ask.
    fn can_ask(&self, _caller: &Caller) -> bool {
        false
    }

    /// Whether the agent sent this event because an earlier answer told it to continue.
    fn is_continuation(&self, _event: &Event) -> bool {
        false
    }

    /// One verdict out of many, given in the configured order, by the agent's own rules.
    fn merge(&self, _event: &Event, _verdicts: &[&Verdict]) -> Verdict {
        Verdict::silent()
    }

    /// The merged verdict as the agent's JSON; none if the agent gets no output.
    fn encode(&self, _event: &Event, _merged: &Verdict) -> Option<Value> {
        None
    }

    /// Where the agent shows its user a text of the bus, if this is the answer otherwise.
    fn notice_place(
        &self,
        _event: &Event,
        _answer: Option<&Value>,
        _caller: &Caller,
    ) -> NoticePlace {
        NoticePlace::Nowhere
    }

    /// Whether an answer that the agent cannot act on is ignored, as the agent does, if it comes from a hook
    /// under one of the agent's event names. If not, it becomes a block.
    fn ignores_impossible_answers(&self) -> bool {
        false
    }

    /// Whether the agent runs the same name and command once per event, however often it is configured.
    fn runs_duplicates_once(&self) -> bool {
        false
    }

    /// Program and arguments of a hook's command line. `base` is the directory of the hooks file.
    fn argv(&self, line: &str, caller: &Caller, base: &Path) -> Result<Vec<OsString>, LaunchError> {
        common::argv(line, caller, base)
    }

    /// Checks that a hook's command line can be launched, whatever the caller: when the hooks file is read.
    fn check_line(&self, line: &str) -> Result<(), LaunchError> {
        common::check_line(line)
    }

    /// Whether to wait for output that a child writes after the command itself has ended.
    fn late_output(&self) -> LateOutput {
        LateOutput::Ignore
    }

    /// Reads the `matcher:` of a hook under the event name `event`.
    fn matcher(&self, _event: &str, text: &str) -> ParsedMatcher {
        common::matcher(text)
    }

    /// What a command's output and exit code mean at an event of `kind`.
    fn interpret(&self, kind: Kind, output: &HookOutput<'_>) -> Interpretation {
        common::interpret(kind, output)
    }
}

/// The dialect of `agent`.
pub fn dialect_of(agent: Agent) -> &'static dyn Dialect {
    match agent {
        Agent::Hermes => &Hermes,
        Agent::Gemini => &Gemini,
        Agent::Claude => &CLAUDE,
        Agent::Codex => &CODEX,
        Agent::Other(_) => &Common,
    }
}
