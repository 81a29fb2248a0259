//! The family of agents that use Claude Code's hook format, as a table: an agent of the family is its names
//! and the few fields in which it differs.

use serde_json::{Map, Value};

use super::decode::text;
use super::matcher::field;
use super::reports::{Question, QuestionAnswer, Reported, ReportedUsage, Reports, ToolOutcome};
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
    /// How it reports the end of a tool call.
    pub(super) tool_outcome: fn(Reported<'_>) -> ToolOutcome,
    /// How it reports tokens.
    pub(super) usage: fn(Reported<'_>) -> Option<ReportedUsage>,
}

impl Reports for ClaudeFamily {
    fn tool_outcome(&self, event: Reported<'_>) -> ToolOutcome {
        (self.tool_outcome)(event)
    }

    fn usage(&self, event: Reported<'_>) -> Option<ReportedUsage> {
        (self.usage)(event)
    }

    /// Beside a class of error that says little there is the text that the user was shown.
    fn failure(&self, event: Reported<'_>) -> Option<String> {
        if event.kind == Kind::TurnEnd {
            return None;
        }
        let paths = ["error_details", "last_assistant_message", "error"];
        paths.iter().find_map(|path| event.readable(path))
    }

    fn model<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event
            .text("model")
            .or_else(|| event.text("to_model").filter(|_| event.name == "PostModelSwitch"))
    }

    fn question(&self, event: Reported<'_>) -> Option<Question> {
        if event.kind != Kind::ApprovalRequest {
            return None;
        }
        let about = ["tool_input.command", "tool_input.file_path", "message"];
        let about = about.iter().find_map(|path| event.text(path)).map(str::to_owned);
        let why = event.text("tool_input.description").or_else(|| event.text("mcp_server_name"));
        let tool =
            || Some(format!("{} {}", event.text("tool_name")?, event.readable("tool_input")?));
        Some(Question { about: about.or_else(tool)?, why: why.map(str::to_owned) })
    }

    fn question_answer(&self, event: Reported<'_>) -> Option<QuestionAnswer> {
        match event.name {
            "PermissionDenied" => {
                let text = event.text("reason").unwrap_or("denied").to_owned();
                Some(QuestionAnswer { yes: Some(false), text })
            }
            _ => {
                let action = event.text("action")?;
                let yes = match action {
                    "accept" => Some(true),
                    "decline" | "cancel" => Some(false),
                    _ => None,
                };
                Some(QuestionAnswer { yes, text: action.to_owned() })
            }
        }
    }

    fn inside_subagent<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        let is_inside = !matches!(event.kind, Kind::SubagentStart | Kind::SubagentStop);
        event.text("agent_id").filter(|_| is_inside)
    }
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
        let is_read = || matches!(event.body(), Body::Read(_));
        if event.name == "SessionStart" && is_read() {
            NoticePlace::InAnswer
        } else {
            NoticePlace::Nowhere
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
