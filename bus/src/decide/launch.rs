//! How a command line becomes a process, as the agent that owns the event name would do it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
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
) -> Result<Vec<OsString>, String> {
    Ok(fill(words(command, manner, surroundings, base)?, command, event))
}

/// The words with their placeholders filled: after the split, so that nothing in a tool's name can
/// become another word.
pub(super) fn fill(
    words: Vec<OsString>,
    command: &Command,
    event: Option<&Event>,
) -> Vec<OsString> {
    let Some(event) = event.filter(|_| command.placeholders == Placeholders::Filled) else {
        return words;
    };
    // Only a path can be no text, and its placeholders stay.
    let fill =
        |word: OsString| word.to_str().map(|text| filled(text, event).into()).unwrap_or(word);
    words.into_iter().map(fill).collect()
}

/// The same with its placeholders as they are written.
pub(super) fn words(
    command: &Command,
    manner: Manner,
    surroundings: &Surroundings,
    base: &Path,
) -> Result<Vec<OsString>, String> {
    if manner == Manner::Gemini {
        let line = with_gemini_variables(&command.text, surroundings);
        return Ok(vec!["bash".into(), "-c".into(), line.into()]);
    }
    let words = shlex::split(&command.text)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| format!("`{}` has a quote that is never closed", command.text))?;
    let program = if command.text.starts_with('~') {
        with_home(&words[0], surroundings)
    } else if manner == Manner::Common
        && (words[0].starts_with("./") || words[0].starts_with("../"))
    {
        base.join(&words[0]).into_os_string()
    } else {
        OsString::from(&words[0])
    };
    let rest = words.into_iter().skip(1).map(OsString::from);
    Ok(std::iter::once(program).chain(rest).collect())
}

/// A directory that an entry names: a leading `~` is the client's home, the rest is beside the file.
pub(super) fn folder(text: &str, surroundings: &Surroundings, base: &Path) -> PathBuf {
    base.join(with_home(text, surroundings))
}

/// A leading `~` is the client's home, as in Hermes; nothing else is expanded.
pub(super) fn with_home(word: impl AsRef<OsStr>, surroundings: &Surroundings) -> OsString {
    let word = word.as_ref();
    match (word.as_bytes().strip_prefix(b"~"), surroundings.var("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with(b"/") => {
            let mut whole = home.to_owned();
            whole.push(OsStr::from_bytes(rest));
            whole
        }
        _ => word.to_owned(),
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
