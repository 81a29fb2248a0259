//! From a command line in a hooks file to the program and arguments of a process.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::config::{Command, Placeholders};
use crate::dialect::{Dialect, LaunchError};
use crate::event::Event;

/// Program and arguments of `command`, launched as `dialect` does it, about `event`.
pub fn argv(
    command: &Command,
    dialect: &dyn Dialect,
    event: Option<&Event>,
    caller: &Caller,
    base: &Path,
) -> Result<Vec<OsString>, LaunchError> {
    Ok(fill_placeholders(dialect.argv(&command.text, caller, base)?, command, event))
}

/// Fills `{tool_name}` and the like. This happens after the line was split into words, so that no
/// value can add a word.
pub(crate) fn fill_placeholders(
    words: Vec<OsString>,
    command: &Command,
    event: Option<&Event>,
) -> Vec<OsString> {
    let Some(event) = event.filter(|_| command.placeholders == Placeholders::Filled) else {
        return words;
    };
    // A word that is not UTF-8 can only be a path; it stays as it is.
    let fill =
        |word: OsString| word.to_str().map(|text| filled(text, event).into()).unwrap_or(word);
    words.into_iter().map(fill).collect()
}

/// Fills placeholders: names of plain values in the payload, in Hermes' `extra` or in the tool's input. Other
/// braces stay as they are.
fn filled(word: &str, event: &Event) -> String {
    let extra = event.field("extra").and_then(Value::as_object);
    let objects: Vec<&Map<String, Value>> =
        [event.fields(), extra, event.tool_input()].into_iter().flatten().collect();
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after.split_once('}').and_then(|(name, tail)| {
            let value = objects.iter().find_map(|object| object.get(name))?;
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
