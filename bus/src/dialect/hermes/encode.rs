//! The merged verdict as Hermes' JSON: over its own shell hooks in the form that 0.19 and later versions
//! both read, over the bridge as the return value of a plugin's callback.

use serde_json::{Map, Value, json};

use super::answer_slots::AnswerSlot;
use super::merge::{message, new_command, new_text};
use crate::event::{Event, Ruling, Verdict};

/// The reason if a hook blocked without one and Hermes needs one.
const BLOCKED: &str = "Blocked by a hook.";

/// The answer; none if Hermes reads none.
pub(super) fn encode(event: &Event, merged: &Verdict) -> Option<Value> {
    let blocked = merged.ruling == Some(Ruling::Block);
    match AnswerSlot::at(event) {
        // Without a reason Hermes uses its own default, as for a hook of its own.
        AnswerSlot::Block if blocked => Some(match &merged.reason {
            Some(reason) => json!({"decision": "block", "reason": reason}),
            None => json!({"decision": "block"}),
        }),
        AnswerSlot::Directive => directive(event, merged),
        AnswerSlot::Continue if blocked => {
            Some(json!({"action": "continue", "message": message(merged)?}))
        }
        AnswerSlot::Context => merged.context.as_ref().map(|context| json!({"context": context})),
        AnswerSlot::Text => new_text(merged).map(Value::String),
        AnswerSlot::Message => incoming_message(merged),
        AnswerSlot::Command => command(merged),
        AnswerSlot::Block | AnswerSlot::Continue | AnswerSlot::Nothing => None,
    }
}

fn directive(event: &Event, merged: &Verdict) -> Option<Value> {
    let mut answer = Map::new();
    match merged.ruling {
        Some(Ruling::Block) => {
            answer.insert("action".into(), json!("block"));
            answer.insert("message".into(), json!(message(merged).unwrap_or(BLOCKED)));
        }
        Some(Ruling::Ask) => {
            answer.insert("action".into(), json!("approve"));
            answer.insert("message".into(), json!(message(merged).unwrap_or_default()));
            answer.insert("rule_key".into(), rule_key(event, merged));
        }
        Some(Ruling::Allow) | None => {}
    }
    if let Some(change) = &merged.rewrite {
        let input = change.apply(event.tool_input().unwrap_or(&Map::new()));
        answer.insert("args".into(), Value::Object(input));
    }
    (!answer.is_empty()).then_some(Value::Object(answer))
}

/// What the user's "always" covers: this tool for this reason, unless the hook names a key. (Hermes'
/// own default would be the whole tool.)
fn rule_key(event: &Event, merged: &Verdict) -> Value {
    if let Some(key) = merged.own.get("rule_key") {
        return key.clone();
    }
    let tool = event.tool.as_ref().map_or("", |tool| tool.name.as_str());
    let reason: String = message(merged).unwrap_or_default().chars().take(80).collect();
    json!(format!("hookbus:{tool}:{reason}"))
}

fn incoming_message(merged: &Verdict) -> Option<Value> {
    if merged.ruling == Some(Ruling::Block) {
        return Some(json!({"action": "skip", "reason": message(merged).unwrap_or(BLOCKED)}));
    }
    let allowed = || (merged.ruling == Some(Ruling::Allow)).then(|| json!({"action": "allow"}));
    new_text(merged).map(|text| json!({"action": "rewrite", "text": text})).or_else(allowed)
}

fn command(merged: &Verdict) -> Option<Value> {
    if merged.ruling == Some(Ruling::Block) {
        let handled = merged.own.get("handled") == Some(&Value::Bool(true));
        let mut answer = json!({"decision": if handled { "handled" } else { "deny" }});
        if let Some(message) = message(merged) {
            answer["message"] = json!(message);
        }
        return Some(answer);
    }
    let (name, rest) = new_command(merged)?;
    Some(json!({"decision": "rewrite", "command_name": name, "raw_args": rest}))
}
