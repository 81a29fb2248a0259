//! One lifecycle moment of an agent, as the agent told it.

use serde_json::{Map, Value};

use crate::event::{Agent, EventId, Kind, Time, ToolClass, Wire};

/// An event. Immutable: what is derived from the payload (kind, session, turn, tool) can be
/// computed again by a better reader; the payload itself is kept byte for byte.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Minted by the client that heard it.
    pub id: EventId,
    /// When the client heard it.
    pub at: Time,
    /// Who told it.
    pub agent: Agent,
    /// How it came.
    pub wire: Wire,
    /// The agent's own name for the moment.
    pub name: String,
    /// Our name for it.
    pub kind: Kind,
    /// The agent's session, empty where it names none.
    pub session: String,
    /// The agent's turn, where it names one.
    pub turn: Option<String>,
    /// The tool it is about.
    pub tool: Option<Tool>,
    /// What the payload says.
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

/// A payload, read. Reading cannot fail: what stays unreadable says why.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A JSON object.
    Read(Map<String, Value>),
    /// Anything else.
    Unreadable {
        /// What the reader stumbled over.
        why: String,
    },
}

impl Event {
    /// The payload's fields; none if it could not be read.
    pub const fn fields(&self) -> Option<&Map<String, Value>> {
        match &self.body {
            Body::Read(fields) => Some(fields),
            Body::Unreadable { .. } => None,
        }
    }

    /// A field of the payload.
    pub fn field(&self, key: &str) -> Option<&Value> {
        self.fields().and_then(|fields| fields.get(key))
    }

    /// What the tool is called with.
    pub fn tool_input(&self) -> Option<&Map<String, Value>> {
        self.field("tool_input").and_then(Value::as_object)
    }
}
