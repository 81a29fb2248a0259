//! One lifecycle event of an agent, as the agent reported it.

use serde_json::{Map, Value};

use crate::event::{Agent, EventId, Kind, Time, ToolClass, Wire};

/// An event. Immutable: the payload is kept byte for byte, so that a later version can derive the rest (kind,
/// session, turn, tool) from it again.
#[derive(Debug, Clone, PartialEq)]
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
    pub body: Body,
    /// The payload as it arrived.
    pub raw: Vec<u8>,
}

/// The tool that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The agent's own name for it.
    pub name: String,
    /// What it does.
    pub class: ToolClass,
}

/// A parsed payload. Parsing cannot fail: an unreadable payload is a body too.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A JSON object.
    Read(Map<String, Value>),
    /// A JSON object of which only a part was kept, here or by our bridge, because it was too large or
    /// nested too deep.
    Partial {
        /// What was kept.
        fields: Map<String, Value>,
        /// The values that are not complete, as dotted paths; an empty path is the payload.
        incomplete: Vec<String>,
    },
    /// Anything else.
    Unreadable {
        /// Why it cannot be read.
        why: String,
    },
}

impl Event {
    /// The payload's fields; none if it could not be read.
    pub const fn fields(&self) -> Option<&Map<String, Value>> {
        match &self.body {
            Body::Read(fields) | Body::Partial { fields, .. } => Some(fields),
            Body::Unreadable { .. } => None,
        }
    }

    /// Whether only a part of the payload was kept: it is too large or nested too deep.
    pub const fn is_partial(&self) -> bool {
        matches!(self.body, Body::Partial { .. })
    }

    /// Whether the value at a dotted path of the payload may be missing, or may miss some of its parts.
    pub fn is_incomplete_at(&self, path: &str) -> bool {
        let Body::Partial { incomplete, .. } = &self.body else { return false };
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
