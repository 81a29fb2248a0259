//! The merged verdict as Gemini's JSON. Only keys that Gemini acts on, and no output if there are none: at
//! `BeforeToolSelection` even `{}` would change the request.

use serde_json::{Map, Value, json};

use super::event_rules::Strategy;
use crate::event::{Event, Rewrite, Ruling, Verdict};

/// The answer; none if it would be empty.
pub(super) fn encode(event: &Event, merged: &Verdict) -> Option<Value> {
    let mut answer = Map::new();
    if Strategy::of(event) != Strategy::ToolConfig {
        insert_ruling(merged, &mut answer);
        if let Some(notice) = &merged.notice {
            answer.insert("systemMessage".into(), json!(notice));
        }
        if merged.quiet {
            answer.insert("suppressOutput".into(), json!(true));
        }
    }
    let specific = specific(merged);
    if !specific.is_empty() {
        let named = [("hookEventName".to_owned(), json!(event.name))].into_iter().chain(specific);
        answer.insert("hookSpecificOutput".into(), Value::Object(named.collect()));
    }
    (!answer.is_empty()).then_some(Value::Object(answer))
}

fn insert_ruling(merged: &Verdict, answer: &mut Map<String, Value>) {
    if merged.stop {
        answer.insert("continue".into(), json!(false));
        if let Some(reason) = &merged.stop_reason {
            answer.insert("stopReason".into(), json!(reason));
        }
    }
    match merged.ruling {
        Some(Ruling::Block) => {
            answer.insert("decision".into(), json!("deny"));
        }
        Some(Ruling::Ask) => {
            answer.insert("decision".into(), json!("ask"));
        }
        Some(Ruling::Allow) | None if !merged.stop => return, // Gemini goes on anyway
        Some(Ruling::Allow) | None => {}
    }
    if let Some(reason) = &merged.reason {
        answer.insert("reason".into(), json!(reason));
    }
}

fn specific(merged: &Verdict) -> Map<String, Value> {
    let mut specific = Map::new();
    if let Some(context) = &merged.context {
        specific.insert("additionalContext".into(), json!(context));
    }
    if let Some(Rewrite::Whole(input)) = &merged.rewrite {
        specific.insert("tool_input".into(), Value::Object(input.clone()));
    }
    specific.extend(merged.own.clone());
    specific
}
