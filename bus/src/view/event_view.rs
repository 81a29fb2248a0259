//! One row of the log, parsed once, and what its agent says in it.

use std::path::Path;

use serde_json::{Map, Value};

use super::effects::Effects;
use super::subject::subject;
use crate::dialect::{
    Answer, Dialect, Question, QuestionAnswer, Reported, ReportedUsage, SubagentReport,
    ToolOutcome, dialect_of,
};
use crate::event::{Agent, Kind, ToolClass};
use crate::log::Row;

/// What is shown instead of a payload that was removed on purpose.
pub const REMOVED: &str = "(payload removed)";

/// An event, and what its agent says in it.
#[derive(Debug)]
pub struct EventView<'a> {
    /// The row.
    pub row: &'a Row,
    /// Its kind; `other` if a later version wrote one that this one does not know.
    pub kind: Kind,
    /// The class of its tool.
    pub tool_class: Option<ToolClass>,
    fields: Map<String, Value>,
    dialect: &'static dyn Dialect,
}

impl<'a> EventView<'a> {
    /// The event in `row`.
    pub fn new(row: &'a Row) -> Self {
        let fields = match row.payload_json() {
            Value::Object(fields) => fields,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        let common = || dialect_of_unknown();
        Self {
            row,
            kind: Kind::parse(&row.kind).unwrap_or(Kind::Other),
            tool_class: row.tool_class.as_deref().and_then(ToolClass::parse),
            fields,
            dialect: Agent::named(&row.agent).map_or_else(common, dialect_of),
        }
    }

    /// The payload's fields; none if it was removed or is no object.
    pub const fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Whether the payload was removed on purpose.
    pub const fn is_removed(&self) -> bool {
        self.row.removed.is_some()
    }

    fn reported(&self) -> Reported<'_> {
        Reported {
            name: &self.row.name,
            kind: self.kind,
            tool_class: self.tool_class,
            payload: &self.fields,
        }
    }

    /// The id that joins a tool call with its result.
    pub fn call_id(&self) -> Option<&str> {
        self.dialect.call_id(self.reported())
    }

    /// How a tool call ended.
    pub fn outcome(&self) -> ToolOutcome {
        if self.is_removed() {
            return ToolOutcome::default();
        }
        self.dialect.tool_outcome(self.reported())
    }

    /// The prompt of a turn.
    pub fn prompt(&self) -> Option<String> {
        self.dialect.prompt(self.reported())
    }

    /// The answer of a turn.
    pub fn answer(&self) -> Option<Answer<'_>> {
        self.dialect.answer(self.reported())
    }

    /// Why a turn or a request to the model failed.
    pub fn failure(&self) -> Option<String> {
        self.dialect.failure(self.reported())
    }

    /// The text in a chunk of the model's answer.
    pub fn chunk_text(&self) -> Option<&str> {
        self.dialect.chunk_text(self.reported())
    }

    /// The id of a request to the model.
    pub fn request_id(&self) -> Option<&str> {
        self.dialect.request_id(self.reported())
    }

    /// The model.
    pub fn model(&self) -> Option<&str> {
        self.dialect.model(self.reported())
    }

    /// Tokens and cost.
    pub fn usage(&self) -> Option<ReportedUsage> {
        self.dialect.usage(self.reported())
    }

    /// The question that the agent asks its user.
    pub fn question(&self) -> Option<Question> {
        self.dialect.question(self.reported())
    }

    /// What the user, or an automatic approval, answered.
    pub fn question_answer(&self) -> Option<QuestionAnswer> {
        self.dialect.question_answer(self.reported())
    }

    /// The sub-agent that it is about.
    pub fn subagent(&self) -> SubagentReport<'_> {
        self.dialect.subagent(self.reported())
    }

    /// The sub-agent that it happened in, if that shares the session of its parent.
    pub fn inside_subagent(&self) -> Option<&str> {
        self.dialect.inside_subagent(self.reported())
    }

    /// The arguments of the tool.
    pub fn tool_input(&self) -> &Value {
        self.fields.get("tool_input").unwrap_or(&Value::Null)
    }

    /// What it is about, as one text: the command, the path, what is searched for, the prompt.
    pub fn subject(&self) -> String {
        if self.is_removed() {
            return REMOVED.to_owned();
        }
        subject(self.tool_class, &self.fields)
    }

    /// What a tool call does: programs, files, hosts.
    pub fn effects(&self) -> Effects {
        Effects::of_row(self.row)
    }

    /// The agent's working directory.
    pub fn cwd(&self) -> Option<String> {
        let own = self.fields.get("cwd").and_then(Value::as_str).filter(|cwd| !cwd.is_empty());
        let context = self.context();
        let recorded = || context.get("cwd").and_then(Value::as_str);
        own.or_else(recorded).map(str::to_owned)
    }

    /// The directory of the project: the repository if that was recorded, else the working directory.
    pub fn project(&self) -> Option<String> {
        let context = self.context();
        let project = context.pointer("/place/project").and_then(Value::as_str);
        project.map(str::to_owned).or_else(|| self.cwd())
    }

    fn context(&self) -> Value {
        let text = self.row.context.as_deref();
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
    }
}

/// The name of a project's directory.
pub(super) fn directory_name(path: &str) -> String {
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| path.to_owned())
}

fn dialect_of_unknown() -> &'static dyn Dialect {
    &crate::dialect::Common
}
