//! How Gemini launches a hook: bash runs the whole line.

use std::ffi::OsString;

use crate::caller::Caller;

/// Gemini itself replaces these variables in the line by their quoted values, before bash runs it.
const SUBSTITUTED: [&str; 5] = [
    "GEMINI_PROJECT_DIR",
    "GEMINI_CWD",
    "GEMINI_PLANS_DIR",
    "GEMINI_SESSION_ID",
    "CLAUDE_PROJECT_DIR",
];

pub(super) fn argv(line: &str, caller: &Caller) -> Vec<OsString> {
    vec!["bash".into(), "-c".into(), substituted(line, caller).into()]
}

fn substituted(line: &str, caller: &Caller) -> String {
    SUBSTITUTED.iter().fold(line.to_owned(), |line, name| match caller.var(name) {
        Some(value) => {
            let value = value.to_string_lossy();
            let quoted = shlex::try_quote(&value).map_or_else(|_| value.to_string(), String::from);
            line.replace(&format!("${name}"), &quoted)
        }
        None => line,
    })
}
