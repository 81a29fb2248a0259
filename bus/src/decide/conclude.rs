//! From what the hooks said to what the agent is told.

use std::cell::Cell;
use std::fmt;
use std::time::Instant;

use super::fit::fit;
use super::plan::Plan;
use super::run::Spoken;
use crate::dialect::{encode, merge, takes};
use crate::event::{Decision, Event, Outcome, Ruling, Verdict, VerdictRecord};

/// What a decision depends on besides the event and the verdicts.
pub struct Circumstances<'a> {
    /// When deciding began.
    pub started: Instant,
    /// Finds out whether a person can be asked; only called where the answer depends on it.
    pub can_ask: &'a dyn Fn() -> bool,
    /// Whether the agent still waits.
    pub waited_for: bool,
    /// How often in a row the agent has been sent on already.
    pub continuations: u32,
}

impl fmt::Debug for Circumstances<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { started, can_ask: _, waited_for, continuations } = self;
        f.debug_struct("Circumstances")
            .field("started", started)
            .field("waited_for", waited_for)
            .field("continuations", continuations)
            .finish_non_exhaustive()
    }
}

/// Fits each verdict to what the agent can take, merges them by the agent's own rules, and puts
/// the result in its words.
pub fn conclude(
    event: &Event,
    plan: &Plan<'_>,
    spoken: Vec<Spoken<'_>>,
    circumstances: &Circumstances<'_>,
) -> Decision {
    let takes = takes(event);
    let found = Cell::new(None);
    let can_ask = || {
        let can_ask = found.get().unwrap_or_else(circumstances.can_ask);
        found.set(Some(can_ask));
        can_ask
    };
    let (fitted, verdicts): (Vec<Verdict>, Vec<VerdictRecord>) = spoken
        .into_iter()
        .map(|Spoken { hook, record }| {
            let (verdict, note) = match hook {
                Some(hook) => fit(&record.verdict, &plan.for_all(hook), event, takes, can_ask),
                None => (record.verdict.clone(), None),
            };
            (verdict, VerdictRecord { note, ..record })
        })
        .unzip();
    let mut merged = merge(event, &fitted.iter().collect::<Vec<_>>());
    let note = end_runaway(&mut merged, plan.own.max_continuations, circumstances.continuations);
    Decision {
        hooks: plan.own.hash.clone(),
        verdicts,
        outcome: Outcome::of(&merged),
        answer: encode(event, &merged),
        took: circumstances.started.elapsed(),
        waited_for: circumstances.waited_for,
        can_ask: found.get(),
        note,
    }
}

/// A hook that never lets the agent finish would send it on for ever: Gemini has no limit of its
/// own and dies of a stack overflow after two thousand rounds.
fn end_runaway(merged: &mut Verdict, most: u32, so_far: u32) -> Option<String> {
    if merged.ruling != Some(Ruling::Block) || so_far < most {
        return None;
    }
    *merged = Verdict { notice: merged.notice.take(), ..Verdict::silent() };
    Some(format!(
        "sent on {so_far} times in a row, which is the limit (`max_continuations`); let go"
    ))
}
