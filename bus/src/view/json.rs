//! A session as JSON, the shape of `hookbus show --json`, and the parts of `top --json` and `replay --step --json`. All are
//! documented in `cli/docs/output.md`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    CallResult, DecisionView, Effects, HeldBack, HookFigures, HookSaid, Item, ModelCall,
    SessionView, Step, Subagent, ToolCall, Totals, Turn, What,
};
use crate::dialect::Usage;
use crate::event::{Kind, Outcome, Seq, Time, ToolClass};
use crate::shell::Access;

/// The version of the shape. A key that is added keeps it; one that is changed or removed raises it.
pub const SHAPE: u32 = 2;

/// The values of `kind` of an item.
pub const ITEM_KINDS: [&str; 9] =
    ["prompt", "tool", "model", "question", "subagent", "end", "event", "quiet", "lost"];

impl SessionView {
    /// The whole session.
    pub fn to_json(&self) -> Value {
        let mut object = self.body();
        object.insert("shape".to_owned(), json!(SHAPE));
        Value::Object(object)
    }

    fn body(&self) -> Map<String, Value> {
        let (own, inside) = (Totals::of(self), Totals::of_subagents(self));
        let fields = [
            ("session", json!(self.session)),
            ("agent", json!(self.agent)),
            ("cwd", json!(self.cwd)),
            ("project", json!(self.project)),
            ("models", json!(self.models)),
            ("first", time(self.first)),
            ("last", time(self.last)),
            ("totals", own.to_json()),
            ("in_subagents", inside.to_json()),
            ("turns", self.turns.iter().map(Turn::to_json).collect()),
        ];
        fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

impl Totals {
    /// All numbers.
    pub fn to_json(&self) -> Value {
        json!({
            "events": self.events, "decisions": self.decisions, "turns": self.turns,
            "tool_calls": self.tool_calls, "blocked": self.blocked, "asked": self.asked,
            "would_block": self.would_block, "failed": self.failed,
            "ran_despite_block": self.ran_despite_block, "model_requests": self.model_requests,
            "model_errors": self.model_errors, "subagents": self.subagents,
            "usage": usage(&self.usage),
        })
    }
}

impl Turn {
    fn to_json(&self) -> Value {
        json!({
            "prompt": self.prompt,
            "time": time(self.at),
            "answer": self.answer,
            "failure": self.failure,
            "ended": time(self.ended),
            "items": self.items.iter().map(Item::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Item {
    fn to_json(&self) -> Value {
        let (kind, more) = match &self.what {
            What::Prompt => ("prompt", None),
            What::Tool(call) => ("tool", Some(tool(self, call))),
            What::Model(call) => ("model", Some(model(call))),
            What::Question(asked) => {
                let answer = asked.answer.as_ref();
                let more = json!({
                    "about": asked.question.about, "why": asked.question.why,
                    "answer": answer.map(|answer| &answer.text),
                    "yes": answer.and_then(|answer| answer.yes),
                });
                ("question", Some(more))
            }
            What::Subagent(subagent) => ("subagent", Some(of_subagent(subagent))),
            What::TurnEnd => ("end", None),
            What::Event { text } => ("event", Some(json!({"text": text}))),
            What::Quiet => ("quiet", None),
            What::LostEvent => ("lost", None),
        };
        let mut value = json!({
            "seq": self.seq.as_i64(), "time": self.at.to_string(), "name": self.name,
            "event_kind": self.kind.as_str(), "kind": kind,
            "decisions": self.decisions.iter().map(DecisionView::to_json).collect::<Vec<_>>(),
        });
        if let (Value::Object(value), Some(Value::Object(more))) = (&mut value, more) {
            value.extend(more);
        }
        value
    }
}

impl DecisionView {
    /// The decision.
    pub fn to_json(&self) -> Value {
        json!({
            "seq": self.seq.as_i64(),
            "about": self.about.map(Kind::as_str),
            "outcome": self.outcome.map(Outcome::as_str),
            "removed": self.is_removed,
            "note": self.note,
            "notice": self.notice,
            "waited_for": self.waited_for,
            "ms": millis(self.took),
            "hooks": self.said.iter().map(HookSaid::to_json).collect::<Vec<_>>(),
            "silent": self.silent,
        })
    }
}

impl Step {
    /// The event, as a line of `hookbus replay --step --json` begins.
    pub fn to_json(&self) -> Value {
        let result = self.result.as_ref().map(|result| call_result(result, self.took));
        json!({
            "seq": self.seq.as_i64(), "time": self.at.to_string(), "agent": self.agent,
            "name": self.name, "kind": self.kind.as_str(), "tool": self.tool,
            "about": self.about, "failed": self.failed, "failure": self.failure,
            "decision": self.decision.as_ref().map(DecisionView::to_json),
            "result": result, "call": self.call.map(Seq::as_i64),
        })
    }
}

impl HeldBack {
    /// The decision, as it is in `hookbus top --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "seq": self.seq.as_i64(), "event_seq": self.cause.map(Seq::as_i64),
            "time": self.at.to_string(), "agent": self.agent, "session": self.session,
            "outcome": self.outcome.as_str(), "hook": self.hook, "reason": self.reason,
            "tool": self.tool, "about": self.about,
        })
    }
}

impl HookFigures {
    /// The figures, as they are in `hookbus top --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "hook": self.hook, "shadow": self.shadow, "calls": self.calls,
            "blocked": self.blocked, "asked": self.asked, "failed": self.failed,
            "unapproved": self.unapproved, "p50_ms": millis(self.p50), "p95_ms": millis(self.p95),
        })
    }
}

impl HookSaid {
    fn to_json(&self) -> Value {
        json!({
            "hook": self.hook, "verdict": self.verdict, "effect": self.effect.as_str(),
            "reason": self.reason, "failed": self.failed, "unapproved": self.unapproved,
            "shadow": self.shadow, "project": self.of_project, "note": self.note,
            "ms": millis(self.took),
        })
    }
}

fn tool(item: &Item, call: &ToolCall) -> Value {
    let Effects { programs, files, hosts } = &call.effects;
    let paths = |access: Access| {
        let own = files.iter().filter(move |file| file.access == access);
        own.map(|file| file.path.as_str()).collect::<Vec<_>>()
    };
    json!({
        "tool": call.tool,
        "tool_class": call.class.map(ToolClass::as_str),
        "about": call.subject,
        "input": call.input,
        "call_id": call.call_id,
        "started": call.is_start_recorded,
        "removed": call.is_removed,
        "result": call.result.as_ref().map(|result| call_result(result, item.took())),
        "ran_despite_block": item.ran_despite_block(),
        "effects": {
            "programs": programs, "hosts": hosts, "reads": paths(Access::Read),
            "writes": paths(Access::Write), "deletes": paths(Access::Delete),
        },
    })
}

fn call_result(result: &CallResult, took: Option<Duration>) -> Value {
    let outcome = &result.outcome;
    json!({
        "seq": result.seq.as_i64(), "time": result.at.to_string(),
        "status": outcome.status.as_str(), "exit_code": outcome.exit_code,
        "error": outcome.error, "output": outcome.output, "ms": millis(took),
        "removed": result.is_removed,
    })
}

fn model(call: &ModelCall) -> Value {
    json!({
        "model": call.model, "request_id": call.request_id, "attempts": call.attempts,
        "chunks": call.chunks, "errors": call.errors, "answered": time(call.answered),
        "usage": call.usage.as_ref().map(usage),
    })
}

fn of_subagent(subagent: &Subagent) -> Value {
    json!({
        "id": subagent.id, "session": subagent.session, "role": subagent.role,
        "goal": subagent.goal, "started": subagent.is_start_recorded,
        "ended": subagent.ended.map(|(seq, at)| json!({"seq": Seq::as_i64(seq), "time": at.to_string()})),
        "status": subagent.status, "answer": subagent.answer, "ms": millis(subagent.took),
        "inside": subagent.inside.as_ref().map(SessionView::body),
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens, "total_tokens": usage.total_tokens,
        "cost_usd": usage.cost_usd,
    })
}

fn time(at: Option<Time>) -> Value {
    at.map_or(Value::Null, |at| json!(at.to_string()))
}

fn millis(took: Option<Duration>) -> Value {
    took.map_or(Value::Null, |took| json!((took.as_secs_f64() * 1_000_000.0).round() / 1000.0))
}
