//! Finding the texts in an event that a rule's `when` names. The short names `command`, `path`, `url` and
//! `text` are also found under the names that tools of different agents use for them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::event::{Event, Kind, ToolClass};

/// Fields that payloads and tools of the agents have, to recognize a misspelled one.
const KNOWN: [&str; 78] = [
    "absolute_path",
    "action",
    "agent_type",
    "assistant_response",
    "chars",
    "choice",
    "cmd",
    "code",
    "command",
    "command_args",
    "command_name",
    "content",
    "custom_instructions",
    "cwd",
    "data",
    "description",
    "details",
    "dir_path",
    "directory",
    "duration_ms",
    "error",
    "error_message",
    "event",
    "extra",
    "file_path",
    "filename",
    "final_response",
    "hook_event_name",
    "include",
    "input",
    "is_interrupt",
    "last_assistant_message",
    "limit",
    "llm_request",
    "llm_response",
    "mcp_context",
    "mcp_server",
    "message",
    "mode",
    "model",
    "name",
    "new_string",
    "notebook_path",
    "notification_type",
    "offset",
    "old_string",
    "output",
    "patch",
    "path",
    "paths",
    "pattern",
    "permission_mode",
    "platform",
    "prompt",
    "prompt_response",
    "provider",
    "query",
    "reason",
    "response_text",
    "result",
    "script",
    "session_id",
    "source",
    "status",
    "subagent_type",
    "summary",
    "task_id",
    "text",
    "timestamp",
    "tool_input",
    "tool_name",
    "tool_response",
    "transcript_path",
    "trigger",
    "url",
    "urls",
    "user_message",
    "worktree_path",
];

/// The known field that `path` is probably a misspelling of. Tools have fields of their own, so only a word that is
/// one or two letters away from a known field counts; `tool_input.comand` is always taken at its word.
pub(super) fn misspelled(path: &str) -> Option<&'static str> {
    if path.contains('.') || KNOWN.contains(&path) {
        return None;
    }
    let distance = |known: &str| strsim::damerau_levenshtein(path, known);
    let is_near = |known: &&str| distance(known) <= if known.len() > 5 { 2 } else { 1 };
    KNOWN.into_iter().filter(is_near).min_by_key(|known| distance(known))
}

/// Which of several values of one name a condition is about. The model chooses the tool's input, so it can put a
/// second `cwd` beside the agent's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldsOf {
    /// All of them: a guard looks everywhere.
    Everyone,
    /// The agent's own, if it has one: what allows something must not be the model's word.
    TheAgentFirst,
}

/// The texts at `path`, a dotted path in the tool's input, in the payload or in Hermes' `extra`; for a short name
/// also the texts under its other names.
pub(super) fn find<'a>(event: &'a Event, path: &str, of: FieldsOf) -> Vec<Cow<'a, str>> {
    let mut found = Vec::new();
    let extra = event.field("extra").and_then(Value::as_object);
    let objects: Vec<&Map<String, Value>> =
        [event.fields(), event.tool_input(), extra].into_iter().flatten().collect();
    let most = match of {
        FieldsOf::Everyone => objects.len(),
        FieldsOf::TheAgentFirst => 1,
    };
    for name in std::iter::once(path).chain(other_names(path, event).iter().copied()) {
        let values = objects.iter().filter_map(|object| walk(object, name));
        values.take(most).for_each(|value| collect(value, &mut found));
    }
    if path == "path" {
        for patch in ["patch", "command", "input"]
            .iter()
            .filter_map(|name| event.tool_input()?.get(*name)?.as_str())
        {
            found.extend(paths_in(patch).map(Cow::Borrowed));
        }
    }
    found
}

/// Whether texts at `path` may be missing, because only a part of the payload was kept.
pub(super) fn is_incomplete(event: &Event, path: &str) -> bool {
    let mut names = std::iter::once(path).chain(other_names(path, event).iter().copied());
    let patches = if path == "path" { &["patch", "command", "input"][..] } else { &[] };
    event.is_partial()
        && names.by_ref().chain(patches.iter().copied()).any(|name| {
            let within = |parent: &str| event.is_incomplete_at(&format!("{parent}.{name}"));
            event.is_incomplete_at(name) || within("tool_input") || within("extra")
        })
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
fn collect<'a>(value: &'a Value, found: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::String(text) => found.push(Cow::Borrowed(text)),
        Value::Array(items) => {
            for item in items {
                collect(item, found);
            }
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            if words.len() > 1 {
                found.push(Cow::Owned(words.join(" ")));
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            found.push(Cow::Owned(value.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_field_is_recognized_and_a_field_of_a_tool_is_not() {
        for (path, meant) in [
            ("comand", Some("command")),
            ("Command", Some("command")),
            ("commnad", Some("command")),
            ("pth", Some("path")),
            ("txt", Some("text")),
            ("urll", Some("url")),
            ("toolname", Some("tool_name")),
            ("file-path", Some("file_path")),
            ("tool_input.comand", None),
            ("repository", None),
            ("branch", None),
            ("command", None),
            ("cwd", None),
            ("to", None),
            ("body", None),
        ] {
            assert_eq!(misspelled(path), meant, "{path}");
        }
    }
}
