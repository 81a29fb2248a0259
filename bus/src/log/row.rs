//! Rows: a draft on its way in, a row as it stands in the log.

use serde_json::{Map, Value, json};

use crate::event::{BusId, Decision, Event, EventId, Kind, Seq, Time};
use crate::json::read_leniently;

/// A row that has no place yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// See the schema for each of these.
    pub id: EventId,
    /// When it happened.
    pub at: Time,
    /// Whose event it is.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The agent's turn.
    pub turn: Option<String>,
    /// The agent's name for it.
    pub name: String,
    /// Our name for it.
    pub kind: Kind,
    /// The tool it is about.
    pub tool: Option<String>,
    /// What that tool does.
    pub tool_class: Option<String>,
    /// Where it came from: cwd, session variables, marks.
    pub context: Option<String>,
    /// The bytes.
    pub payload: Vec<u8>,
}

impl Draft {
    /// The row of an event.
    pub fn of_event(event: &Event, context: Option<String>) -> Self {
        let (tool, tool_class) = match &event.tool {
            Some(tool) => (Some(tool.name.clone()), Some(tool.class.as_str().to_owned())),
            None => (None, None),
        };
        Self {
            id: event.id,
            at: event.at,
            agent: event.agent.as_str().to_owned(),
            session: event.session.clone(),
            turn: event.turn.clone(),
            name: event.name.clone(),
            kind: event.kind,
            tool,
            tool_class,
            context,
            payload: event.raw.clone(),
        }
    }

    /// The row of the decision about `event`, made at `at`.
    pub fn of_decision(event: &Event, decision: &Decision, at: Time) -> Self {
        let cause = Self::of_event(event, None);
        Self {
            id: event.id.of_decision(),
            at,
            name: Kind::Decision.as_str().to_owned(),
            kind: Kind::Decision,
            payload: decision.to_json().to_string().into_bytes(),
            ..cause
        }
    }
}

/// The content of the hooks in force, for its own row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksDraft {
    /// SHA-256 of the content, in hex.
    pub hash: String,
    /// Where it was read.
    pub path: String,
    /// The file's text; empty where there is no file.
    pub content: String,
    /// Whether it is a project's, in force only there.
    pub of_project: bool,
}

impl HooksDraft {
    /// The row that holds it.
    pub(super) fn to_row(&self, at: Time) -> Draft {
        Draft {
            id: EventId::mint(at),
            at,
            agent: "hookbus".to_owned(),
            session: String::new(),
            turn: None,
            name: Kind::HooksLoaded.as_str().to_owned(),
            kind: Kind::HooksLoaded,
            tool: None,
            tool_class: None,
            context: self.of_project.then(|| Self::context(&self.path)),
            payload: self.to_json().to_string().into_bytes(),
        }
    }

    /// What stands beside the hooks of the project with this file, to find them by; nothing beside a
    /// person's own.
    pub(super) fn context(project: &str) -> String {
        json!({"project": {"file": project}}).to_string()
    }

    /// What such a row holds.
    pub(super) fn to_json(&self) -> Value {
        let mut row = json!({"hash": self.hash, "path": self.path, "content": self.content});
        if self.of_project {
            row["project"] = json!(true);
        }
        row
    }

    /// The other way round.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let of_project = value.get("project") == Some(&json!(true));
        Some(Self {
            hash: text("hash")?,
            path: text("path")?,
            content: text("content")?,
            of_project,
        })
    }
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its place.
    pub seq: Seq,
    /// Its id.
    pub id: EventId,
    /// When it happened.
    pub at: Time,
    /// Whose event it is.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The agent's turn.
    pub turn: Option<String>,
    /// The agent's name for it.
    pub name: String,
    /// Our name for it; a later version may know more of them.
    pub kind: String,
    /// The tool it is about.
    pub tool: Option<String>,
    /// What that tool does.
    pub tool_class: Option<String>,
    /// The event that a decision is about.
    pub cause: Option<Seq>,
    /// Where it came from: cwd, session variables, marks.
    pub context: Option<String>,
    /// The bytes as they arrived.
    pub payload: Vec<u8>,
    /// The head of the chain at this row.
    pub hash: [u8; 32],
    /// Its place in the log it comes from, where this log is an archive.
    pub origin: Option<Origin>,
}

/// The place of a row in its own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Whose row it is.
    pub bus: BusId,
    /// Where it stands there.
    pub seq: Seq,
    /// Where the event stands there that a decision is about.
    pub cause: Option<Seq>,
}

impl Row {
    /// The payload as JSON: read leniently, or as text where it is none.
    pub fn payload_json(&self) -> Value {
        read_leniently(&self.payload)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&self.payload).into_owned()))
    }

    /// The object of `hookbus log --json`.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let context = self.context.as_deref().and_then(|text| serde_json::from_str(text).ok());
        for (key, value) in [
            ("seq", json!(self.seq.as_i64())),
            ("id", json!(self.id.to_string())),
            ("time", json!(self.at.to_string())),
            ("agent", json!(self.agent)),
            ("session", json!(self.session)),
            ("turn", json!(self.turn)),
            ("name", json!(self.name)),
            ("kind", json!(self.kind)),
            ("tool", json!(self.tool)),
            ("tool_class", json!(self.tool_class)),
            ("cause", json!(self.cause.map(Seq::as_i64))),
            ("context", context.unwrap_or(Value::Null)),
            ("payload", self.payload_json()),
            ("hash", json!(hex::encode(self.hash))),
        ] {
            object.insert(key.to_owned(), value);
        }
        if let Some(origin) = &self.origin {
            object.insert("bus".to_owned(), json!(origin.bus.to_string()));
            object.insert("bus_seq".to_owned(), json!(origin.seq.as_i64()));
        }
        Value::Object(object)
    }
}
