//! When two events are the same call to a rule. Most rules look at what a call does, and not at its session, its time
//! and its ids. A replay asks such rules once about calls that repeat, and projections read their shell lines once.

use std::hash::{Hash, Hasher};

use serde_json::{Map, Value};

use super::condition::Condition;
use super::evaluate::Rule;
use super::place::Place;
use crate::event::Event;

/// Fields of a payload, and of Hermes' `extra`, that tell calls apart and say nothing about what they do.
const IDS: [&str; 10] = [
    "api_request_id",
    "message_id",
    "prompt_id",
    "session_id",
    "task_id",
    "timestamp",
    "tool_call_id",
    "tool_use_id",
    "transcript_path",
    "turn_id",
];

/// A larger payload is not compared with others: it is unlikely to come again.
pub const LARGEST_CALL: usize = 16 << 10;

/// Hashes what rules may see of a call, except its ids, its session and its time. Returns whether there is a tool call
/// that was read completely; nothing else is compared.
pub fn hash_call(event: &Event, place: &Place, state: &mut impl Hasher) -> bool {
    let (Some(fields), Some(tool), Some(_)) = (event.fields(), &event.tool, event.tool_input())
    else {
        return false;
    };
    if event.is_partial() || event.raw.len() > LARGEST_CALL {
        return false;
    }
    (event.agent, event.kind, &event.name, tool.class, &tool.name).hash(state);
    if !place.hash_recorded(state) {
        return false;
    }
    hash_fields(fields, state);
    true
}

/// Hashes the fields of a payload, except ids, session and time.
pub fn hash_fields(fields: &Map<String, Value>, state: &mut impl Hasher) {
    for (key, value) in fields.iter().filter(|(key, _)| !IDS.contains(&key.as_str())) {
        key.hash(state);
        match value.as_object().filter(|_| key == "extra") {
            Some(extra) => {
                extra.iter().filter(|(key, _)| !IDS.contains(&key.as_str())).for_each(|field| {
                    field.hash(state);
                });
            }
            None => value.hash(state),
        }
    }
}

impl Rule {
    /// Whether it has the same verdict about all events that [`hash_call`] hashes alike.
    pub fn is_about_the_call_alone(&self) -> bool {
        let mut conditions = self.when.iter().chain(&self.unless);
        self.expression.is_none() && conditions.all(Condition::is_about_the_call_alone)
    }
}

impl Condition {
    fn is_about_the_call_alone(&self) -> bool {
        match self {
            // A secret is looked for in the whole payload.
            Self::Session(_) | Self::Secret(_) => false,
            Self::Field(path, _) => {
                path != "extra" && !path.split('.').any(|name| IDS.contains(&name))
            }
            Self::Tool(_)
            | Self::Agent(_)
            | Self::Model(_)
            | Self::Cwd(_)
            | Self::Mcp(..)
            | Self::Size(_)
            | Self::Runs(_)
            | Self::File(..)
            | Self::Host(_) => true,
        }
    }
}
