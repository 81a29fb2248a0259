//! The answer of last resort: only the rules are asked, and what runs outside of this process has failed. A hook
//! that must not run anyway is refused here as it is in time, as far as a short look at its files can tell.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::plan::Plan;
use super::run::{
    HookResult, blocking_by_default, deadline_in, failed, heaviest_refusal, policy_for_refusal,
    refused, run_inside,
};
use crate::caller::Caller;
use crate::config::{Hook, Refusal};
use crate::event::VerdictRecord;
use crate::rule::Facts;
use crate::sys::thread::spawn;

/// Why only the rules are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesAlone {
    /// The deadline of the client is near.
    NoTime,
    /// The system has no thread left for this process.
    NoThread,
    /// The system has too few descriptors or too little memory left for this process.
    Shortage,
    /// Asking all hooks has panicked.
    Panicked,
}

impl RulesAlone {
    /// The record of a hook that is not asked. Its own policy decides if the time is up: it may be the hook that
    /// took it. What is not the hook's doing blocks, unless its entry says otherwise.
    fn record(self, hook: &Hook) -> VerdictRecord {
        let (hook, why) = match self {
            Self::NoTime => (hook, "no time was left to ask it"),
            Self::NoThread => (&blocking_by_default(hook), "the system has no thread left for it"),
            Self::Shortage => (
                &blocking_by_default(hook),
                "the system is short of something: open files or memory",
            ),
            Self::Panicked => {
                (&blocking_by_default(hook), "hookbus itself failed before it could ask it")
            }
        };
        failed(hook, why.to_owned(), Duration::ZERO)
    }
}

/// The results of the rules within `time`; every other hook counts as failed.
pub(crate) fn run_rules_alone<'a>(
    plan: &Plan<'a>,
    facts: &Facts<'_>,
    caller: &Caller,
    time: Duration,
    cause: RulesAlone,
) -> Vec<HookResult<'a>> {
    let deadline = deadline_in(time);
    let refusals = known_refusals(plan, caller, deadline_in(time / 2));
    run_inside(plan, facts, deadline, |hook| {
        let hook_of = |(known, _): &&(&Hook, Refusal)| std::ptr::eq(*known, hook);
        let strictest = plan.with_strictest_policy(hook);
        Some(match refusals.iter().find(hook_of) {
            Some((_, refusal)) => {
                refused(&policy_for_refusal(&strictest, refusal, facts.event), refusal.clone())
            }
            None => cause.record(&strictest),
        })
    })
}

/// The hooks that must not run. They are looked at in another thread, because a disk that hangs must not keep the
/// rules from answering; what is not known at `deadline` is left out.
fn known_refusals<'a>(
    plan: &Plan<'a>,
    caller: &Caller,
    deadline: Instant,
) -> Vec<(&'a Hook, Refusal)> {
    let hooks: Vec<&Hook> = plan.outside().collect();
    if hooks.is_empty() {
        return Vec::new();
    }
    let checks: Vec<_> = hooks
        .iter()
        .map(|hook| {
            let entries: Vec<Hook> = plan.approvable(hook).cloned().collect();
            (plan.active(hook).approvals.clone(), entries)
        })
        .collect();
    let (sender, found) = channel();
    let caller = caller.clone();
    let look = move || {
        for (number, (approvals, entries)) in checks.into_iter().enumerate() {
            let refusals =
                entries.iter().map(|entry| approvals.refusal_at_a_glance(entry, &caller));
            if sender.send((number, heaviest_refusal(refusals))).is_err() {
                return;
            }
        }
    };
    if let Err(error) = spawn("approvals", look) {
        tracing::debug!(%error, "no thread to look at the approvals");
    }
    let mut refusals = Vec::new();
    let left = || deadline.saturating_duration_since(Instant::now());
    while let Ok((number, refusal)) = found.recv_timeout(left()) {
        refusals.extend(hooks.get(number).copied().zip(refusal));
    }
    refusals
}
