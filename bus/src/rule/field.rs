//! Finding the texts in an event that a rule's `when` names. The short names `command`, `path`, `url` and
//! `text` are also found under the names that tools of different agents use for them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::event::{Event, Kind, ToolClass};
use crate::shell::Access;

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
pub fn misspelled(path: &str) -> Option<&'static str> {
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

/// A text that a field of an event holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldText<'a> {
    /// The text.
    pub(super) text: Cow<'a, str>,
    /// Whether it is the first one of its name: the agent's own, if it has one.
    pub(super) is_first: bool,
    /// Whether it is a string as it stands in the payload. If not, it was put together: a list joined by spaces, JSON.
    pub(super) is_string: bool,
}

/// The texts at `path`, a dotted path in the tool's input, in the payload or in Hermes' `extra`; for a short name
/// also the texts under its other names.
pub(super) fn find_texts<'a>(event: &'a Event, path: &str) -> Vec<FieldText<'a>> {
    let mut found = Vec::new();
    let extra = event.field("extra").and_then(Value::as_object);
    let objects = [event.fields(), event.tool_input(), extra];
    for name in std::iter::once(path).chain(other_names(path, event).iter().copied()) {
        let values = objects.iter().flatten().filter_map(|object| walk(object, name));
        for (index, value) in values.enumerate() {
            collect(value, index == 0, &mut found);
        }
    }
    found
}

/// Those of `texts` that `of` chooses.
pub(super) fn chosen<'t>(
    texts: &'t [FieldText<'_>],
    of: FieldsOf,
) -> impl Iterator<Item = &'t str> {
    let is_chosen = move |text: &&FieldText<'_>| of == FieldsOf::Everyone || text.is_first;
    texts.iter().filter(is_chosen).map(|it| it.text.as_ref())
}

/// Whether texts at `path` may be missing, because only a part of the payload was kept.
pub(super) fn is_incomplete(event: &Event, path: &str) -> bool {
    let mut names = std::iter::once(path).chain(other_names(path, event).iter().copied());
    let patches = if path == "path" { &PATCHES[..] } else { &[] };
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

/// The fields that may hold a patch.
const PATCHES: [&str; 3] = ["patch", "command", "input"];

/// The files that patches in the tool's input touch, in the patch format of Hermes and Codex.
pub(super) fn files_in_patches(event: &Event) -> impl Iterator<Item = (&str, Access)> {
    let marks = [
        ("*** Add File: ", Access::Write),
        ("*** Update File: ", Access::Write),
        ("*** Delete File: ", Access::Delete),
        ("*** Move to: ", Access::Write),
    ];
    let patches = PATCHES.iter().filter_map(|name| event.tool_input()?.get(*name)?.as_str());
    patches.flat_map(str::lines).filter_map(move |line| {
        marks.iter().find_map(|(mark, access)| Some((line.strip_prefix(mark)?, *access)))
    })
}

/// The value of a key. In a small object a look at each key takes less time than a hash.
fn get<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    const SMALL: usize = 12;
    if object.len() > SMALL {
        return object.get(key);
    }
    object.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

fn walk<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = get(object, path) {
        return (!value.is_null()).then_some(value);
    }
    let (first, rest) = path.split_once('.')?;
    match get(object, first)? {
        Value::Object(inner) => walk(inner, rest),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// Adds a string as it is, the items of a list one by one and joined by spaces (a command may be a list of
/// words), and anything else as JSON.
fn collect<'a>(value: &'a Value, is_first: bool, found: &mut Vec<FieldText<'a>>) {
    match value {
        Value::String(text) => {
            found.push(FieldText { text: Cow::Borrowed(text), is_first, is_string: true });
        }
        Value::Array(items) => {
            for item in items {
                collect(item, is_first, found);
            }
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            if words.len() > 1 {
                let text = Cow::Owned(words.join(" "));
                found.push(FieldText { text, is_first, is_string: false });
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            let text = Cow::Owned(value.to_string());
            found.push(FieldText { text, is_first, is_string: false });
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
