//! What Hermes says about its work. A tool's result is a text, of most tools JSON; a terminal's has `output`, `exit_code` and
//! `error`. Hermes' own status is `ok` for any command that ran, so the exit code decides. A call that a hook or a person
//! refused has a result too.

use serde_json::{Map, Value};

use super::super::reports::{
    Answer, AnswerStanding, Question, QuestionAnswer, Reported, ReportedUsage, Reports,
    SubagentReport, ToolOutcome, ToolStatus, Usage, UsageScope, readable,
};
use super::Hermes;
use crate::event::Kind;
use crate::json::read_leniently;

/// The words of a result, or of its status, for a call that did not run.
const REFUSED: [&str; 3] = ["blocked", "pending_approval", "disabled"];

/// What an approval can end in that is a yes.
const YES: [&str; 4] = ["once", "session", "always", "smart_approve"];

impl Reports for Hermes {
    fn call_id<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("extra.tool_call_id")
    }

    fn tool_outcome(&self, event: Reported<'_>) -> ToolOutcome {
        outcome(event)
    }

    fn prompt(&self, event: Reported<'_>) -> Option<String> {
        event.readable("extra.user_message").or_else(|| event.readable("extra.message"))
    }

    fn answer<'a>(&self, event: Reported<'a>) -> Option<Answer<'a>> {
        let found = |path: &str, standing| Some(Answer { text: event.text(path)?, standing });
        found("extra.assistant_response", AnswerStanding::Final)
            .or_else(|| found("extra.response_text", AnswerStanding::Draft))
            .or_else(|| found("extra.final_response", AnswerStanding::Draft))
            .or_else(|| found("extra.response", AnswerStanding::Draft))
    }

    fn failure(&self, event: Reported<'_>) -> Option<String> {
        let is_interrupted = event.value("extra.interrupted").and_then(Value::as_bool);
        let interrupted = || (is_interrupted == Some(true)).then(|| "interrupted".to_owned());
        let reason = || event.readable("extra.reason").filter(|_| event.kind != Kind::TurnEnd);
        event.readable("extra.error").or_else(interrupted).or_else(reason)
    }

    fn request_id<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("extra.api_request_id")
    }

    fn model<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("extra.response_model").or_else(|| event.text("extra.model"))
    }

    fn usage(&self, event: Reported<'_>) -> Option<ReportedUsage> {
        if event.kind != Kind::ModelAfter {
            return None;
        }
        let reported = event.value("extra.usage").filter(|usage| usage.is_object());
        let reported = reported.or_else(|| event.value("extra.response.usage"))?;
        let keys = [
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "reasoning_tokens",
            "total_tokens",
        ];
        Some(ReportedUsage { usage: Usage::read(reported, keys)?, scope: UsageScope::Request })
    }

    fn question(&self, event: Reported<'_>) -> Option<Question> {
        let about = event.text("extra.command")?.to_owned();
        let why = event.text("extra.description").map(str::to_owned);
        (event.kind == Kind::ApprovalRequest).then_some(Question { about, why })
    }

    fn question_answer(&self, event: Reported<'_>) -> Option<QuestionAnswer> {
        let choice = event.text("extra.choice")?;
        let by = match event.text("extra.decided_by") {
            Some(_) => " (decided by a model)",
            None => "",
        };
        Some(QuestionAnswer { yes: Some(YES.contains(&choice)), text: format!("{choice}{by}") })
    }

    fn subagent<'a>(&self, event: Reported<'a>) -> SubagentReport<'a> {
        SubagentReport {
            id: event.text("extra.child_subagent_id"),
            session: event.text("extra.child_session_id"),
            role: event.text("extra.child_role"),
            goal: event.text("extra.child_goal"),
            status: event.text("extra.child_status"),
            answer: event.text("extra.child_summary"),
            took: event.millis("extra.duration_ms"),
        }
    }
}

fn outcome(event: Reported<'_>) -> ToolOutcome {
    let result = event.value("extra.result");
    let parsed = result.and_then(parse);
    let field = |key: &str| parsed.as_ref().and_then(|fields| fields.get(key));
    let word = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let (own, inner) = (word(event.value("extra.status")), word(field("status")));
    let is_refused =
        |status: &Option<String>| status.as_deref().is_some_and(|status| REFUSED.contains(&status));
    let is_denied = is_refused(&own) || is_refused(&inner);
    // A command that did not run has -1.
    let exit_code = field("exit_code").and_then(Value::as_i64).filter(|_| !is_denied);
    let error = event
        .readable("extra.error_message")
        .or_else(|| field("error").and_then(readable))
        .or_else(|| own.clone().filter(|own| own != "ok"));
    // Hermes knows the programs for which another code than 0 is an answer: `grep` without a match.
    let is_fine = field("exit_code_meaning")
        .and_then(Value::as_str)
        .is_some_and(|meaning| meaning.contains("not an error"));
    let status = match (own.as_deref(), exit_code) {
        _ if is_denied => ToolStatus::Denied,
        (Some("ok") | None, Some(code)) if code != 0 && !is_fine => ToolStatus::Failed,
        (Some("ok") | None, _) if field("error").and_then(readable).is_some() => ToolStatus::Failed,
        (Some("ok"), _) => ToolStatus::Ok,
        (None, Some(_)) => ToolStatus::Ok,
        (None, None) => ToolStatus::Unknown,
        (Some(_), _) => ToolStatus::Failed,
    };
    let output = ["output", "content", "text", "summary"].iter().find_map(|key| field(key));
    let ran = match (status, own.as_deref()) {
        (ToolStatus::Denied, _) => Some(false),
        (_, Some("cancelled")) => None,
        (ToolStatus::Ok | ToolStatus::Failed | ToolStatus::Unknown, _) => Some(true),
    };
    ToolOutcome {
        status,
        exit_code,
        error: error.filter(|_| matches!(status, ToolStatus::Failed | ToolStatus::Denied)),
        output: match (output, &parsed) {
            (Some(output), _) => readable(output),
            // An error is told as one, and is not what the tool printed.
            (None, Some(fields)) if fields.contains_key("error") => None,
            (None, _) => result.and_then(readable),
        },
        took: event.millis("extra.duration_ms"),
        ran,
    }
}

/// The object that a result is the text of.
fn parse(result: &Value) -> Option<Map<String, Value>> {
    match result {
        Value::Object(fields) => Some(fields.clone()),
        Value::String(text) if text.trim_start().starts_with('{') => {
            match read_leniently(text.as_bytes()) {
                Ok(Value::Object(fields)) => Some(fields),
                Ok(_) | Err(_) => None,
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            None
        }
    }
}
