//! Codex CLI. Its events are decoded and recorded; decision hooks do not run for it yet.

mod names;

use serde_json::{Map, Value};

use super::decode::text;
use super::matcher::field;
use super::{Dialect, ParsedMatcher, common};
use crate::event::{Kind, ToolClass};

/// The dialect of Codex.
#[derive(Debug)]
pub(super) struct Codex;

impl Dialect for Codex {
    fn events(&self) -> &'static [(&'static str, Kind)] {
        names::EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, ToolClass)] {
        names::TOOLS
    }

    fn recorded_variables(&self) -> &'static [&'static str] {
        &["CODEX_HOME"]
    }

    fn turn<'a>(&self, payload: &'a Map<String, Value>) -> Option<&'a str> {
        text(payload, "turn_id")
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
