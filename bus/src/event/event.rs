//! One lifecycle event of an agent, as the agent reported it.

use serde_json::{Map, Value};

use super::body::{Body, LazyBody};
use crate::event::{Agent, EventId, Kind, Payload, Time, ToolClass, Wire};

/// An event. Immutable: the payload is kept byte for byte, so that a later version can derive the rest (kind,
/// session, turn, tool) from it again.
#[derive(Debug, Clone)]
pub struct Event {
    /// Minted by the client that received it.
    pub id: EventId,
    /// When the client received it.
    pub at: Time,
    /// The agent that it comes from.
    pub agent: Agent,
    /// How it came from the agent.
    pub wire: Wire,
    /// The agent's own name for it.
    pub name: String,
    /// Our name for it.
    pub kind: Kind,
    /// The agent's session; empty if it names none.
    pub session: String,
    /// The agent's turn, if it names one.
    pub turn: Option<String>,
    /// The tool it is about.
    pub tool: Option<Tool>,
    /// The payload, parsed.
    pub body: LazyBody,
    /// The payload as it arrived.
    pub raw: Payload,
}

/// The tool that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The agent's own name for it.
    pub name: String,
    /// What it does.
    pub class: ToolClass,
}

impl Event {
    /// The payload's fields; none if it could not be read.
    pub fn fields(&self) -> Option<&Map<String, Value>> {
        self.body().fields()
    }

    /// The fields that say which event, session, turn, task and tool it is, and perhaps others. Does not parse a long
    /// payload as [`Event::fields`] does.
    pub fn ids(&self) -> Option<&Map<String, Value>> {
        self.body.ids().or_else(|| self.fields())
    }

    /// The payload, parsed.
    pub fn body(&self) -> &Body {
        self.body.get(&self.raw)
    }

    /// The payload's fields, to be changed; none if it could not be read completely.
    pub fn complete_fields_mut(&mut self) -> Option<&mut Map<String, Value>> {
        match self.body.get_mut(&self.raw)? {
            Body::Read(fields) => Some(fields),
            Body::Partial { .. } | Body::Unreadable { .. } => None,
        }
    }

    /// Why the payload cannot be read; none if it can.
    pub fn why_unreadable(&self) -> Option<&str> {
        self.body.why_unreadable()
    }

    /// Whether the payload cannot be read.
    pub fn is_unreadable(&self) -> bool {
        self.why_unreadable().is_some()
    }

    /// Whether only a part of the payload was kept: it is too large or nested too deep.
    pub fn is_partial(&self) -> bool {
        matches!(self.body(), Body::Partial { .. })
    }

    /// Whether the value at a dotted path of the payload may be missing, or may miss some of its parts.
    pub fn is_incomplete_at(&self, path: &str) -> bool {
        let Body::Partial { incomplete, .. } = self.body() else { return false };
        let is_within = |inner: &str, outer: &str| {
            outer.is_empty()
                || inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        incomplete.iter().any(|place| is_within(path, place) || is_within(place, path))
    }

    /// A field of the payload.
    pub fn field(&self, key: &str) -> Option<&Value> {
        self.fields().and_then(|fields| fields.get(key))
    }

    /// The arguments that the tool is called with.
    pub fn tool_input(&self) -> Option<&Map<String, Value>> {
        self.field("tool_input").and_then(Value::as_object)
    }
}
