//! Totals of what hooks in shadow mode would have done, from recorded decisions. The hooks are not run again: a replay
//! does that, and counts the calls in the same way.

use std::collections::{BTreeMap, HashSet};

use hookbus::decide::effect_of;
use hookbus::event::{Outcome, RecordedVerdict, Seq, Time};
use serde_json::{Value, json};

use crate::calls::CallCounts;

/// What hooks in shadow mode would have done, by the name of the hook.
#[derive(Debug, Clone, Default)]
pub struct ShadowTally {
    /// Totals by hook name.
    pub hooks: BTreeMap<String, ShadowHook>,
}

/// What one hook in shadow mode would have done.
#[derive(Debug, Clone, Default)]
pub struct ShadowHook {
    /// Recorded verdicts, also those without an opinion.
    pub verdicts: u64,
    outcomes: [u64; Outcome::ALL.len()],
    /// How often it failed. With `on_failure: block` these are also among the blocked ones.
    pub failed: u64,
    /// How often it was not asked because it was not approved. That tells nothing about what it would have said.
    pub unapproved: u64,
    /// Its first failure.
    pub failure: Option<(Seq, String)>,
    sessions: HashSet<String>,
    /// Time of the first and the last verdict.
    pub span: Option<(Time, Time)>,
    /// The calls that it would have changed.
    pub calls: CallCounts,
}

/// The event that a verdict was about.
#[derive(Debug, Clone, Copy)]
pub struct ShadowedEvent<'a> {
    /// Its position in the log.
    pub seq: Seq,
    /// When it was decided on.
    pub at: Time,
    /// The agent's session.
    pub session: &'a str,
    /// The tool, or the name of the event.
    pub tool: &'a str,
    /// What it was about.
    pub gist: &'a str,
}

impl ShadowTally {
    /// Adds a verdict, if it was given in shadow mode.
    pub fn add(&mut self, verdict: &RecordedVerdict, event: ShadowedEvent<'_>) {
        if !verdict.shadow {
            return;
        }
        let hook = self.hooks.entry(verdict.hook.clone()).or_default();
        if verdict.unapproved {
            hook.unapproved += 1;
            return;
        }
        let outcome = effect_of(verdict);
        hook.verdicts += 1;
        hook.outcomes[outcome as usize] += 1;
        hook.sessions.insert(event.session.to_owned());
        let (first, last) = hook.span.unwrap_or((event.at, event.at));
        hook.span = Some((first.min(event.at), last.max(event.at)));
        if let Some(failure) = &verdict.failure {
            hook.failed += 1;
            hook.failure.get_or_insert_with(|| (event.seq, failure.clone()));
        }
        if outcome != Outcome::None {
            hook.calls.add(event.tool, event.gist, event.seq);
        }
    }
}

impl ShadowHook {
    /// How many verdicts would have had this as their strongest effect.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// In how many sessions it had a verdict.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The totals as JSON, with at most `most` calls.
    pub fn to_json(&self, most: usize) -> Value {
        json!({
            "verdicts": self.verdicts,
            "blocked": self.count(Outcome::Block),
            "stopped": self.count(Outcome::Stop),
            "asked": self.count(Outcome::Ask),
            "rewritten": self.count(Outcome::Rewrite),
            "context": self.count(Outcome::Context),
            "allowed": self.count(Outcome::Allow),
            "none": self.count(Outcome::None),
            "failed": self.failed,
            "unapproved": self.unapproved,
            "failure": self.failure.as_ref().map(|(_, why)| why),
            "sessions": self.sessions(),
            "first": self.span.map(|(first, _)| first.to_string()),
            "last": self.span.map(|(_, last)| last.to_string()),
            "most_affected": self.calls.to_json(most),
        })
    }
}

#[cfg(test)]
mod tests {
    use hookbus::event::RecordedDecision;

    use super::*;

    #[test]
    fn verdicts_are_counted_by_what_they_would_have_come_to() {
        let verdicts = json!([
            {"hook": "a", "verdict": "block", "shadow": true},
            {"hook": "a", "verdict": "block"},
            {"hook": "a", "verdict": "none", "shadow": true},
            {"hook": "a", "verdict": "ask", "shadow": true,
             "note": "wanted to ask a person, and no person can be asked: blocked instead"},
            {"hook": "a", "verdict": "block", "shadow": true, "failed": true, "failure": "1"},
            {"hook": "a", "verdict": "block", "shadow": true, "failure": "2", "refused": "consent"},
            {"hook": "b", "verdict": "context", "shadow": true,
             "note": "hermes accepts no context here: left out"},
        ]);
        let decision =
            RecordedDecision::from_json(json!({"outcome": "none", "verdicts": verdicts}));
        let mut tally = ShadowTally::default();
        for (verdict, number) in decision.expect("a decision").verdicts.iter().zip(1..) {
            let (seq, at) = (Seq::from_i64(number), Time::from_micros(number));
            let event = ShadowedEvent { seq, at, session: "s", tool: "terminal", gist: "ls" };
            tally.add(verdict, event);
        }
        let hook = &tally.hooks["a"];
        let found = (hook.verdicts, hook.count(Outcome::Block), hook.count(Outcome::None));
        assert_eq!(found, (4, 3, 1));
        assert_eq!((hook.failed, hook.unapproved, hook.sessions()), (1, 1, 1));
        assert_eq!(hook.calls.most(1)[0].times, 3);
        assert_eq!(tally.hooks["b"].count(Outcome::None), 1, "it would have had no effect");
        assert_eq!(hook.to_json(1)["most_affected"][0]["first"], 1);
    }
}
