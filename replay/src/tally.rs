//! Totals of a replay: events by category, verdicts and time of each hook, the calls affected most often.
//! Their size does not depend on the length of the log.

use std::collections::BTreeMap;
use std::time::Duration;

use hookbus::event::{Outcome, Seq};
use serde_json::{Value, json};

use crate::calls::CallCounts;
use crate::compare::Category;
use crate::replayed_event::ReplayedEvent;

/// Most distinct reasons to count; the rest is counted together.
const MOST_REASONS: usize = 50;

/// Most remarks to keep; the rest is counted.
const MOST_REMARKS: usize = 20;

/// Totals of a replay, or of a chunk of it.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Events that were replayed.
    pub events: u64,
    /// Events for which a project's hooks file of this replay was used.
    pub in_project: u64,
    counts: [u64; 6],
    /// Events that a hook's new failure blocks.
    failed_and_blocked: u64,
    /// Events that a hook's new failure lets through.
    failed_and_allowed: u64,
    /// Events on which a hook answered differently to the same input.
    pub nondeterministic: u64,
    /// Totals by hook name.
    pub hooks: BTreeMap<String, HookTally>,
    /// Why events are not comparable. The key is the hook or the common part of the text.
    reasons: BTreeMap<String, NotComparableReason>,
    /// Number of events by agent, for agents whose events are only recorded.
    only_recorded: BTreeMap<String, u64>,
    /// The calls with differences.
    pub calls: CallCounts,
    /// Remarks for the report.
    pub remarks: Vec<String>,
    /// Number of further remarks.
    pub more_remarks: u64,
}

/// Totals of one hook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookTally {
    /// Whether its last verdict was given in shadow mode; in this replay, if it has one here.
    pub shadow: bool,
    /// Recorded verdicts that were not silent.
    pub recorded: u64,
    /// Replayed verdicts that were not silent.
    pub replayed: u64,
    /// Differences that it causes.
    pub differences: u64,
    /// How often it failed in this replay.
    pub failed: u64,
    /// Its first failure.
    pub failure: Option<(Seq, String)>,
    /// How often it ran in this replay and gave a verdict or failed.
    pub runs: u64,
    /// Its total run time.
    pub took: Duration,
}

/// Why events are not comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotComparableReason {
    /// The text for the first event. Others may differ in details, such as the text of a failure.
    pub why: String,
    /// Number of events.
    pub events: u64,
    /// Position of the first event.
    pub first: Seq,
}

impl Tally {
    /// Number of events in a category.
    pub fn count(&self, category: Category) -> u64 {
        self.counts[category as usize]
    }

    /// Events with another answer.
    pub fn answered_differently(&self) -> u64 {
        self.blocked() + self.allowed() + self.count(Category::Changed)
    }

    /// Events that are newly refused, by a verdict or by a failure.
    pub fn blocked(&self) -> u64 {
        self.count(Category::NewlyBlocked) + self.failed_and_blocked
    }

    /// Events that are newly let through, by a verdict or by a failure.
    pub fn allowed(&self) -> u64 {
        self.count(Category::NewlyAllowed) + self.failed_and_allowed
    }

    /// Counts an event on which no hook had or has a verdict.
    pub(crate) fn add_without_verdicts(&mut self) {
        self.events += 1;
        self.counts[Category::Unchanged as usize] += 1;
    }

    pub(crate) fn add(&mut self, event: &ReplayedEvent) {
        let category = event.comparison.category;
        self.events += 1;
        self.counts[category as usize] += 1;
        self.nondeterministic += u64::from(event.nondeterministic.is_some());
        self.add_hooks(event);
        match category {
            Category::Unchanged => {}
            Category::NotComparable => {
                let why = event.comparison.why.clone().unwrap_or_default();
                let key = event.comparison.hook.as_ref().map_or_else(
                    || why.split(": ").next().unwrap_or_default().to_owned(),
                    |hook| format!("hook {hook}"),
                );
                self.add_reason(key, NotComparableReason { why, events: 1, first: event.seq });
            }
            Category::NewlyBlocked
            | Category::NewlyAllowed
            | Category::Changed
            | Category::Failed => {
                let tool = event.tool.as_deref().unwrap_or(&event.name);
                self.calls.add(tool, &event.gist, event.seq);
            }
        }
        if category == Category::Failed {
            let before = event.recorded_outcome().refuses();
            let after = event.replayed_outcome().refuses();
            self.failed_and_blocked += u64::from(after && !before);
            self.failed_and_allowed += u64::from(before && !after);
        }
    }

    fn add_hooks(&mut self, event: &ReplayedEvent) {
        for verdict in event.recorded.iter().flat_map(|decision| &decision.verdicts) {
            let hook = self.hook(&verdict.hook);
            hook.recorded += u64::from(!verdict.is_silent());
            hook.shadow = if hook.runs == 0 { verdict.shadow } else { hook.shadow };
        }
        for record in event.replayed.iter().flat_map(|decision| &decision.verdicts) {
            let hook = self.hook(&record.hook);
            hook.runs += 1;
            hook.shadow = record.shadow;
            hook.replayed += u64::from(Outcome::of(&record.verdict) != Outcome::None);
            hook.took += record.took;
            if let Some(failure) = &record.failure {
                hook.failed += 1;
                hook.failure.get_or_insert_with(|| (event.seq, failure.clone()));
            }
        }
        let differs =
            !matches!(event.comparison.category, Category::Unchanged | Category::NotComparable);
        if let Some(name) = event.comparison.hook.as_ref().filter(|_| differs) {
            self.hook(name).differences += 1;
        }
    }

    fn hook(&mut self, name: &str) -> &mut HookTally {
        if !self.hooks.contains_key(name) {
            self.hooks.insert(name.to_owned(), HookTally::default());
        }
        self.hooks.entry(name.to_owned()).or_default()
    }

    fn add_reason(&mut self, key: String, reason: NotComparableReason) {
        let is_full = self.reasons.len() >= MOST_REASONS && !self.reasons.contains_key(&key);
        let (key, reason) = if is_full {
            ("other".to_owned(), NotComparableReason { why: "other reasons".to_owned(), ..reason })
        } else {
            (key, reason)
        };
        match self.reasons.get_mut(&key) {
            Some(known) => known.events += reason.events,
            None => drop(self.reasons.insert(key, reason)),
        }
    }

    /// Why events are not comparable.
    pub fn reasons(&self) -> impl Iterator<Item = &NotComparableReason> {
        self.reasons.values()
    }

    pub(crate) fn add_only_recorded(&mut self, agent: &str) {
        *self.only_recorded.entry(agent.to_owned()).or_default() += 1;
    }

    /// A remark for each agent whose events are only recorded.
    pub fn only_recorded_remarks(&self) -> Vec<String> {
        let remark = |(agent, events): (&String, &u64)| {
            format!("{events} × {agent}: its events are only recorded; no hook runs for them")
        };
        self.only_recorded.iter().map(remark).collect()
    }

    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push(text.into());
        } else {
            self.more_remarks += 1;
        }
    }

    /// Adds remarks for the report.
    pub fn add_remarks(&mut self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.remark(text));
    }

    /// Adds the totals of the next chunk.
    pub fn merge(&mut self, chunk: Self) {
        self.events += chunk.events;
        self.in_project += chunk.in_project;
        for (count, more) in self.counts.iter_mut().zip(chunk.counts) {
            *count += more;
        }
        self.failed_and_blocked += chunk.failed_and_blocked;
        self.failed_and_allowed += chunk.failed_and_allowed;
        self.nondeterministic += chunk.nondeterministic;
        for (name, more) in chunk.hooks {
            let hook = self.hook(&name);
            hook.shadow = if more.runs > 0 || hook.runs == 0 { more.shadow } else { hook.shadow };
            hook.recorded += more.recorded;
            hook.replayed += more.replayed;
            hook.differences += more.differences;
            hook.failed += more.failed;
            hook.failure = hook.failure.take().or(more.failure);
            hook.runs += more.runs;
            hook.took += more.took;
        }
        for (key, reason) in chunk.reasons {
            self.add_reason(key, reason);
        }
        for (agent, events) in chunk.only_recorded {
            *self.only_recorded.entry(agent).or_default() += events;
        }
        self.calls.merge(chunk.calls);
        self.more_remarks += chunk.more_remarks;
        self.add_remarks(chunk.remarks);
    }

    /// The object `summary` in the JSON report.
    pub fn summary(&self) -> Value {
        json!({
            "events": self.events,
            "unchanged": self.count(Category::Unchanged),
            "newly_blocked": self.count(Category::NewlyBlocked),
            "newly_allowed": self.count(Category::NewlyAllowed),
            "changed": self.count(Category::Changed),
            "failed": self.count(Category::Failed),
            "not_comparable": self.count(Category::NotComparable),
            "unsteady": self.nondeterministic,
        })
    }

    /// The array `hooks` in the JSON report.
    pub fn hooks_json(&self) -> Value {
        let hooks = self.hooks.iter().map(|(name, hook)| {
            json!({
                "hook": name, "shadow": hook.shadow, "then": hook.recorded, "now": hook.replayed, "differences": hook.differences,
                "failed": hook.failed, "failure": hook.failure.as_ref().map(|(_, why)| why),
                "ms": hook.took.as_secs_f64() * 1000.0,
            })
        });
        hooks.collect()
    }

    /// The array `not_comparable` in the JSON report.
    pub fn reasons_json(&self) -> Value {
        let reasons = self.reasons.values().map(|reason| {
            json!({"why": reason.why, "events": reason.events, "first": reason.first.as_i64()})
        });
        reasons.collect()
    }
}
