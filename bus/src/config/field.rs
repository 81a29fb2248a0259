//! Finding the texts in an event that a rule's `when` names. The short names `command`, `path`, `url` and
//! `text` are also found under the names that tools of different agents use for them.

use serde_json::{Map, Value};

use crate::event::{Event, Kind, ToolClass};

/// The texts at `path`, a dotted path in the tool's input, else in the payload, else in Hermes' `extra`; for a
/// short name also the texts under its other names.
pub(super) fn find(event: &Event, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let extra = event.field("extra").and_then(Value::as_object);
    let objects: Vec<&Map<String, Value>> =
        [event.tool_input(), event.fields(), extra].into_iter().flatten().collect();
    for name in std::iter::once(path).chain(other_names(path, event).iter().copied()) {
        if let Some(value) = objects.iter().find_map(|object| walk(object, name)) {
            collect(value, &mut found);
        }
    }
    if path == "path" {
        for patch in ["patch", "command", "input"]
            .iter()
            .filter_map(|name| event.tool_input()?.get(*name)?.as_str())
        {
            found.extend(paths_in(patch).map(str::to_owned));
        }
    }
    found
}

/// The other names of a `command`, `path`, `url` or `text`.
fn other_names(path: &str, event: &Event) -> &'static [&'static str] {
    let class = event.tool.as_ref().map(|tool| tool.class);
    match (path, class) {
        // `data` and `chars` are typed into a program that is already running.
        ("command", _) => &["cmd", "code", "script", "data", "chars", "details.command"],
        ("path", _) => &[
            "file_path",
            "absolute_path",
            "dir_path",
            "notebook_path",
            "paths",
            "include",
            "filename",
            "directory",
            "details.filePath",
        ],
        // Gemini's `web_fetch` gets its addresses inside a prompt.
        ("url", Some(ToolClass::WebFetch)) => &["urls", "prompt"],
        ("url", _) => &["urls"],
        ("text", _) if event.kind == Kind::ToolOutput => &["result", "output"],
        ("text", _) if event.kind == Kind::MessageIn => &["event.text"],
        ("text", Some(_)) => &["content", "new_string", "patch", "prompt", "query", "message"],
        ("text", None) => &[
            "prompt",
            "user_message",
            "message",
            "prompt_response",
            "response_text",
            "assistant_response",
            "final_response",
        ],
        _ => &[],
    }
}

/// The files that a patch touches, in the patch format of Hermes and Codex.
fn paths_in(patch: &str) -> impl Iterator<Item = &str> {
    let marks = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    patch.lines().filter_map(move |line| marks.iter().find_map(|mark| line.strip_prefix(mark)))
}

fn walk<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return (!value.is_null()).then_some(value);
    }
    let (first, rest) = path.split_once('.')?;
    match object.get(first)? {
        Value::Object(inner) => walk(inner, rest),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// Adds a string as it is, the items of a list one by one and joined by spaces (a command may be a list of
/// words), and anything else as JSON.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => {
            for item in items {
                collect(item, found);
            }
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            if words.len() > 1 {
                found.push(words.join(" "));
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => found.push(value.to_string()),
    }
}
