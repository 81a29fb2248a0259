//! Which hooks are for an event.

use super::hook::{Action, Hook, Mode};
use super::{Hooks, OnFailure};
use crate::dialect::Manner;
use crate::event::{Agent, Body, Event};

/// The hooks that will be asked about one event, in the configured order.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(super) hooks: Vec<&'a Hook>,
    /// Each hook is handed the input as the one before left it.
    pub(super) sequential: bool,
    /// Nobody can read the event, and this hook says that such a thing must not pass.
    pub(super) guard: Option<&'a Hook>,
    pub(super) whole: &'a Hooks,
}

impl Plan<'_> {
    /// Whether nobody has an opinion.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.guard.is_none()
    }

    /// Whether something outside of this process has to run.
    pub fn runs_outside(&self) -> bool {
        self.hooks.iter().any(|hook| hook.runs_outside())
    }

    /// A hook among them that blocks when it cannot answer.
    pub fn strict_hook(&self) -> Option<&str> {
        let strict = |hook: &&&Hook| hook.on_failure == Some(OnFailure::Block);
        self.hooks.iter().find(strict).copied().or(self.guard).map(Hook::name)
    }
}

/// Whom to ask about `event`.
pub fn plan<'a>(event: &Event, hooks: &'a Hooks) -> Plan<'a> {
    let unreadable = matches!(event.body, Body::Unreadable { .. });
    let answered = event.agent.is_answered();
    let asked = |hook: &&Hook| hook.mode == Mode::Decide && hook.is_for(event);
    let mut matched: Vec<&Hook> = if unreadable || !answered {
        Vec::new()
    } else {
        hooks.hooks.iter().filter(asked).collect()
    };
    drop_repeated(event.agent, &mut matched);
    let guard = hooks.hooks.iter().find(|hook| unreadable && answered && hook.guards(event.agent));
    let sequential = matched.iter().any(|hook| hook.sequential);
    Plan { hooks: matched, sequential, guard, whole: hooks }
}

/// Gemini runs the same name and command once per event, whatever matchers led to it.
fn drop_repeated(agent: Agent, matched: &mut Vec<&Hook>) {
    if agent != Agent::Gemini {
        return;
    }
    let mut seen: Vec<(&str, &str)> = Vec::new();
    matched.retain(|hook| match &hook.action {
        Action::Command(command) if hook.on.manner() == Manner::Gemini => {
            let key = (hook.name.as_str(), command.text.as_str());
            let first = !seen.contains(&key);
            seen.push(key);
            first
        }
        Action::Command(_) | Action::Rule(_) | Action::Broken(_) => true,
    });
}

/// The policy of a hook that failed.
pub(super) fn policy_of(hook: &Hook) -> OnFailure {
    hook.on_failure.unwrap_or(OnFailure::Allow)
}
