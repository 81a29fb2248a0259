//! The merged verdict in Hermes' words: for its own wire as 0.19 and its successors both read it, for
//! the bridge as the value that a plugin's hook returns.

use serde_json::{Map, Value, json};

use super::hears::Hears;
use super::merge::{message, new_command, new_text};
use crate::event::{Event, Ruling, Verdict};

/// What is said where a hook blocked without a word and Hermes needs one.
const BLOCKED: &str = "Blocked by a hook.";

/// The answer; silence where Hermes has nothing to hear.
pub(in crate::dialect) fn encode(event: &Event, merged: &Verdict) -> Option<Value> {
    let blocked = merged.ruling == Some(Ruling::Block);
    match Hears::at(event) {
        // Without a reason Hermes puts in its own words, as it would for the hook itself.
        Hears::Block if blocked => Some(match &merged.reason {
            Some(reason) => json!({"decision": "block", "reason": reason}),
            None => json!({"decision": "block"}),
        }),
        Hears::Directive => directive(event, merged),
        Hears::Continue if blocked => {
            Some(json!({"action": "continue", "message": message(merged)?}))
        }
        Hears::Context => merged.context.as_ref().map(|context| json!({"context": context})),
        Hears::Text => new_text(merged).map(Value::String),
        Hears::Message => received(merged),
        Hears::Command => command(merged),
        Hears::Block | Hears::Continue | Hears::Nothing => None,
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

/// What an "always" of the person covers. Hermes' own default is the whole tool; here it is this
/// tool for this reason, unless the hook says.
fn rule_key(event: &Event, merged: &Verdict) -> Value {
    if let Some(said) = merged.own.get("rule_key") {
        return said.clone();
    }
    let tool = event.tool.as_ref().map_or("", |tool| tool.name.as_str());
    let reason: String = message(merged).unwrap_or_default().chars().take(80).collect();
    json!(format!("hookbus:{tool}:{reason}"))
}

fn received(merged: &Verdict) -> Option<Value> {
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
