//! The output of a command hook that has ended, and the parts of interpreting it that dialects share.

use serde_json::{Map, Value};

use crate::event::{Kind, Rewrite, Verdict};
use crate::json::read_leniently;

/// How a hook's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Exit(i32),
    /// Killed by this signal.
    Signal(i32),
}

/// The output and the end of a hook's process.
#[derive(Debug, Clone, Copy)]
pub struct HookOutput<'a> {
    /// Everything on stdout.
    pub stdout: &'a [u8],
    /// Everything on stderr.
    pub stderr: &'a [u8],
    /// How it ended.
    pub ending: Ending,
}

/// What a hook's output means.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpretation {
    /// The hook's verdict.
    pub verdict: Verdict,
    /// What went wrong, if the hook counts as failed.
    pub failure: Option<String>,
}

/// Whether to wait for output that a command's children write after the command itself has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateOutput {
    /// Wait until the command's timeout, as the agents do themselves.
    Wait,
    /// Do not wait: a child in the background must not hold up the agent.
    Ignore,
}

impl Interpretation {
    pub(super) const fn answered(verdict: Verdict) -> Self {
        Self { verdict, failure: None }
    }

    pub(super) fn failed(failure: Option<String>) -> Self {
        Self { verdict: Verdict::silent(), failure }
    }
}

impl HookOutput<'_> {
    /// Why the hook failed, judged by its exit code or signal alone.
    pub(super) fn failed_ending(&self) -> Option<String> {
        let stderr: String = text_in(self.stderr).unwrap_or_default().chars().take(400).collect();
        let tail = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
        match self.ending {
            Ending::Exit(0) => None,
            Ending::Exit(code) => Some(format!("exit code {code}{tail}")),
            Ending::Signal(signal) => Some(format!("killed by signal {signal}{tail}")),
        }
    }
}

/// The failure of a hook that printed something else than JSON.
pub(super) fn not_json(text: &str) -> String {
    let start: String = text.chars().take(80).collect();
    format!("its stdout is not one JSON object: {start}")
}

/// The trimmed text; none if there is none.
pub(super) fn text_in(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Output read as JSON.
pub(super) enum ParsedOutput {
    /// An object, or a JSON string that holds one.
    Object(Map<String, Value>),
    /// Any other JSON.
    OtherJson,
    /// No JSON.
    NotJson,
}

/// Reads `text` as JSON.
pub(super) fn parse_output(text: &str) -> ParsedOutput {
    match read_leniently(text.as_bytes()) {
        Ok(Value::Object(object)) => ParsedOutput::Object(object),
        Ok(Value::String(inner)) => match read_leniently(inner.as_bytes()) {
            Ok(Value::Object(object)) => ParsedOutput::Object(object),
            Ok(_) | Err(_) => ParsedOutput::NotJson,
        },
        Ok(_) => ParsedOutput::OtherJson,
        Err(_) => ParsedOutput::NotJson,
    }
}

/// The verdict in a JSON string at events where a text can be replaced: a Hermes plugin would return that text.
pub(super) fn replacement_text_in(text: &str, kind: Kind) -> Option<Verdict> {
    let Ok(text @ Value::String(_)) = read_leniently(text.as_bytes()) else { return None };
    replacement_text(text, kind)
}

/// The verdict that replaces the text of the event with `text`, where that is possible.
pub(super) fn replacement_text(text: Value, kind: Kind) -> Option<Verdict> {
    if !matches!(kind, Kind::ToolOutput | Kind::TurnOutput) {
        return None;
    }
    let rewrite = Some(Rewrite::Paths(vec![("text".to_owned(), text)]));
    Some(Verdict { rewrite, ..Verdict::silent() })
}
