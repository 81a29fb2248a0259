//! From the verdicts of the hooks to the answer for the agent.

use std::cell::Cell;
use std::fmt;
use std::time::Instant;

use super::capabilities::fit_to_agent;
use super::plan::Plan;
use super::rule_name::add_rule_name;
use super::run::HookResult;
use crate::dialect::dialect_of;
use crate::event::{Decision, Event, Outcome, Ruling, Verdict, VerdictRecord};

/// What a decision depends on besides the event and the verdicts.
pub struct DecisionContext<'a> {
    /// When deciding began.
    pub started: Instant,
    /// Finds out whether a person can be asked; called only if the answer depends on it.
    pub can_ask: &'a dyn Fn() -> bool,
    /// Whether the agent still waits for the answer.
    pub waited_for: bool,
    /// How often in a row the agent has already been told to continue.
    pub continuations: u32,
}

impl fmt::Debug for DecisionContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { started, can_ask: _, waited_for, continuations } = self;
        f.debug_struct("DecisionContext")
            .field("started", started)
            .field("waited_for", waited_for)
            .field("continuations", continuations)
            .finish_non_exhaustive()
    }
}

/// Reduces each verdict to what the agent can act on, merges them by the agent's own rules, and encodes
/// the result. Verdicts of hooks in shadow mode get their note, and are left out of the rest.
pub fn conclude(
    event: &Event,
    plan: &Plan<'_>,
    results: Vec<HookResult<'_>>,
    context: &DecisionContext<'_>,
) -> Decision {
    let dialect = dialect_of(event.agent);
    let mut capabilities = dialect.capabilities(event);
    // What a rewrite does not name is taken from the event, and would be lost.
    capabilities.rewrite &= !event.is_partial();
    let found = Cell::new(None);
    let can_ask = || {
        let can_ask = found.get().unwrap_or_else(context.can_ask);
        found.set(Some(can_ask));
        can_ask
    };
    let (fitted, verdicts): (Vec<Option<Verdict>>, Vec<VerdictRecord>) = results
        .into_iter()
        .map(|HookResult { hook, record }| {
            let (verdict, note) = match hook {
                Some(hook) => {
                    let hook = plan.with_strictest_policy(hook);
                    let (mut verdict, note) =
                        fit_to_agent(&record.verdict, &hook, event, capabilities, can_ask);
                    // A failure names the hook by itself.
                    if record.failure.is_none() {
                        add_rule_name(&mut verdict, &hook);
                    }
                    (verdict, note)
                }
                None => (record.verdict.clone(), None),
            };
            ((!record.shadow).then_some(verdict), VerdictRecord { note, ..record })
        })
        .unzip();
    let mut merged = dialect.merge(event, &fitted.iter().flatten().collect::<Vec<_>>());
    let limit = plan.sets.own.file.max_continuations;
    let note = end_runaway(&mut merged, limit, context.continuations);
    Decision {
        hooks: plan.hooks_hash().to_owned(),
        verdicts,
        outcome: Outcome::of(&merged),
        answer: dialect.encode(event, &merged),
        took: context.started.elapsed(),
        waited_for: context.waited_for,
        can_ask: found.get(),
        note,
        notice: None,
    }
}

/// Lets the agent finish if it was told to continue too often in a row. Gemini has no limit of its own and ends
/// with a stack overflow after two thousand rounds.
fn end_runaway(merged: &mut Verdict, limit: u32, so_far: u32) -> Option<String> {
    if merged.ruling != Some(Ruling::Block) || so_far < limit {
        return None;
    }
    *merged = Verdict { notice: merged.notice.take(), ..Verdict::silent() };
    Some(format!(
        "told to continue {limit} times in a row, which is the limit (`max_continuations`); it may finish now"
    ))
}
