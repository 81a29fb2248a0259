//! The family of agents that use Claude Code's hook format, as a table: an agent of the family is its names
//! and the few fields in which it differs.

use serde_json::{Map, Value};

use super::decode::text;
use super::matcher::field;
use super::{Dialect, NoticePlace, ParsedMatcher, common};
use crate::caller::Caller;
use crate::event::{Body, Event, Kind, ToolClass};

/// One agent of the family.
#[derive(Debug)]
pub(super) struct ClaudeFamily {
    /// Its event names.
    pub(super) events: &'static [(&'static str, Kind)],
    /// Its tool names.
    pub(super) tools: &'static [(&'static str, ToolClass)],
    /// The variable that holds the session id.
    pub(super) session_variable: Option<&'static str>,
    /// The variables that are recorded with each event.
    pub(super) recorded_variables: &'static [&'static str],
    /// The payload's field with the turn's id.
    pub(super) turn_field: &'static str,
}

impl Dialect for ClaudeFamily {
    fn events(&self) -> &'static [(&'static str, Kind)] {
        self.events
    }

    fn tools(&self) -> &'static [(&'static str, ToolClass)] {
        self.tools
    }

    fn session_variable(&self) -> Option<&'static str> {
        self.session_variable
    }

    fn recorded_variables(&self) -> &'static [&'static str] {
        self.recorded_variables
    }

    fn turn<'a>(&self, payload: &'a Map<String, Value>) -> Option<&'a str> {
        text(payload, self.turn_field)
    }

    /// Both agents show a `systemMessage` at the start of a session. At other events Codex is strict about which keys
    /// it accepts, and Claude Code shows it between the lines of a running turn.
    fn notice_place(
        &self,
        event: &Event,
        _answer: Option<&Value>,
        _caller: &Caller,
    ) -> NoticePlace {
        match (event.name.as_str(), &event.body) {
            ("SessionStart", Body::Read(_)) => NoticePlace::InAnswer,
            _ => NoticePlace::Nowhere,
        }
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
