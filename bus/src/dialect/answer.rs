//! From the JSON object that a hook answered to a [`Verdict`]. All four agents' spellings are understood, at
//! events of any agent. In one point the bus is stricter than the agents, on purpose: a clear block counts in
//! any spelling.

use serde_json::{Map, Value};

use crate::event::{Kind, Rewrite, Ruling, Verdict};

/// The verdict in an answer object, in the spelling of any of the four agents.
pub(super) fn verdict_in(answer: &Map<String, Value>, kind: Kind) -> Verdict {
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

/// Every word that an agent of ours knows for a ruling, at any event.
const WORDS: [&str; 11] = [
    "allow", "approve", "ask", "block", "continue", "defer", "deny", "handled", "modify",
    "rewrite", "skip",
];

/// Why the hook counts as failed: its answer has a word for a ruling that no agent knows (`blok`), so what it wants
/// is not known. None if the answer holds the agent back all the same.
pub(super) fn unknown_word(answer: &Map<String, Value>, verdict: &Verdict) -> Option<String> {
    if matches!(verdict.ruling, Some(Ruling::Block | Ruling::Ask)) || verdict.stop {
        return None;
    }
    let specific = answer.get("hookSpecificOutput").and_then(Value::as_object);
    let permission = specific.and_then(|it| it.get("decision")).and_then(Value::as_object);
    let words = [
        (Some(answer), "decision"),
        (Some(answer), "action"),
        (specific, "permissionDecision"),
        (permission, "behavior"),
    ];
    let is_unknown = |key: &str, word: &str| {
        let word = word.trim().to_ascii_lowercase();
        let is_known = word.is_empty() || WORDS.contains(&word.as_str());
        // Hooks say many things under `action`; there only a misspelled ruling counts.
        !is_known && (key != "action" || WORDS.iter().any(|known| is_similar(&word, known)))
    };
    words.into_iter().find_map(|(object, key)| {
        let word = object?.get(key)?.as_str().filter(|word| is_unknown(key, word))?;
        let start: String = word.chars().take(40).collect();
        Some(format!("its answer has an unknown word, `{key}: {start}`; write `block` or `allow`"))
    })
}

fn is_similar(word: &str, known: &str) -> bool {
    strsim::normalized_damerau_levenshtein(word, known) >= 0.6
}

/// The word for allow, ask or block under `key`. An unknown word counts as allow, as in Gemini; the hook has failed
/// then ([`unknown_word`]).
fn ruling(object: &Map<String, Value>, key: &str, kind: Kind) -> Option<Ruling> {
    let word = object.get(key)?.as_str()?.to_ascii_lowercase();
    match (key, word.as_str()) {
        (_, "block" | "deny") => Some(Ruling::Block),
        // Hermes: the agent must not finish yet.
        ("decision" | "action", "continue") if kind == Kind::TurnVerify => Some(Ruling::Block),
        // Hermes: the message is dropped; the command is already handled.
        ("action", "skip") if kind == Kind::MessageIn => Some(Ruling::Block),
        ("decision", "handled") if kind == Kind::Command => Some(Ruling::Block),
        (_, "ask" | "defer") => Some(Ruling::Ask),
        ("action", "approve") => Some(Ruling::Ask), // Hermes: a person must approve it
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
    let has = |key: &str, word: &str| answer.get(key).and_then(Value::as_str) == Some(word);
    if has("action", "rewrite") || has("decision", "rewrite") {
        let named = ["text", "command_name", "raw_args"].into_iter();
        let changes = named.filter_map(|key| Some((key.to_owned(), answer.get(key)?.clone())));
        return Some(changes.collect()).filter(|all: &Vec<_>| !all.is_empty()).map(Rewrite::Paths);
    }
    // Later Hermes: `modify` changes the keys it names.
    let modifies = |key: &str| has(key, "modify");
    let changes = match (modifies("action"), modifies("decision")) {
        (true, _) => answer.get("args"),
        (_, true) => answer.get("tool_input"),
        (false, false) => None,
    };
    let changes = changes.and_then(Value::as_object)?;
    Some(Rewrite::Paths(changes.iter().map(|(key, value)| (key.clone(), value.clone())).collect()))
}

/// Answers that only one agent has: the first five are Gemini's, the others Hermes'.
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
    let has = |key: &str, word: &str| answer.get(key).and_then(Value::as_str) == Some(word);
    if kind == Kind::Command && has("decision", "handled") {
        own.insert("handled".to_owned(), Value::Bool(true));
    }
    if let Some(rule) = text(answer, "rule_key").filter(|_| has("action", "approve")) {
        own.insert("rule_key".to_owned(), Value::String(rule));
    }
    own
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    let text = object.get(key)?.as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}
