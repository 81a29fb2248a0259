//! Hermes Agent over its shell-hook wire, as 0.19 really behaves: three events take an answer,
//! the first block wins, contexts are joined by a blank line, everything else is silence.

use serde_json::{Value, json};

use super::Takes;
use crate::event::{Body, Event, Ruling, Verdict};

/// What Hermes acts on at this event.
pub(super) fn takes(event: &Event) -> Takes {
    match Hears::at(event) {
        Hears::Block | Hears::Continue => Takes { block: true, ..Takes::NOTHING },
        Hears::Context => Takes { context: true, ..Takes::NOTHING },
        Hears::Nothing => Takes::NOTHING,
    }
}

/// The first block wins whole; contexts add up.
pub(super) fn merge(event: &Event, verdicts: &[&Verdict]) -> Verdict {
    match Hears::at(event) {
        Hears::Block | Hears::Continue => verdicts
            .iter()
            .find(|verdict| verdict.ruling == Some(Ruling::Block))
            .or_else(|| verdicts.iter().find(|verdict| verdict.ruling.is_some()))
            .map_or_else(Verdict::silent, |first| Verdict {
                ruling: first.ruling,
                reason: first.reason.clone(),
                ..Verdict::silent()
            }),
        Hears::Context => {
            let said: Vec<&str> =
                verdicts.iter().filter_map(|verdict| verdict.context.as_deref()).collect();
            let context = (!said.is_empty()).then(|| said.join("\n\n"));
            Verdict { context, ..Verdict::silent() }
        }
        Hears::Nothing => Verdict::silent(),
    }
}

/// The answer as Hermes 0.19 and its successors both understand it.
pub(super) fn encode(event: &Event, merged: &Verdict) -> Option<Value> {
    let blocked = merged.ruling == Some(Ruling::Block);
    match Hears::at(event) {
        // Without a reason Hermes puts in its own words, as it would for the hook itself.
        Hears::Block if blocked => Some(match &merged.reason {
            Some(reason) => json!({"decision": "block", "reason": reason}),
            None => json!({"decision": "block"}),
        }),
        Hears::Continue if blocked => {
            let message = merged.reason.as_deref().filter(|text| !text.trim().is_empty())?;
            Some(json!({"action": "continue", "message": message}))
        }
        Hears::Context => merged.context.as_ref().map(|context| json!({"context": context})),
        Hears::Block | Hears::Continue | Hears::Nothing => None,
    }
}

/// What Hermes listens for, by event.
#[derive(Clone, Copy)]
enum Hears {
    Block,
    Continue,
    Context,
    Nothing,
}

impl Hears {
    fn at(event: &Event) -> Self {
        match (event.name.as_str(), &event.body) {
            // Nobody knows which event it was: the one answer that can stop a tool call.
            ("pre_tool_call", _) | (_, Body::Unreadable { .. }) => Self::Block,
            ("pre_verify", _) => Self::Continue,
            ("pre_llm_call", _) => Self::Context,
            _ => Self::Nothing,
        }
    }
}
