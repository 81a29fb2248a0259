//! What one row says, read by the dialect of its agent. The payload is parsed only where something in it counts.

use hookbus::dialect::{Reported, Reports, dialect_of};
use hookbus::event::{Agent, Kind, ToolClass, one_line};
use hookbus::json::read_leniently;
use hookbus::log::Row;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// How many characters of prompts, commands, reasons and errors are kept.
pub(super) const TEXT: usize = 500;

/// How many characters of names are kept: tools, models, hooks, directories.
pub(super) const NAME: usize = 300;

/// Whether figures depend on the payload of an event of this kind.
pub(super) const fn is_read(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::SessionStart
            | Kind::TurnStart
            | Kind::TurnEnd
            | Kind::ModelChunk
            | Kind::ModelAfter
            | Kind::ToolBefore
            | Kind::ToolAfter
            | Kind::ToolFailed
            | Kind::SubagentStart
            | Kind::SubagentStop
    )
}

/// The payload of a row; empty if it is no object, or was removed.
pub(super) fn payload(row: &Row) -> Map<String, Value> {
    if row.removed.is_some() {
        return Map::new();
    }
    match read_leniently(&row.payload) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

/// A row with its payload, as the dialect of its agent reads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    agent: Option<Agent>,
    pub(super) event: Reported<'a>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(row: &'a Row, kind: Kind, payload: &'a Map<String, Value>) -> Self {
        let tool_class = row.tool_class.as_deref().and_then(ToolClass::parse);
        let event = Reported { name: &row.name, kind, tool_class, payload };
        Self { agent: Agent::named(&row.agent), event }
    }

    /// What the agent reports.
    pub(super) fn reports(&self) -> Option<&'static dyn Reports> {
        self.agent.map(|agent| dialect_of(agent) as &'static dyn Reports)
    }

    /// The working directory, of the payload or else of the context.
    pub(super) fn cwd(&self, row: &Row) -> Option<String> {
        let in_payload = self.event.payload.get("cwd").and_then(Value::as_str);
        if let Some(cwd) = in_payload.filter(|cwd| !cwd.is_empty()) {
            return Some(one_line(cwd, NAME));
        }
        let context: Value = serde_json::from_str(row.context.as_deref()?).ok()?;
        let cwd = context.get("cwd")?.as_str().filter(|cwd| !cwd.is_empty())?;
        Some(one_line(cwd, NAME))
    }

    /// The input of a tool call.
    pub(super) fn tool_input(&self) -> Option<&'a Map<String, Value>> {
        self.event.payload.get("tool_input").and_then(Value::as_object)
    }

    /// A number by which a result is joined with its call where the agent sends no id.
    pub(super) fn input_hash(&self) -> i64 {
        let Some(input) = self.event.payload.get("tool_input") else { return 0 };
        let digest = Sha256::digest(input.to_string().as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        i64::from_be_bytes(first)
    }
}

/// Microseconds of a span in milliseconds, as decisions record them.
pub(super) fn micros_of(ms: Option<f64>) -> Option<i64> {
    let micros = (ms?.clamp(0.0, 1e12) * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1e15")]
    let micros = micros as i64;
    Some(micros)
}
