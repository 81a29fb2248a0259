//! From what a hook printed to a [`Verdict`]. Any of the four dialects' answers is understood,
//! whichever agent asked. What is no answer (an odd exit code, text where JSON is expected) is
//! taken as the agent itself would take it under its own event name, and as a failure otherwise.
//!
//! On one point we are stricter than the agents, on purpose: a clear block counts in any spelling.

use serde_json::{Map, Value};

use crate::event::{Kind, Rewrite, Ruling, Verdict};
use crate::json::read_leniently;

/// Whose customs a hook's exit code and stray text are read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Under one of Hermes' own event names.
    Hermes,
    /// Under one of Gemini's own event names.
    Gemini,
    /// Under a kind or a pattern: exit 2 blocks, any other odd exit code is a failure.
    Common,
}

/// How a hook's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Exit(i32),
    /// Killed by this signal.
    Signal(i32),
}

/// What a hook's process left behind.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// Everything on stdout.
    pub stdout: &'a [u8],
    /// Everything on stderr.
    pub stderr: &'a [u8],
    /// How it ended.
    pub ending: Ending,
}

/// What that means.
#[derive(Debug, Clone, PartialEq)]
pub struct Understood {
    /// What the hook said.
    pub verdict: Verdict,
    /// What went wrong, if the hook counts as failed.
    pub failure: Option<String>,
}

/// What a hook meant for an event of `kind`.
pub fn understand(manner: Manner, kind: Kind, said: &Said<'_>) -> Understood {
    match manner {
        Manner::Hermes => as_hermes(kind, said),
        Manner::Gemini => as_gemini(kind, said),
        Manner::Common => as_anyone(kind, said),
    }
}

/// What a Hermes plugin's hook means by what it returned.
pub fn returned(kind: Kind, value: &Value) -> Verdict {
    match value {
        Value::Object(answer) => verdict_in(answer, kind),
        // Hermes takes the first final text that is not empty.
        Value::String(text) if kind == Kind::TurnOutput && text.is_empty() => Verdict::silent(),
        Value::String(text) if kind == Kind::TurnStart && !text.trim().is_empty() => {
            Verdict { context: Some(text.clone()), ..Verdict::silent() }
        }
        Value::String(_) => new_text(value.clone(), kind).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Verdict::silent(),
    }
}

/// Hermes reads stdout as one JSON object whatever the exit code, and shrugs at everything else.
fn as_hermes(kind: Kind, said: &Said<'_>) -> Understood {
    let (verdict, mut failure) = match std::str::from_utf8(said.stdout).map(str::trim) {
        Err(_) => (Verdict::silent(), Some("its stdout is not UTF-8".to_owned())),
        Ok("") => (Verdict::silent(), None),
        Ok(text) if new_text_in(text, kind).is_some() => {
            (new_text_in(text, kind).unwrap_or_default(), None)
        }
        Ok(text) => match object_in(text) {
            Ok(Some(answer)) => (verdict_in(&answer, kind), None),
            Ok(None) => (Verdict::silent(), None),
            Err(()) => (Verdict::silent(), Some(not_json(text))),
        },
    };
    if verdict.is_silent() {
        // 0.19 overlooks this one; Claude's hooks and later Hermes mean a block by it.
        if let (Ending::Exit(2), Some(reason)) = (said.ending, text_of(said.stderr)) {
            return Understood { verdict: Verdict::block(reason), failure: None };
        }
        failure = failure.or_else(|| odd_ending(said));
    }
    Understood { verdict, failure }
}

/// Gemini reads stdout, or stderr where stdout is empty; JSON beats the exit code, and text with
/// an exit code of 2 or more is a refusal (a missing program's 127 included).
fn as_gemini(kind: Kind, said: &Said<'_>) -> Understood {
    let Some(text) = text_of(said.stdout).or_else(|| text_of(said.stderr)) else {
        return Understood { verdict: Verdict::silent(), failure: odd_ending(said) };
    };
    match object_in(&text) {
        Ok(Some(answer)) => {
            return Understood { verdict: verdict_in(&answer, kind), failure: odd_exit_one(said) };
        }
        // JSON that is no object says nothing, not even to the person.
        Ok(None) => return Understood { verdict: Verdict::silent(), failure: odd_ending(said) },
        Err(()) => {}
    }
    let notice = |text: String| Verdict { notice: Some(text), ..Verdict::silent() };
    match said.ending {
        Ending::Exit(0) => Understood { verdict: notice(text), failure: None },
        Ending::Exit(1) => {
            Understood { verdict: notice(format!("Warning: {text}")), failure: odd_ending(said) }
        }
        Ending::Exit(_) => Understood { verdict: Verdict::block(text), failure: None },
        Ending::Signal(_) => Understood { verdict: notice(text), failure: odd_ending(said) },
    }
}

fn odd_exit_one(said: &Said<'_>) -> Option<String> {
    match said.ending {
        Ending::Exit(1) | Ending::Signal(_) => odd_ending(said),
        Ending::Exit(_) => None,
    }
}

fn as_anyone(kind: Kind, said: &Said<'_>) -> Understood {
    let stdout = text_of(said.stdout);
    let stderr = text_of(said.stderr);
    if let Some(verdict) = stdout.as_deref().and_then(|text| new_text_in(text, kind)) {
        return Understood { verdict, failure: None };
    }
    let json_text = stdout.as_deref().or(stderr.as_deref()).unwrap_or_default();
    if let Ok(Some(answer)) = object_in(json_text) {
        let verdict = verdict_in(&answer, kind);
        let failure = if verdict.is_silent() { odd_ending(said) } else { None };
        return match (said.ending, verdict.ruling) {
            (Ending::Exit(2), None) => refused(stderr),
            _ => Understood { verdict, failure },
        };
    }
    match (said.ending, stdout) {
        (Ending::Exit(2), stdout) => refused(stderr.or(stdout)),
        (Ending::Exit(0), None) => Understood { verdict: Verdict::silent(), failure: None },
        // As Claude and Codex have it: plain text at these two is for the model.
        (Ending::Exit(0), Some(text)) if matches!(kind, Kind::SessionStart | Kind::TurnStart) => {
            let verdict = Verdict { context: Some(text), ..Verdict::silent() };
            Understood { verdict, failure: None }
        }
        (Ending::Exit(0), Some(text)) => {
            Understood { failure: Some(not_json(&text)), verdict: Verdict::silent() }
        }
        (Ending::Exit(_) | Ending::Signal(_), _) => {
            Understood { verdict: Verdict::silent(), failure: odd_ending(said) }
        }
    }
}

fn refused(reason: Option<String>) -> Understood {
    let reason = reason.unwrap_or_else(|| "refused by a hook (exit code 2)".to_owned());
    Understood { verdict: Verdict::block(reason), failure: None }
}

/// Why the ending alone makes the hook a failed one.
fn odd_ending(said: &Said<'_>) -> Option<String> {
    let stderr: String = text_of(said.stderr).unwrap_or_default().chars().take(400).collect();
    let tail = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
    match said.ending {
        Ending::Exit(0) => None,
        Ending::Exit(code) => Some(format!("exit code {code}{tail}")),
        Ending::Signal(signal) => Some(format!("killed by signal {signal}{tail}")),
    }
}

fn not_json(text: &str) -> String {
    let start: String = text.chars().take(80).collect();
    format!("its stdout is not one JSON object: {start}")
}

fn text_of(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The object in `text`, or in a JSON string that holds one; nothing for other JSON.
fn object_in(text: &str) -> Result<Option<Map<String, Value>>, ()> {
    match read_leniently(text.as_bytes()) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(Value::String(inner)) => match read_leniently(inner.as_bytes()) {
            Ok(Value::Object(object)) => Ok(Some(object)),
            Ok(_) | Err(_) => Err(()),
        },
        Ok(_) => Ok(None),
        Err(_) => Err(()),
    }
}

/// A JSON string where a text can be put in place of another: what a Hermes plugin would return.
fn new_text_in(text: &str, kind: Kind) -> Option<Verdict> {
    let Ok(text @ Value::String(_)) = read_leniently(text.as_bytes()) else { return None };
    new_text(text, kind)
}

fn new_text(text: Value, kind: Kind) -> Option<Verdict> {
    if !matches!(kind, Kind::ToolOutput | Kind::TurnOutput) {
        return None;
    }
    let rewrite = Some(Rewrite::Paths(vec![("text".to_owned(), text)]));
    Some(Verdict { rewrite, ..Verdict::silent() })
}

/// One answer object, in any of the four dialects.
fn verdict_in(answer: &Map<String, Value>, kind: Kind) -> Verdict {
    let empty = Map::new();
    let specific = answer.get("hookSpecificOutput").and_then(Value::as_object).unwrap_or(&empty);
    let permission = specific.get("decision").and_then(Value::as_object).unwrap_or(&empty);
    let stop = answer.get("continue").and_then(Value::as_bool) == Some(false);
    // The spellings of a ruling, the agents' own first; any block among them is a block.
    let rulings = [
        ruling(answer, "decision", kind),
        ruling(answer, "action", kind),
        ruling(specific, "permissionDecision", kind),
        ruling(permission, "behavior", kind),
    ];
    let blocked = rulings.contains(&Some(Ruling::Block));
    let ruling = if blocked { Some(Ruling::Block) } else { rulings.into_iter().flatten().next() };
    let (first, second) =
        if answer.contains_key("action") { ("message", "reason") } else { ("reason", "message") };
    let reason = text(answer, first)
        .or_else(|| text(answer, second))
        .or_else(|| text(specific, "permissionDecisionReason"))
        .or_else(|| text(permission, "message"));
    Verdict {
        ruling,
        reason,
        stop,
        stop_reason: text(answer, "stopReason"),
        context: text(answer, "context").or_else(|| text(specific, "additionalContext")),
        rewrite: rewrite_in(answer, specific, permission),
        notice: text(answer, "systemMessage"),
        quiet: answer.get("suppressOutput").and_then(Value::as_bool) == Some(true),
        own: own_in(answer, specific, kind),
    }
}

/// A word for go or no-go. An unknown one is an opinion without effect, as in Gemini.
fn ruling(object: &Map<String, Value>, key: &str, kind: Kind) -> Option<Ruling> {
    let word = object.get(key)?.as_str()?.to_ascii_lowercase();
    match (key, word.as_str()) {
        (_, "block" | "deny") => Some(Ruling::Block),
        // Hermes' way to keep an agent at work before it may finish.
        ("decision" | "action", "continue") if kind == Kind::TurnVerify => Some(Ruling::Block),
        // Hermes' ways to keep a message or a command from going on.
        ("action", "skip") if kind == Kind::MessageIn => Some(Ruling::Block),
        ("decision", "handled") if kind == Kind::Command => Some(Ruling::Block),
        (_, "ask" | "defer") => Some(Ruling::Ask),
        ("action", "approve") => Some(Ruling::Ask), // Hermes: a person shall approve it
        ("action", "allow") => Some(Ruling::Allow),
        ("action", _) => None, // `modify`, `rewrite`, `skip`: no ruling
        ("decision", "modify" | "rewrite") => None,
        _ => Some(Ruling::Allow),
    }
}

fn rewrite_in(
    answer: &Map<String, Value>,
    specific: &Map<String, Value>,
    permission: &Map<String, Value>,
) -> Option<Rewrite> {
    let whole =
        [(specific, "tool_input"), (specific, "updatedInput"), (permission, "updatedInput")]
            .into_iter()
            .find_map(|(object, key)| object.get(key).and_then(Value::as_object));
    if let Some(input) = whole {
        return Some(Rewrite::Whole(input.clone()));
    }
    let says = |key: &str, word: &str| answer.get(key).and_then(Value::as_str) == Some(word);
    if says("action", "rewrite") || says("decision", "rewrite") {
        let named = ["text", "command_name", "raw_args"].into_iter();
        let changes = named.filter_map(|key| Some((key.to_owned(), answer.get(key)?.clone())));
        return Some(changes.collect()).filter(|all: &Vec<_>| !all.is_empty()).map(Rewrite::Paths);
    }
    // Later Hermes: `modify` changes the keys it names.
    let modifies = |key: &str| says(key, "modify");
    let changes = match (modifies("action"), modifies("decision")) {
        (true, _) => answer.get("args"),
        (_, true) => answer.get("tool_input"),
        (false, false) => None,
    };
    let changes = changes.and_then(Value::as_object)?;
    Some(Rewrite::Paths(changes.iter().map(|(key, value)| (key.clone(), value.clone())).collect()))
}

/// What only one agent has a word for: Gemini the first five, Hermes the others.
fn own_in(
    answer: &Map<String, Value>,
    specific: &Map<String, Value>,
    kind: Kind,
) -> Map<String, Value> {
    let mut own: Map<String, Value> =
        ["llm_request", "llm_response", "toolConfig", "tailToolCallRequest", "clearContext"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), specific.get(key)?.clone())))
            .filter(|(_, value)| !value.is_null() && *value != Value::Bool(false))
            .collect();
    let says = |key: &str, word: &str| answer.get(key).and_then(Value::as_str) == Some(word);
    if kind == Kind::Command && says("decision", "handled") {
        own.insert("handled".to_owned(), Value::Bool(true));
    }
    if let Some(rule) = text(answer, "rule_key").filter(|_| says("action", "approve")) {
        own.insert("rule_key".to_owned(), Value::String(rule));
    }
    own
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    let text = object.get(key)?.as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}
