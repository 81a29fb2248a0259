//! What an agent reports in its payloads about its own work: how a tool call ended, the prompt and the answer of a turn,
//! tokens, questions to the user, sub-agents. The types, and what all agents have in common; an agent's `results.rs` reads
//! what it does its own way. Pure, and never fails: what a payload does not say is absent, and a status is then "unknown".

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::event::{Kind, ToolClass};

/// One recorded event, as a dialect reads it.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// The agent's name for it.
    pub name: &'a str,
    /// Our kind of event.
    pub kind: Kind,
    /// The class of the tool that it is about.
    pub tool_class: Option<ToolClass>,
    /// The payload.
    pub payload: &'a Map<String, Value>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolStatus {
    /// It did what it was asked for.
    Ok,
    /// It ran and failed: an exit code other than 0, an error, a timeout.
    Failed,
    /// It did not run: a hook, a policy or a person refused it.
    Denied,
    /// The agent does not say.
    #[default]
    Unknown,
}

/// What an agent says about the end of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutcome {
    /// How it ended.
    pub status: ToolStatus,
    /// The exit code of a command.
    pub exit_code: Option<i64>,
    /// The error, in the agent's words.
    pub error: Option<String>,
    /// What the tool printed or returned.
    pub output: Option<String>,
    /// How long it took, if the agent says so.
    pub took: Option<Duration>,
    /// Whether it ran; none if that cannot be told.
    pub ran: Option<bool>,
}

/// The answer of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Its text.
    pub text: &'a str,
    /// How far it can be relied on.
    pub standing: AnswerStanding,
}

/// How far the text of an answer can be relied on. A later variant counts more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerStanding {
    /// Before the last changes to it.
    Draft,
    /// The agent repeats parts of it: what the model's chunks say counts more.
    Inexact,
    /// As the user got it.
    Final,
}

/// Tokens and cost. A number that the agent does not report is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tokens that went to the model, as the agent counts them.
    pub input_tokens: Option<u64>,
    /// Tokens that the model wrote.
    pub output_tokens: Option<u64>,
    /// Tokens that were read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens that were written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
    /// All tokens.
    pub total_tokens: Option<u64>,
    /// The cost in US dollars.
    pub cost_usd: Option<f64>,
}

/// Tokens and cost, and what they are for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportedUsage {
    /// The numbers.
    pub usage: Usage,
    /// What they are for.
    pub scope: UsageScope,
}

/// What reported numbers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageScope {
    /// A whole request to the model.
    Request,
    /// A request up to this chunk: it replaces what an earlier chunk of the same request said.
    SoFar,
    /// A sub-agent, with all of its requests.
    Subagent,
}

/// A question to the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The command, the file or the message that it is about.
    pub about: String,
    /// Why the agent asks.
    pub why: Option<String>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionAnswer {
    /// Whether it was a yes; none if that cannot be told.
    pub yes: Option<bool>,
    /// The answer in the agent's words.
    pub text: String,
}

/// What an agent says about a sub-agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubagentReport<'a> {
    /// Its id inside of the session.
    pub id: Option<&'a str>,
    /// Its own session, if it has one.
    pub session: Option<&'a str>,
    /// Which type of agent it is.
    pub role: Option<&'a str>,
    /// What it has to do.
    pub goal: Option<&'a str>,
    /// How it ended, in the agent's word.
    pub status: Option<&'a str>,
    /// What it answered.
    pub answer: Option<&'a str>,
    /// How long it took.
    pub took: Option<Duration>,
}

/// Reads what an agent reports about its work. The defaults read the fields that most agents share.
pub trait Reports {
    /// The id that joins the start of a tool call with its result.
    fn call_id<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("tool_use_id").or_else(|| event.text("tool_call_id"))
    }

    /// How a tool call ended, from the payload of a `tool.after` or `tool.failed`.
    fn tool_outcome(&self, event: Reported<'_>) -> ToolOutcome {
        common_outcome(event)
    }

    /// The prompt at the start of a turn.
    fn prompt(&self, event: Reported<'_>) -> Option<String> {
        event.readable("prompt")
    }

    /// The answer of the turn.
    fn answer<'a>(&self, event: Reported<'a>) -> Option<Answer<'a>> {
        let text = event.text("last_assistant_message")?;
        Some(Answer { text, standing: AnswerStanding::Final })
    }

    /// Why a turn, or a request to the model, failed.
    fn failure(&self, event: Reported<'_>) -> Option<String> {
        event.readable("error")
    }

    /// The text in a chunk of the model's answer.
    fn chunk_text<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("delta")
    }

    /// The id of a request to the model, the same before and after it.
    fn request_id<'a>(&self, _event: Reported<'a>) -> Option<&'a str> {
        None
    }

    /// The model.
    fn model<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("model")
    }

    /// Tokens and cost.
    fn usage(&self, _event: Reported<'_>) -> Option<ReportedUsage> {
        None
    }

    /// The question that the agent asks its user.
    fn question(&self, event: Reported<'_>) -> Option<Question> {
        let about = event.text("message")?.to_owned();
        (event.kind == Kind::ApprovalRequest).then_some(Question { about, why: None })
    }

    /// What the user, or an automatic approval, answered.
    fn question_answer(&self, _event: Reported<'_>) -> Option<QuestionAnswer> {
        None
    }

    /// The sub-agent that a `subagent.start` or `subagent.stop` is about.
    fn subagent<'a>(&self, event: Reported<'a>) -> SubagentReport<'a> {
        SubagentReport {
            id: event.text("agent_id"),
            role: event.text("agent_type"),
            answer: event.text("last_assistant_message"),
            ..SubagentReport::default()
        }
    }

    /// The id of the sub-agent inside of which the event happened, if it shares the session of its parent.
    fn inside_subagent<'a>(&self, _event: Reported<'a>) -> Option<&'a str> {
        None
    }
}

impl ToolStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Failed, Self::Denied, Self::Unknown];

    /// The word in output and projections.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }

    /// The status with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for ToolStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Usage {
    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what another request used.
    pub fn add(&mut self, other: &Self) {
        let sum = |own: &mut Option<u64>, other: Option<u64>| {
            if let Some(other) = other {
                *own = Some(own.unwrap_or(0).saturating_add(other));
            }
        };
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.cache_read_tokens, other.cache_read_tokens);
        sum(&mut self.cache_write_tokens, other.cache_write_tokens);
        sum(&mut self.reasoning_tokens, other.reasoning_tokens);
        sum(&mut self.total_tokens, other.total_tokens);
        if let Some(cost) = other.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    /// The numbers at these keys of an object, in the order of the fields; an empty key is not looked up.
    pub(super) fn read(object: &Value, keys: [&str; 6]) -> Option<Self> {
        let object = object.as_object()?;
        let number = |key: &str| object.get(key).and_then(Value::as_u64);
        let [input, output, cache_read, cache_write, reasoning, total] = keys;
        let cost = ["cost_usd", "cost"].iter().find_map(|key| object.get(*key)?.as_f64());
        let usage = Self {
            input_tokens: number(input),
            output_tokens: number(output),
            cache_read_tokens: number(cache_read),
            cache_write_tokens: number(cache_write),
            reasoning_tokens: number(reasoning),
            total_tokens: number(total),
            cost_usd: cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
        };
        (!usage.is_empty()).then_some(usage)
    }
}

impl<'a> Reported<'a> {
    /// The value at a dotted path.
    pub(super) fn value(self, path: &str) -> Option<&'a Value> {
        let mut parts = path.split('.');
        let first = self.payload.get(parts.next()?)?;
        parts.try_fold(first, |value, key| value.get(key))
    }

    /// The text at a dotted path, if there is one and it is not empty.
    pub(super) fn text(self, path: &str) -> Option<&'a str> {
        self.value(path).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The value at a dotted path as a person reads it.
    pub(super) fn readable(self, path: &str) -> Option<String> {
        self.value(path).and_then(readable)
    }

    /// The milliseconds at a dotted path.
    pub(super) fn millis(self, path: &str) -> Option<Duration> {
        self.value(path).and_then(millis)
    }
}

/// A number of milliseconds, whole or not.
fn millis(value: &Value) -> Option<Duration> {
    let whole = value.as_u64().map(Duration::from_millis);
    whole.or_else(|| Duration::try_from_secs_f64(value.as_f64()? / 1000.0).ok())
}

/// A value as a person reads it: the text, the texts of a list of parts, the text inside of an object, else its JSON.
pub(super) fn readable(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let is_text = |part: &Value| part.is_string() || part.get("text").is_some();
            if parts.is_empty() || !parts.iter().all(is_text) {
                value.to_string()
            } else {
                parts.iter().filter_map(readable).collect::<Vec<_>>().join("\n")
            }
        }
        Value::Object(fields) => {
            let inner = ["text", "message", "output", "content"].iter().find_map(|key| {
                fields.get(*key).filter(|inner| !inner.is_null() && !inner.is_object())
            });
            match inner {
                Some(inner) => readable(inner)?,
                None => value.to_string(),
            }
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    (!text.is_empty()).then_some(text)
}

/// How a call of an agent without a dialect ended: what the fields say that most agents have.
pub(super) fn common_outcome(event: Reported<'_>) -> ToolOutcome {
    let exit_code = ["tool_response.exit_code", "exit_code"]
        .iter()
        .find_map(|path| event.value(path).and_then(Value::as_i64));
    let error = event.readable("error").or_else(|| event.readable("tool_response.error"));
    let failed = event.kind == Kind::ToolFailed || error.is_some();
    let status = match exit_code {
        Some(0) if !failed => ToolStatus::Ok,
        None if !failed => ToolStatus::Unknown,
        Some(_) | None => ToolStatus::Failed,
    };
    let output = event.value("tool_response").or_else(|| event.value("tool_output"));
    ToolOutcome {
        status,
        exit_code,
        error,
        output: output.and_then(readable),
        took: event.millis("duration_ms"),
        ran: Some(true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_as_a_person_reads_it() {
        for (value, expected) in [
            (json!("text"), Some("text")),
            (json!([{"type": "text", "text": "a"}, {"text": "b"}]), Some("a\nb")),
            (json!({"message": "no such file", "type": "x"}), Some("no such file")),
            (json!([1, 2]), Some("[1,2]")),
            (json!({"goal": null}), Some("{\"goal\":null}")),
            (json!(""), None),
            (json!(null), None),
        ] {
            assert_eq!(readable(&value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn usage_adds_what_is_reported_and_nothing_else() {
        let mut all = Usage::default();
        all.add(&Usage { input_tokens: Some(2), cost_usd: Some(0.5), ..Usage::default() });
        all.add(&Usage { input_tokens: Some(3), ..Usage::default() });
        assert_eq!((all.input_tokens, all.output_tokens, all.cost_usd), (Some(5), None, Some(0.5)));
    }
}
