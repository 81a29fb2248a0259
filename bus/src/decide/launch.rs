//! How a command line becomes a process, as the agent that owns the event name would do it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::hook::{Command, Placeholders};
use super::surroundings::Surroundings;
use crate::dialect::Manner;
use crate::event::Event;

/// Program and arguments of `command`; the error says what to write instead.
pub(super) fn argv(
    command: &Command,
    manner: Manner,
    event: Option<&Event>,
    surroundings: &Surroundings,
    base: &Path,
) -> Result<Vec<String>, String> {
    Ok(fill(words(command, manner, surroundings, base)?, command, event))
}

/// The words with their placeholders filled: after the split, so that nothing in a tool's name can
/// become another word.
pub(super) fn fill(words: Vec<String>, command: &Command, event: Option<&Event>) -> Vec<String> {
    match event.filter(|_| command.placeholders == Placeholders::Filled) {
        Some(event) => words.iter().map(|word| filled(word, event)).collect(),
        None => words,
    }
}

/// The same with its placeholders as they are written.
pub(super) fn words(
    command: &Command,
    manner: Manner,
    surroundings: &Surroundings,
    base: &Path,
) -> Result<Vec<String>, String> {
    if manner == Manner::Gemini {
        let line = with_gemini_variables(&command.text, surroundings);
        return Ok(vec!["bash".to_owned(), "-c".to_owned(), line]);
    }
    let line = with_home(&command.text, surroundings);
    let mut words = shlex::split(&line)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| format!("`{}` has a quote that is never closed", command.text))?;
    if manner == Manner::Common && (words[0].starts_with("./") || words[0].starts_with("../")) {
        words[0] = base.join(&words[0]).to_string_lossy().into_owned();
    }
    Ok(words)
}

/// A directory that an entry names: a leading `~` is the client's home, the rest is beside the file.
pub(super) fn folder(text: &str, surroundings: &Surroundings, base: &Path) -> PathBuf {
    base.join(with_home(text, surroundings))
}

/// A leading `~` is the client's home, as in Hermes; nothing else is expanded.
pub(super) fn with_home(line: &str, surroundings: &Surroundings) -> String {
    match (line.strip_prefix('~'), surroundings.var("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{}{rest}", home.to_string_lossy())
        }
        _ => line.to_owned(),
    }
}

/// Gemini puts these in itself, quoted, before bash sees the line.
fn with_gemini_variables(line: &str, surroundings: &Surroundings) -> String {
    let names = [
        "GEMINI_PROJECT_DIR",
        "GEMINI_CWD",
        "GEMINI_PLANS_DIR",
        "GEMINI_SESSION_ID",
        "CLAUDE_PROJECT_DIR",
    ];
    names.iter().fold(line.to_owned(), |line, name| match surroundings.var(name) {
        Some(value) => {
            let value = value.to_string_lossy();
            let quoted = shlex::try_quote(&value).map_or_else(|_| value.to_string(), String::from);
            line.replace(&format!("${name}"), &quoted)
        }
        None => line,
    })
}

/// `{tool_name}` and friends: any plain value in the payload, in Hermes' `extra`, in the input.
fn filled(word: &str, event: &Event) -> String {
    let extra = event.field("extra").and_then(Value::as_object);
    let places: Vec<&Map<String, Value>> =
        [event.fields(), extra, event.tool_input()].into_iter().flatten().collect();
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after.split_once('}').and_then(|(name, tail)| {
            let value = places.iter().find_map(|place| place.get(name))?;
            Some((plain(value)?, tail))
        });
        match value {
            Some((value, tail)) => {
                out.push_str(&value);
                rest = tail;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
