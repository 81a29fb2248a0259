//! The values that an expression of `if:` sees: their names, their types, and where they come from.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, Value};

use super::condition::FileKey;
use super::facts::Facts;
use crate::files::lexical_path;

/// The names, in the order of the documentation.
pub(super) const VARIABLES: [&str; 24] = [
    "agent",
    "session",
    "event",
    "kind",
    "tool",
    "tool_class",
    "mcp_server",
    "mcp_tool",
    "model",
    "cwd",
    "project",
    "home",
    "command",
    "commands",
    "programs",
    "paths",
    "reads",
    "writes",
    "deletes",
    "urls",
    "hosts",
    "size",
    "opaque",
    "input",
];

/// The values of one event, or of a sample.
pub(super) struct Values(Vec<(String, Value)>);

impl Values {
    /// Those of an event, as far as they are `wanted`.
    pub(super) fn of_event(facts: &Facts<'_>, wanted: &BTreeSet<String>) -> Self {
        Self(wanted.iter().map(|name| (name.clone(), of_event(name, facts))).collect())
    }

    /// Made-up values of the same types.
    pub(super) fn sample(wanted: &BTreeSet<String>) -> Self {
        let sample = |name: &str| match name {
            "commands" | "programs" | "paths" | "reads" | "writes" | "deletes" | "urls"
            | "hosts" => texts(["/x".to_owned()]),
            "size" => Value::Int(1),
            "opaque" => Value::Bool(true),
            "input" => of_json(&serde_json::Value::Object(serde_json::Map::new())),
            _ => text("/x"),
        };
        Self(wanted.iter().map(|name| (name.clone(), sample(name))).collect())
    }

    /// Makes them known, with the functions over them.
    pub(super) fn bind(&self, context: &mut Context<'_, '_>) {
        for (name, value) in &self.0 {
            context.add_variable_from_value(name.clone(), value.clone());
        }
        let under = |path: Arc<String>, folder: Arc<String>| {
            lexical_path(Path::new(path.as_str()))
                .starts_with(lexical_path(Path::new(folder.as_str())))
        };
        if let Err(error) = context.add_function("under", under) {
            tracing::error!(%error, "a function of `if` cannot be declared");
        }
    }
}

fn of_event(name: &str, facts: &Facts<'_>) -> Value {
    let event = facts.event;
    let tool = event.tool.as_ref();
    let path = |path: &Path| text(&path.to_string_lossy());
    let files = |key: FileKey| {
        let files = facts.files().iter().filter(move |file| key.covers(file.access));
        texts(files.filter_map(|file| Some(file.path()?.to_string_lossy().into_owned())))
    };
    match name {
        "agent" => text(&event.agent.to_string()),
        "session" => text(&event.session),
        "event" => text(&event.name),
        "kind" => text(event.kind.as_str()),
        "tool" => text(tool.map_or("", |tool| tool.name.as_str())),
        "tool_class" => text(tool.map_or("", |tool| tool.class.as_str())),
        "mcp_server" => text(facts.mcp().map_or("", |mcp| mcp.server)),
        "mcp_tool" => text(facts.mcp().map_or("", |mcp| mcp.tool)),
        "model" => text(facts.model().unwrap_or_default()),
        "cwd" => path(&facts.place.cwd),
        "project" => path(&facts.place.project),
        "home" => facts.place.home.as_deref().map_or_else(|| text(""), path),
        "command" => text(facts.commands().first().map_or("", |command| command.line.as_str())),
        "commands" => texts(facts.commands().iter().map(|command| command.line.clone())),
        "programs" => texts(facts.invocations().flat_map(|it| it.names().map(str::to_owned))),
        "paths" => files(FileKey::Path),
        "reads" => files(FileKey::Reads),
        "writes" => files(FileKey::Writes),
        "deletes" => files(FileKey::Deletes),
        "urls" => texts(facts.hosts().iter().map(|host| host.text.to_string())),
        "hosts" => texts(facts.hosts().iter().map(|host| host.host.to_string())),
        "size" => Value::Int(i64::try_from(facts.size()).unwrap_or(i64::MAX)),
        "opaque" => Value::Bool(facts.commands().iter().any(|it| !it.view.opaque.is_empty())),
        _ => {
            let input = event.field("tool_input").filter(|input| input.is_object());
            input.map_or_else(|| of_json(&serde_json::json!({})), of_json)
        }
    }
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn texts(texts: impl IntoIterator<Item = String>) -> Value {
    Value::List(Arc::new(texts.into_iter().map(|text| Value::String(Arc::new(text))).collect()))
}

fn of_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(it) => text(it),
        serde_json::Value::Array(items) => {
            Value::List(Arc::new(items.iter().map(of_json).collect()))
        }
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (Key::from(key.clone()), of_json(value)));
            Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}
