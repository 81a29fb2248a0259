//! What becomes of a verdict that the agent cannot take at this event. Nothing is lost in
//! silence: it becomes a block or is left out, and the note says which.

use super::hook::{Action, Hook, OnFailure};
use crate::dialect::{Manner, Takes};
use crate::event::{Agent, Ruling, Verdict};

/// What a note says of something that became a block.
const BLOCKED_INSTEAD: &str = "blocked instead";

/// Whether a recorded note says that what its hook wanted became a block.
pub fn became_a_block(note: &str) -> bool {
    note.contains(BLOCKED_INSTEAD)
}

/// The part of `verdict` that can be said, and a note about the rest. `can_ask` is only called
/// where the answer matters.
pub(super) fn fit(
    verdict: &Verdict,
    hook: &Hook,
    agent: Agent,
    takes: Takes,
    can_ask: impl FnOnce() -> bool,
) -> (Verdict, Option<String>) {
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
        refuse.push((Untakeable::Ask, fitted.reason.clone()));
    }
    if fitted.rewrite.is_some() && !takes.rewrite {
        fitted.rewrite = None;
        refuse.push((Untakeable::Rewrite, None));
    }
    for (what, reason) in refuse {
        let says = what.says(agent);
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

#[derive(Clone, Copy)]
enum Untakeable {
    Stop,
    Ask,
    Rewrite,
}

impl Untakeable {
    fn says(self, agent: Agent) -> String {
        match self {
            Self::Stop => format!("wanted to stop {agent}, which it cannot be told here"),
            Self::Ask => "wanted a person to be asked, and nobody can be".to_owned(),
            Self::Rewrite => format!("wanted another tool input, which {agent} takes none of here"),
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
