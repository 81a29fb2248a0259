//! Hooks that the bus skipped because the user had not approved them. If a replay uses hooks as recorded, it
//! must not run such a hook either: it skips the hook and keeps the recorded verdict.

use std::time::Duration;

use hookbus::config::Hook;
use hookbus::decide::{HookResult, Plan};
use hookbus::event::{OnFailure, Outcome, Verdict, VerdictRecord};
use hookbus::log::RecordedEvent;

use crate::replay_hooks::ReplayHooks;
use hookbus::event::{RecordedDecision, RecordedVerdict};

/// Recorded verdicts of the skipped hooks, with their positions among all verdicts.
#[derive(Debug, Default)]
pub(crate) struct CarriedVerdicts<'a> {
    /// Of the user's own hooks, which come first: with the number of verdicts before each.
    own: Vec<(usize, HookResult<'a>)>,
    /// Of the project's hooks, which come last: with the number of verdicts after each, because a replay
    /// may run more of the user's own hooks.
    of_project: Vec<(usize, HookResult<'a>)>,
}

/// Removes the hooks from `plan` that were skipped when the event was recorded, unless a hooks file of
/// this replay replaces them.
pub(crate) fn skip_unapproved<'a>(
    plan: &mut Plan<'a>,
    hooks: &ReplayHooks,
    row: &RecordedEvent,
    decision: Option<&RecordedDecision>,
) -> CarriedVerdicts<'a> {
    let is_affected =
        |decision: &&RecordedDecision| decision.verdicts.iter().any(|it| it.unapproved);
    let Some(decision) = decision.filter(is_affected) else {
        return CarriedVerdicts::default();
    };
    let as_recorded = [false, true].map(|of_project| hooks.are_as_recorded(of_project, row));
    let is_as_recorded = |of_project: bool| as_recorded[usize::from(of_project)];
    let is_skipped =
        |hook: &&Hook| is_as_recorded(hook.of_project) && was_unapproved(hook, plan, decision);
    let skipped: Vec<&Hook> = plan.hooks().filter(is_skipped).collect();
    plan.leave_out(&skipped);
    let mut carried = CarriedVerdicts::default();
    let last = decision.verdicts.len() - 1;
    for (at, verdict) in decision.verdicts.iter().enumerate().filter(|(_, it)| it.unapproved) {
        let of_project = verdict.of_project;
        let hook = skipped.iter().find(|hook| hook.of_project == of_project);
        let result = hook.map(|hook| HookResult::new(hook, to_record(verdict)));
        match result.filter(|_| is_as_recorded(of_project)) {
            Some(result) if of_project => carried.of_project.push((last - at, result)),
            Some(result) => carried.own.push((at, result)),
            None => {}
        }
    }
    carried
}

impl<'a> CarriedVerdicts<'a> {
    /// Inserts the recorded verdicts at their old positions among those of the hooks that ran.
    pub(crate) fn insert_into(&self, mut verdicts: Vec<HookResult<'a>>) -> Vec<HookResult<'a>> {
        for (before, result) in &self.own {
            verdicts.insert((*before).min(verdicts.len()), result.clone());
        }
        for (after, result) in self.of_project.iter().rev() {
            verdicts.insert(verdicts.len().saturating_sub(*after), result.clone());
        }
        verdicts
    }
}

/// Whether the user had not approved `hook`. If several hooks share its name and the verdicts do not tell
/// which of them was meant, all of them count as unapproved.
fn was_unapproved(hook: &Hook, plan: &Plan<'_>, decision: &RecordedDecision) -> bool {
    let of_project = hook.of_project;
    let namesakes: Vec<&Hook> = plan
        .hooks()
        .filter(|other| other.of_project == of_project && other.name == hook.name)
        .filter(|other| of_project || other.runs_outside())
        .collect();
    let same_file = || decision.verdicts.iter().filter(|it| it.of_project == of_project);
    let verdicts: Vec<&RecordedVerdict> = same_file().filter(|it| it.is_by(&hook.name)).collect();
    if of_project {
        // One verdict may stand for all unapproved hooks of a project: only a hook with a verdict of its
        // own was approved.
        let approved = verdicts.iter().filter(|it| !it.unapproved).count();
        return same_file().any(|it| it.unapproved) && approved < namesakes.len();
    }
    let index = namesakes.iter().position(|other| std::ptr::eq(*other, hook));
    let index = index.filter(|_| verdicts.len() == namesakes.len());
    match index.and_then(|index| verdicts.get(index)) {
        Some(verdict) => verdict.unapproved,
        None => hook.runs_outside() && verdicts.iter().any(|it| it.unapproved),
    }
}

/// The verdict of a skipped hook, which is either silent or a block.
fn to_record(recorded: &RecordedVerdict) -> VerdictRecord {
    let blocked = recorded.verdict == Outcome::Block.as_str();
    let reason = recorded.reason.clone().unwrap_or_default();
    VerdictRecord {
        hook: recorded.hook.clone(),
        verdict: if blocked { Verdict::block(reason) } else { Verdict::silent() },
        exit: None,
        took: Duration::ZERO,
        failure: recorded.failure.clone(),
        policy: if blocked { OnFailure::Block } else { OnFailure::Allow },
        script: None,
        history: None,
        refused: true,
        of_project: recorded.of_project,
        shadow: recorded.shadow,
        note: None,
    }
}
