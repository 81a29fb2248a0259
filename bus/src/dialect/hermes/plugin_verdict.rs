//! What the return value of a Hermes plugin's callback means.

use serde_json::Value;

use super::super::answer::verdict_in;
use super::super::hook_output::replacement_text;
use crate::event::{Kind, Verdict};

/// The verdict in what a plugin's callback returned at an event of `kind`.
pub fn plugin_verdict(kind: Kind, value: &Value) -> Verdict {
    match value {
        Value::Object(answer) => verdict_in(answer, kind),
        // Hermes ignores an empty final text.
        Value::String(text) if kind == Kind::TurnOutput && text.is_empty() => Verdict::silent(),
        Value::String(text) if kind == Kind::TurnStart && !text.trim().is_empty() => {
            Verdict { context: Some(text.clone()), ..Verdict::silent() }
        }
        Value::String(_) => replacement_text(value.clone(), kind).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Verdict::silent(),
    }
}
