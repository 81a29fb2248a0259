//! Which dialect answers whom.

use serde_json::Value;

use super::{Takes, gemini, hermes};
use crate::event::{Agent, Event, Verdict};

/// What `event`'s agent can take as an answer to it.
pub fn takes(event: &Event) -> Takes {
    match event.agent {
        Agent::Hermes => hermes::takes(event),
        Agent::Gemini => gemini::takes(event),
        Agent::Claude | Agent::Codex => Takes::NOTHING,
    }
}

/// One verdict out of many, in their given order, by the rules of the agent that asked.
pub fn merge(event: &Event, verdicts: &[&Verdict]) -> Verdict {
    match event.agent {
        Agent::Hermes => hermes::merge(event, verdicts),
        Agent::Gemini => gemini::merge(event, verdicts),
        Agent::Claude | Agent::Codex => Verdict::silent(),
    }
}

/// The merged verdict in the agent's own words; silence where it has nothing to hear.
pub fn encode(event: &Event, merged: &Verdict) -> Option<Value> {
    match event.agent {
        Agent::Hermes => hermes::encode(event, merged),
        Agent::Gemini => gemini::encode(event, merged),
        Agent::Claude | Agent::Codex => None,
    }
}

/// Whether the agent came to this event because an earlier answer told it to go on.
pub fn is_continuation(event: &Event) -> bool {
    event.field("stop_hook_active").and_then(Value::as_bool) == Some(true)
}
