//! Claude Code. Its events are decoded and recorded; decision hooks do not run for it yet.

mod names;

use serde_json::{Map, Value};

use super::decode::text;
use super::matcher::field;
use super::{Dialect, ParsedMatcher, common};
use crate::event::{Kind, ToolClass};

/// The dialect of Claude Code.
#[derive(Debug)]
pub(super) struct Claude;

impl Dialect for Claude {
    fn events(&self) -> &'static [(&'static str, Kind)] {
        names::EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, ToolClass)] {
        names::TOOLS
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_CODE_SESSION_ID")
    }

    fn recorded_variables(&self) -> &'static [&'static str] {
        &["CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PID"]
    }

    fn turn<'a>(&self, payload: &'a Map<String, Value>) -> Option<&'a str> {
        text(payload, "prompt_id")
    }

    fn matcher(&self, event: &str, matcher: &str) -> ParsedMatcher {
        match event {
            "SessionStart" => field("source", matcher),
            "SessionEnd" => field("reason", matcher),
            "PreCompact" | "PostCompact" => field("trigger", matcher),
            _ => common::matcher(matcher),
        }
    }
}
