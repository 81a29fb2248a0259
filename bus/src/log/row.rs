//! Rows of the log: a [`RowDraft`] before it is appended, a [`Row`] as it is stored.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::bus_row::bus_draft;
use crate::event::{
    BusId, BusIdentity, Decision, Event, EventId, Kind, Payload, Seq, Time, payload_digest,
};
use crate::json::read_leniently;

/// A row that was not appended yet.
#[derive(Debug, Clone, PartialEq)]
pub struct RowDraft {
    /// The row's id.
    pub id: EventId,
    /// When it happened.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The agent's turn.
    pub turn: Option<String>,
    /// The agent's name for the event.
    pub name: String,
    /// Our kind of event.
    pub kind: Kind,
    /// The tool that the event is about.
    pub tool: Option<String>,
    /// The class of that tool.
    pub tool_class: Option<String>,
    /// JSON: the working directory, the agent's session variables, marks.
    pub context: Option<String>,
    /// The payload.
    pub payload: Payload,
}

impl RowDraft {
    /// The row of an event, with the payload as it is to be recorded.
    pub fn of_event(event: &Event, context: Option<String>, payload: impl Into<Payload>) -> Self {
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
            payload: payload.into(),
        }
    }

    /// The row of the decision about `event`, made at `at`.
    pub fn of_decision(event: &Event, decision: &Decision, at: Time) -> Self {
        let cause = Self::of_event(event, None, Vec::new());
        Self {
            id: event.id.of_decision(),
            at,
            name: Kind::Decision.as_str().to_owned(),
            kind: Kind::Decision,
            payload: decision.to_json().to_string().into_bytes().into(),
            ..cause
        }
    }
}

/// A hooks file as it is recorded: a row of kind `hooks.loaded`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksSnapshot {
    /// SHA-256 of the content, in hex.
    pub hash: String,
    /// The file's path.
    pub path: String,
    /// The file's text; empty if there is no file.
    pub content: String,
    /// Whether it belongs to a project, and is active only there.
    pub of_project: bool,
    /// The file's settings other than its hooks, without secrets; none if they are not known.
    pub settings: Option<Map<String, Value>>,
}

impl HooksSnapshot {
    /// The row that records it.
    pub(super) fn to_row(&self, at: Time) -> RowDraft {
        RowDraft {
            context: self.of_project.then(|| Self::context(&self.path)),
            ..bus_draft(Kind::HooksLoaded, &self.to_json(), at)
        }
    }

    /// The row that records it if it came with a spooled event.
    pub(super) fn to_late_row(&self, at: Time) -> RowDraft {
        let project = self.of_project.then_some(self.path.as_str());
        RowDraft { context: Some(Self::late_context(project)), ..self.to_row(at) }
    }

    /// The `context` of such a row.
    pub(super) fn late_context(project: Option<&str>) -> String {
        let mut context = json!({"late": true});
        if let Some(file) = project {
            context["project"] = json!({"file": file});
        }
        context.to_string()
    }

    /// The `context` of a row with the hooks of this project file, to find it by. The user's own hooks
    /// have none.
    pub(super) fn context(project: &str) -> String {
        json!({"project": {"file": project}}).to_string()
    }

    /// Whether the file has settings other than its hooks.
    pub(super) fn has_settings(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| !settings.is_empty())
    }

    /// The payload of the row.
    pub(super) fn to_json(&self) -> Value {
        let mut row = json!({"hash": self.hash, "path": self.path, "content": self.content});
        if self.of_project {
            row["project"] = json!(true);
        }
        if let Some(settings) = &self.settings {
            row["settings"] = json!(settings);
        }
        row
    }

    /// Reads the payload of such a row.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let of_project = value.get("project") == Some(&json!(true));
        Some(Self {
            hash: text("hash")?,
            path: text("path")?,
            content: text("content")?,
            of_project,
            settings: value.get("settings").and_then(Value::as_object).cloned(),
        })
    }
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its number in the log.
    pub seq: Seq,
    /// Its id.
    pub id: EventId,
    /// When it happened.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The agent's turn.
    pub turn: Option<String>,
    /// The agent's name for the event.
    pub name: String,
    /// Our kind of event. A later version may have written kinds that this one does not know.
    pub kind: String,
    /// The tool that the event is about.
    pub tool: Option<String>,
    /// The class of that tool.
    pub tool_class: Option<String>,
    /// The seq of the event that a decision is about.
    pub cause: Option<Seq>,
    /// JSON: the working directory, the agent's session variables, marks.
    pub context: Option<String>,
    /// The bytes that the agent sent; empty if they were removed.
    pub payload: Vec<u8>,
    /// The digest of a payload that was removed on purpose; none if the payload is there.
    pub removed: Option<[u8; 32]>,
    /// What was redacted on purpose after the row was recorded.
    pub redaction: Option<Redaction>,
    /// The hash chain up to and including this row.
    pub hash: [u8; 32],
    /// Where the row was recorded, if this log is an archive.
    pub origin: Option<Origin>,
    /// Who recorded it; none in a row of an earlier version, and where the log does not hold it.
    pub identity: Option<Arc<BusIdentity>>,
}

/// What was redacted in a row on purpose, after it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redaction {
    /// The digest of the payload as it was recorded, which the hash of the row covers; none if it is still there.
    pub original: Option<[u8; 32]>,
    /// The digest of the payload since then.
    pub now: [u8; 32],
    /// Whether the event's name or the context were redacted too. The hash of the row covers them as they were, so that it
    /// cannot be computed any more: only the record in the log of the bus tells whether the row is right.
    pub of_columns: bool,
}

/// A row of an archive in the log of its own bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The bus that recorded it.
    pub bus: BusId,
    /// Its seq there.
    pub seq: Seq,
    /// The seq there of the event that a decision is about.
    pub cause: Option<Seq>,
}

impl Row {
    /// The digest of the payload that the hash of the row covers, also of one that was removed or redacted.
    pub fn payload_digest(&self) -> [u8; 32] {
        let original = self.redaction.and_then(|redaction| redaction.original);
        self.removed.or(original).unwrap_or_else(|| payload_digest(&self.payload))
    }

    /// The payload as JSON: parsed leniently, or as one string if it is not JSON. Null if it was removed.
    pub fn payload_json(&self) -> Value {
        if self.removed.is_some() {
            return Value::Null;
        }
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
        let identity = self.identity.as_deref();
        for (key, value) in [
            ("bus_name", identity.map(|it| &it.name)),
            ("host", identity.map(|it| &it.host)),
            ("user", identity.map(|it| &it.user)),
            ("home", identity.map(|it| &it.home)),
        ] {
            object.insert(key.to_owned(), json!(value));
        }
        if self.removed.is_some() {
            object.insert("removed".to_owned(), json!(true));
        }
        if self.redaction.is_some() {
            object.insert("redacted".to_owned(), json!(true));
        }
        if let Some(origin) = &self.origin {
            object.insert("bus".to_owned(), json!(origin.bus.to_string()));
            object.insert("bus_seq".to_owned(), json!(origin.seq.as_i64()));
        }
        Value::Object(object)
    }
}

/// A row read from an envelope, with its seq in the log of its own bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The bus that recorded it.
    pub bus: BusId,
    /// The row.
    pub row: Row,
    /// Where the payload is, if it was too large for the envelope.
    pub stored: Option<StoredPayload>,
}

impl Received {
    /// The digest of the payload, also of one that was not fetched; none if nothing tells it.
    pub fn payload_digest(&self) -> Option<[u8; 32]> {
        let original = self.row.redaction.and_then(|redaction| redaction.original);
        match &self.stored {
            Some(stored) if self.row.payload.is_empty() => original.or(stored.digest),
            Some(_) | None => Some(self.row.payload_digest()),
        }
    }
}

/// A payload in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPayload {
    /// `bucket/object`.
    pub object: String,
    /// The digest of the bytes in the object. Envelopes of early versions do not name it.
    pub digest: Option<[u8; 32]>,
}

impl StoredPayload {
    /// The object with the payload of the row `id`.
    pub fn new(bucket: &str, id: EventId, payload: &[u8]) -> Self {
        Self { object: Self::object(bucket, id), digest: Some(payload_digest(payload)) }
    }

    /// The name of the object with the payload of the row `id`.
    pub fn object(bucket: &str, id: EventId) -> String {
        format!("{bucket}/{id}")
    }
}
