//! What becomes of a verdict that the agent cannot take at this event. Nothing is lost in
//! silence: it becomes a block or is left out, and the note says which.

use serde_json::Value;

use super::hook::{Action, Hook, OnFailure};
use crate::dialect::{Manner, Takes};
use crate::event::{Event, Kind, Ruling, Verdict};

/// What a note says of something that became a block.
const BLOCKED_INSTEAD: &str = "blocked instead";

/// What is added to a question that became a block, so that whoever hears it does not wait for an answer.
const UNASKED: &str = " (nobody can be asked here, so it is blocked)";

/// An answer without what the bus itself adds to a hook's words: how that is put is no difference between two
/// answers.
pub fn without_our_words(answer: &Value) -> Value {
    match answer {
        Value::String(text) => Value::String(text.replace(UNASKED, "")),
        Value::Array(all) => all.iter().map(without_our_words).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), without_our_words(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => answer.clone(),
    }
}

/// Whether a recorded note says that what its hook wanted became a block.
pub fn became_a_block(note: &str) -> bool {
    note.contains(BLOCKED_INSTEAD)
}

/// The part of `verdict` that can be said, and a note about the rest. `can_ask` is only called
/// where the answer matters.
pub(super) fn fit(
    verdict: &Verdict,
    hook: &Hook,
    event: &Event,
    takes: Takes,
    can_ask: impl FnOnce() -> bool,
) -> (Verdict, Option<String>) {
    let agent = event.agent;
    let mut fitted = verdict.clone();
    let mut notes = Vec::new();
    let mut refuse = Vec::new();
    if fitted.stop && !takes.stop {
        fitted.stop = false;
        let reason = fitted.stop_reason.take().or_else(|| fitted.reason.clone());
        fitted.reason.clone_from(&reason);
        refuse.push((Untakeable::Stop, reason));
    }
    if fitted.ruling == Some(Ruling::Ask) && !(takes.ask && can_ask()) {
        fitted.ruling = None;
        let question = fitted.reason.as_ref().filter(|question| !question.trim().is_empty());
        refuse.push((Untakeable::Ask, question.map(|question| format!("{question}{UNASKED}"))));
    }
    if fitted.rewrite.is_some() && !takes.rewrite {
        fitted.rewrite = None;
        refuse.push((Untakeable::Rewrite, None));
    }
    for (what, reason) in refuse {
        let says = what.says(event);
        if takes.block
            && fitted.ruling != Some(Ruling::Block)
            && what.policy(hook) == OnFailure::Block
        {
            fitted.ruling = Some(Ruling::Block);
            fitted.reason = Some(reason.unwrap_or_else(|| format!("hook `{}` {says}", hook.name)));
            notes.push(format!("{says}: {BLOCKED_INSTEAD}"));
        } else {
            notes.push(format!("{says}: left out"));
        }
    }
    if fitted.context.is_some() && !takes.context {
        fitted.context = None;
        notes.push(format!("{agent} takes no context here: left out"));
    }
    if fitted.ruling == Some(Ruling::Block) && !takes.block {
        fitted.ruling = None;
        notes.push(format!("{agent} cannot be blocked here: left out"));
    }
    (fitted, (!notes.is_empty()).then(|| notes.join("; ")))
}

/// What a rewrite is of.
#[expect(clippy::wildcard_enum_match_arm, reason = "everywhere else it is the tool's input")]
const fn changed_at(kind: Kind) -> &'static str {
    match kind {
        Kind::ToolOutput | Kind::TurnOutput | Kind::MessageIn => "text",
        Kind::Command => "command",
        _ => "tool input",
    }
}

#[derive(Clone, Copy)]
enum Untakeable {
    Stop,
    Ask,
    Rewrite,
}

impl Untakeable {
    fn says(self, event: &Event) -> String {
        let agent = event.agent;
        match self {
            Self::Stop => format!("wanted to stop {agent}, which it cannot be told here"),
            Self::Ask => "wanted a person to be asked, and nobody can be".to_owned(),
            Self::Rewrite => {
                let what = changed_at(event.kind);
                format!("wanted another {what}, which {agent} takes none of here")
            }
        }
    }

    /// Under an agent's own event name a command means what that agent makes of it, which is
    /// nothing; a question that nobody can be asked is never a yes.
    fn policy(self, hook: &Hook) -> OnFailure {
        let as_the_agent_does = matches!(hook.action, Action::Command(_))
            && hook.on.manner() != Manner::Common
            || matches!(hook.action, Action::Python(_));
        match (hook.on_failure, self) {
            (Some(said), _) => said,
            (None, Self::Ask) => OnFailure::Block,
            (None, Self::Stop | Self::Rewrite) if as_the_agent_does => OnFailure::Allow,
            (None, Self::Stop | Self::Rewrite) => OnFailure::Block,
        }
    }
}
