//! Hermes Agent, as its version 0.19 behaves. Over its own shell hooks it reads an answer at three events; over
//! our bridge it accepts what its Python plugins can return.

mod answer_slots;
mod encode;
mod hook_output;
mod merge;
mod names;
mod plugin_verdict;
mod results;
mod session_links;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde_json::{Map, Value};

pub use self::plugin_verdict::plugin_verdict;
pub use self::session_links::SessionLinks;
use super::decode::text;
use super::matcher::{anchored, ignored, tool_regex};
use super::{
    Capabilities, Dialect, HookOutput, Interpretation, LateOutput, LaunchError, Matcher,
    NoticePlace, ParsedMatcher, common,
};
use crate::caller::Caller;
use crate::event::{Event, Kind, ToolClass, Verdict, Wire};

/// The dialect of Hermes.
#[derive(Debug)]
pub(super) struct Hermes;

impl Dialect for Hermes {
    fn events(&self) -> &'static [(&'static str, Kind)] {
        names::EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, ToolClass)] {
        names::TOOLS
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some("HERMES_SESSION_ID")
    }

    fn recorded_variables(&self) -> &'static [&'static str] {
        &[
            "HERMES_HOME",
            "HERMES_SESSION_ID",
            "HERMES_INTERACTIVE",
            "_HERMES_GATEWAY",
            "HERMES_YOLO_MODE",
        ]
    }

    fn turn<'a>(&self, payload: &'a Map<String, Value>) -> Option<&'a str> {
        let extra = payload.get("extra").and_then(Value::as_object)?;
        text(extra, "turn_id").or_else(|| text(extra, "parent_turn_id"))
    }

    /// Approval events have no session id, but a turn id that begins with it.
    fn session_in_turn<'a>(&self, turn: &'a str) -> Option<&'a str> {
        turn.split(':').next().filter(|session| !session.is_empty())
    }

    fn is_answered(&self) -> bool {
        true
    }

    fn capabilities(&self, event: &Event) -> Capabilities {
        answer_slots::capabilities(event)
    }

    /// Over the bridge Hermes asks its user itself and treats no answer as a no, unless it was started to
    /// approve everything.
    fn can_ask(&self, caller: &Caller) -> bool {
        let approves_everything = caller.var("HERMES_YOLO_MODE").map(OsStr::to_ascii_lowercase);
        let is_set = |word: OsString| ["1", "true", "yes", "on"].iter().any(|yes| word == *yes);
        caller.wire == Wire::Bridge && !approves_everything.is_some_and(is_set)
    }

    fn merge(&self, event: &Event, verdicts: &[&Verdict]) -> Verdict {
        merge::merge(event, verdicts)
    }

    fn encode(&self, event: &Event, merged: &Verdict) -> Option<Value> {
        encode::encode(event, merged)
    }

    /// Hermes shows its user nothing of a hook's answer. The bridge prints what it gets beside the answer. Of a shell
    /// hook that exits with 1 Hermes logs stderr as a warning; for other callers, which do not set the session of
    /// Hermes' hooks, stderr stays empty and the exit code 0.
    fn notice_place(
        &self,
        _event: &Event,
        _answer: Option<&Value>,
        caller: &Caller,
    ) -> NoticePlace {
        match caller.wire {
            Wire::Bridge => NoticePlace::Beside,
            Wire::Shell if caller.var("HERMES_SESSION_ID").is_some() => NoticePlace::Beside,
            Wire::Shell => NoticePlace::Nowhere,
        }
    }

    fn ignores_impossible_answers(&self) -> bool {
        true
    }

    /// The words of the line. A relative program is looked for in the agent's working directory.
    fn argv(
        &self,
        line: &str,
        caller: &Caller,
        _base: &Path,
    ) -> Result<Vec<OsString>, LaunchError> {
        common::split(line, caller)
    }

    fn late_output(&self) -> LateOutput {
        LateOutput::Wait
    }

    fn matcher(&self, event: &str, text: &str) -> ParsedMatcher {
        match event {
            // To Hermes this is a tool called `*`, because it is not a regex.
            "pre_tool_call" | "post_tool_call" if text == "*" => ParsedMatcher::Some(
                Matcher::ExactTool(text.to_owned()),
                Some("to Hermes `*` is a tool of that name, and there is none; leave the matcher out".to_owned()),
            ),
            "pre_tool_call" | "post_tool_call" => tool_regex(text, &anchored(text)),
            _ => ignored("Hermes", event),
        }
    }

    fn interpret(&self, kind: Kind, output: &HookOutput<'_>) -> Interpretation {
        hook_output::interpret(kind, output)
    }
}
