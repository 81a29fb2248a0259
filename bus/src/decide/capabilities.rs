//! Reducing a verdict to what the agent can act on at this event. What it cannot act on becomes a block or is
//! left out, and a note in the log says which.

use serde_json::Value;

use super::rule_name::without_rule_names;
use crate::config::{Action, Hook};
use crate::dialect::{Capabilities, Dialect};
use crate::event::{Event, Kind, OnFailure, Outcome, RecordedVerdict, Ruling, Verdict};

/// In the note of an answer that became a block. Replay looks for it in recorded notes.
const BLOCKED_INSTEAD: &str = "blocked instead";

/// Added to a question that became a block, so that the model does not wait for the user.
const UNASKED: &str = " (no person can be asked here, so it is blocked)";

/// Texts that the bus adds, as earlier versions worded them in old logs, and as they are now.
const REWORDED: [(&str, &str); 4] = [
    (" (nobody can be asked here, so it is blocked)", UNASKED),
    ("wanted a person to be asked, and nobody can be", ASK_IMPOSSIBLE),
    ("which it cannot be told here", "which is not possible here"),
    ("takes none of here", "does not accept here"),
];

// The beginnings of notes, by which [`effect_of`] recognizes them.
const WANTED_TO_STOP: &str = "wanted to stop";
const WANTED_ANOTHER: &str = "wanted another";
const NO_CONTEXT: &str = "accepts no context here";
const NO_BLOCK: &str = "cannot be blocked here";
const ASK_IMPOSSIBLE: &str = "wanted to ask a person, and no person can be asked";

/// An answer without the texts that the bus itself adds: if only their wording differs, the answers are the
/// same.
pub fn without_added_texts(answer: &Value) -> Value {
    match answer {
        Value::String(text) => {
            let reword = |text: String, (old, new): (&str, &str)| text.replace(old, new);
            let reworded = REWORDED.into_iter().fold(text.clone(), reword).replace(UNASKED, "");
            Value::String(without_rule_names(&reworded))
        }
        Value::Array(all) => all.iter().map(without_added_texts).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), without_added_texts(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => answer.clone(),
    }
}

/// Whether a recorded note says that the hook's answer became a block.
pub fn became_a_block(note: &str) -> bool {
    note.contains(BLOCKED_INSTEAD)
}

/// The strongest effect that a recorded verdict had on the agent, or would have had if its hook were not in shadow
/// mode.
pub fn effect_of(verdict: &RecordedVerdict) -> Outcome {
    let outcome = Outcome::parse(&verdict.verdict).unwrap_or(Outcome::None);
    let note = verdict.note.as_deref().unwrap_or_default();
    if became_a_block(note) {
        return Outcome::Block;
    }
    let impossible = match outcome {
        Outcome::Stop => WANTED_TO_STOP,
        Outcome::Block => NO_BLOCK,
        Outcome::Ask => ASK_IMPOSSIBLE,
        Outcome::Rewrite => WANTED_ANOTHER,
        Outcome::Context => NO_CONTEXT,
        Outcome::Allow | Outcome::None => return outcome,
    };
    if note.contains(impossible) { Outcome::None } else { outcome }
}

/// The part of `verdict` that the agent can act on, and a note about the rest. `can_ask` is called only
/// where it matters.
pub(super) fn fit_to_agent(
    verdict: &Verdict,
    hook: &Hook,
    event: &Event,
    capabilities: Capabilities,
    can_ask: impl FnOnce() -> bool,
) -> (Verdict, Option<String>) {
    let (agent, dialect) = (event.agent, hook.dialect(event.agent));
    let mut fitted = verdict.clone();
    let mut notes = Vec::new();
    let mut impossible = Vec::new();
    if fitted.stop && !capabilities.stop {
        fitted.stop = false;
        let reason = fitted.stop_reason.take().or_else(|| fitted.reason.clone());
        fitted.reason.clone_from(&reason);
        impossible.push((Impossible::Stop, reason));
    }
    if fitted.ruling == Some(Ruling::Ask) && !(capabilities.ask && can_ask()) {
        fitted.ruling = None;
        let question = fitted.reason.as_ref().filter(|question| !question.trim().is_empty());
        impossible.push((Impossible::Ask, question.map(|question| format!("{question}{UNASKED}"))));
    }
    if fitted.rewrite.is_some() && !capabilities.rewrite {
        fitted.rewrite = None;
        impossible.push((Impossible::Rewrite, None));
    }
    for (what, reason) in impossible {
        let wanted = what.describe(event);
        if capabilities.block
            && fitted.ruling != Some(Ruling::Block)
            && what.policy(hook, dialect) == OnFailure::Block
        {
            fitted.ruling = Some(Ruling::Block);
            fitted.reason =
                Some(reason.unwrap_or_else(|| format!("hook `{}` {wanted}", hook.name)));
            notes.push(format!("{wanted}: {BLOCKED_INSTEAD}"));
        } else {
            notes.push(format!("{wanted}: left out"));
        }
    }
    if fitted.context.is_some() && !capabilities.context {
        fitted.context = None;
        notes.push(format!("{agent} {NO_CONTEXT}: left out"));
    }
    if fitted.ruling == Some(Ruling::Block) && !capabilities.block {
        fitted.ruling = None;
        notes.push(format!("{agent} {NO_BLOCK}: left out"));
    }
    (fitted, (!notes.is_empty()).then(|| notes.join("; ")))
}

/// What a rewrite changes.
#[expect(clippy::wildcard_enum_match_arm, reason = "everywhere else it is the tool's input")]
const fn rewrite_target(kind: Kind) -> &'static str {
    match kind {
        Kind::ToolOutput | Kind::TurnOutput | Kind::MessageIn => "text",
        Kind::Command => "command",
        _ => "tool input",
    }
}

/// An answer that the agent cannot act on.
#[derive(Clone, Copy)]
enum Impossible {
    Stop,
    Ask,
    Rewrite,
}

impl Impossible {
    fn describe(self, event: &Event) -> String {
        let agent = event.agent;
        match self {
            Self::Stop => format!("{WANTED_TO_STOP} {agent}, which is not possible here"),
            Self::Ask => ASK_IMPOSSIBLE.to_owned(),
            Self::Rewrite => {
                let what = rewrite_target(event.kind);
                format!("{WANTED_ANOTHER} {what}, which {agent} does not accept here")
            }
        }
    }

    /// Under an agent's own event name, and from a plugin, such an answer is ignored, as the agent does it.
    /// A question that no person can answer is never an approval.
    fn policy(self, hook: &Hook, dialect: &dyn Dialect) -> OnFailure {
        let is_ignored = match &hook.action {
            Action::Command(_) => dialect.ignores_impossible_answers(),
            Action::Python(_) => true,
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Analytics(_)
            | Action::Broken(_)
            | Action::Unapproved { .. } => false,
        };
        match (hook.on_failure, self) {
            (Some(policy), _) => policy,
            (None, Self::Ask) => OnFailure::Block,
            (None, Self::Stop | Self::Rewrite) if is_ignored => OnFailure::Allow,
            (None, Self::Stop | Self::Rewrite) => OnFailure::Block,
        }
    }
}
