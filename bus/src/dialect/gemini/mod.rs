//! Gemini CLI, as its version 0.61 behaves. Where its documentation and its code differ, the code counts.

mod encode;
mod event_rules;
mod hook_output;
mod launch;
mod merge;
mod names;
mod person;
mod results;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

use super::matcher::{field, ignored, tool_regex};
use super::{
    Capabilities, Dialect, HookOutput, Interpretation, LateOutput, LaunchError, NoticePlace,
    ParsedMatcher,
};
use crate::caller::Caller;
use crate::event::{Event, Kind, ToolClass, Verdict};

/// The dialect of Gemini CLI.
#[derive(Debug)]
pub(super) struct Gemini;

impl Dialect for Gemini {
    fn events(&self) -> &'static [(&'static str, Kind)] {
        names::EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, ToolClass)] {
        names::TOOLS
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some("GEMINI_SESSION_ID")
    }

    fn recorded_variables(&self) -> &'static [&'static str] {
        &["GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD", "GEMINI_PLANS_DIR"]
    }

    fn is_answered(&self) -> bool {
        true
    }

    fn capabilities(&self, event: &Event) -> Capabilities {
        event_rules::capabilities(event)
    }

    fn can_ask(&self, caller: &Caller) -> bool {
        caller.pid.is_some_and(person::can_be_asked)
    }

    fn is_continuation(&self, event: &Event) -> bool {
        event.field("stop_hook_active").and_then(Value::as_bool) == Some(true)
    }

    fn merge(&self, event: &Event, verdicts: &[&Verdict]) -> Verdict {
        merge::merge(event, verdicts)
    }

    fn encode(&self, event: &Event, merged: &Verdict) -> Option<Value> {
        encode::encode(event, merged)
    }

    fn notice_place(&self, event: &Event, answer: Option<&Value>, _caller: &Caller) -> NoticePlace {
        event_rules::notice_place(event, answer)
    }

    fn ignores_impossible_answers(&self) -> bool {
        true
    }

    fn runs_duplicates_once(&self) -> bool {
        true
    }

    fn argv(
        &self,
        line: &str,
        caller: &Caller,
        _base: &Path,
    ) -> Result<Vec<OsString>, LaunchError> {
        Ok(launch::argv(line, caller))
    }

    /// Any line: bash reads it.
    fn check_line(&self, _line: &str) -> Result<(), LaunchError> {
        Ok(())
    }

    fn late_output(&self) -> LateOutput {
        LateOutput::Wait
    }

    fn matcher(&self, event: &str, text: &str) -> ParsedMatcher {
        match event {
            "BeforeTool" | "AfterTool" if text == "*" => ParsedMatcher::Everything(None),
            // Gemini searches for the regex in the name; it need not match all of it.
            "BeforeTool" | "AfterTool" => tool_regex(text, text),
            "SessionStart" => field("source", text),
            "SessionEnd" => field("reason", text),
            "PreCompress" => field("trigger", text),
            _ if text == "*" => ParsedMatcher::Everything(None),
            _ => ignored("Gemini", event),
        }
    }

    fn interpret(&self, kind: Kind, output: &HookOutput<'_>) -> Interpretation {
        hook_output::interpret(kind, output)
    }
}
