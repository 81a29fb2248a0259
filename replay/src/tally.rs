//! Adding up: how many events of each class, what each hook did and cost, which calls are affected
//! most. Its size does not depend on the length of the log.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hookbus::event::{Outcome, Seq};
use serde_json::{Value, json};

use crate::compare::{Class, refuses};
use crate::judge::Judged;

/// More different calls than this are not kept apart; the rarest are forgotten first.
const CALLS: usize = 20_000;

/// More reasons than this are not kept apart.
const REASONS: usize = 50;

/// More lines than this say no more.
const REMARKS: usize = 20;

/// The sum of a replay, or of a part of it.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// How many events were decided on again.
    pub events: u64,
    /// About how many of them a candidate for a project's hooks was asked.
    pub in_project: u64,
    counts: [u64; 6],
    /// Newly failed ones that would be refused, or let through, because of it.
    failed_and_blocked: u64,
    failed_and_allowed: u64,
    /// Events on which a hook did not stand by its word.
    pub unsteady: u64,
    /// By hook.
    pub hooks: BTreeMap<String, HookTally>,
    /// Why events are not comparable, by what such reasons have in common.
    reasons: BTreeMap<String, Reason>,
    /// How many events there are of agents that no hook is asked about.
    only_recorded: BTreeMap<String, u64>,
    calls: HashMap<String, u64>,
    /// What the person should know.
    pub remarks: Vec<String>,
    /// How many remarks were left out.
    pub more_remarks: u64,
}

/// What one hook did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookTally {
    /// How often it had something to say then.
    pub then: u64,
    /// How often it has now.
    pub now: u64,
    /// How many differences it makes.
    pub differences: u64,
    /// How often it failed now.
    pub failed: u64,
    /// Its first failure.
    pub failure: Option<(Seq, String)>,
    /// How often it was asked now, as far as that shows.
    pub asked: u64,
    /// How long it took, all in all.
    pub took: Duration,
}

/// Why events are not comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// In words; of the first, where the failure of a hook is told in others each time.
    pub why: String,
    /// How many.
    pub events: u64,
    /// The first of them.
    pub first: Seq,
}

impl Tally {
    /// How many events are of this class.
    pub fn count(&self, class: Class) -> u64 {
        self.counts[class as usize]
    }

    /// How many would be answered differently.
    pub fn answered_differently(&self) -> u64 {
        self.blocked() + self.allowed() + self.count(Class::Changed)
    }

    /// How many would be refused that were not.
    pub fn blocked(&self) -> u64 {
        self.count(Class::NewlyBlocked) + self.failed_and_blocked
    }

    /// How many would be let through that were not.
    pub fn allowed(&self) -> u64 {
        self.count(Class::NewlyAllowed) + self.failed_and_allowed
    }

    /// An event about which nobody had or has an opinion.
    pub(crate) fn add_quiet(&mut self) {
        self.events += 1;
        self.counts[Class::Unchanged as usize] += 1;
    }

    pub(crate) fn add(&mut self, judged: &Judged) {
        let class = judged.comparison.class;
        self.events += 1;
        self.counts[class as usize] += 1;
        self.unsteady += u64::from(judged.unsteady.is_some());
        self.add_hooks(judged);
        match class {
            Class::Unchanged => {}
            Class::NotComparable => {
                let why = judged.comparison.why.clone().unwrap_or_default();
                let key = judged.comparison.hook.as_ref().map_or_else(
                    || why.split(": ").next().unwrap_or_default().to_owned(),
                    |hook| format!("hook {hook}"),
                );
                self.add_reason(key, Reason { why, events: 1, first: judged.seq });
            }
            Class::NewlyBlocked | Class::NewlyAllowed | Class::Changed | Class::Failed => {
                let what = judged.tool.as_deref().unwrap_or(&judged.name);
                let call = format!("{what}  {}", judged.gist.chars().take(80).collect::<String>());
                self.add_call(call.trim_end().to_owned(), 1);
            }
        }
        if class == Class::Failed {
            let then = judged.then.as_ref().is_some_and(|then| refuses(then.outcome));
            let now = judged.now.as_ref().is_some_and(|now| refuses(now.outcome));
            self.failed_and_blocked += u64::from(now && !then);
            self.failed_and_allowed += u64::from(then && !now);
        }
    }

    fn add_hooks(&mut self, judged: &Judged) {
        for said in judged.then.iter().flat_map(|then| &then.verdicts) {
            let spoke = said.verdict != "none" && !said.verdict.is_empty();
            self.hook(&said.hook).then += u64::from(spoke);
        }
        for said in judged.now.iter().flat_map(|now| &now.verdicts) {
            let hook = self.hook(&said.hook);
            hook.asked += 1;
            hook.now += u64::from(Outcome::of(&said.verdict) != Outcome::None);
            hook.took += said.took;
            if let Some(failure) = &said.failure {
                hook.failed += 1;
                hook.failure.get_or_insert_with(|| (judged.seq, failure.clone()));
            }
        }
        let differs = !matches!(judged.comparison.class, Class::Unchanged | Class::NotComparable);
        if let Some(name) = judged.comparison.hook.as_ref().filter(|_| differs) {
            self.hook(name).differences += 1;
        }
    }

    fn hook(&mut self, name: &str) -> &mut HookTally {
        if !self.hooks.contains_key(name) {
            self.hooks.insert(name.to_owned(), HookTally::default());
        }
        self.hooks.entry(name.to_owned()).or_default()
    }

    fn add_reason(&mut self, key: String, reason: Reason) {
        let full = self.reasons.len() >= REASONS && !self.reasons.contains_key(&key);
        let (key, reason) = if full {
            ("other".to_owned(), Reason { why: "other reasons".to_owned(), ..reason })
        } else {
            (key, reason)
        };
        match self.reasons.get_mut(&key) {
            Some(known) => known.events += reason.events,
            None => drop(self.reasons.insert(key, reason)),
        }
    }

    /// Why events are not comparable.
    pub fn reasons(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.values()
    }

    pub(crate) fn add_only_recorded(&mut self, agent: &str) {
        *self.only_recorded.entry(agent.to_owned()).or_default() += 1;
    }

    /// A line for each agent that no hook is asked about.
    pub fn only_recorded(&self) -> Vec<String> {
        let line = |(agent, events): (&String, &u64)| {
            format!("{events} × {agent}: its events are only recorded, no hook is asked about them")
        };
        self.only_recorded.iter().map(line).collect()
    }

    fn add_call(&mut self, call: String, times: u64) {
        *self.calls.entry(call).or_default() += times;
        let mut rare = 1;
        while self.calls.len() > CALLS {
            self.calls.retain(|_, times| *times > rare);
            rare *= 2;
        }
    }

    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        if self.remarks.len() < REMARKS {
            self.remarks.push(text.into());
        } else {
            self.more_remarks += 1;
        }
    }

    /// What the person should know besides.
    pub fn add_remarks(&mut self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.remark(text));
    }

    /// Adds the next part.
    pub fn merge(&mut self, part: Self) {
        self.events += part.events;
        self.in_project += part.in_project;
        for (count, more) in self.counts.iter_mut().zip(part.counts) {
            *count += more;
        }
        self.failed_and_blocked += part.failed_and_blocked;
        self.failed_and_allowed += part.failed_and_allowed;
        self.unsteady += part.unsteady;
        for (name, more) in part.hooks {
            let hook = self.hook(&name);
            hook.then += more.then;
            hook.now += more.now;
            hook.differences += more.differences;
            hook.failed += more.failed;
            hook.failure = hook.failure.take().or(more.failure);
            hook.asked += more.asked;
            hook.took += more.took;
        }
        for (key, reason) in part.reasons {
            self.add_reason(key, reason);
        }
        for (agent, events) in part.only_recorded {
            *self.only_recorded.entry(agent).or_default() += events;
        }
        for (call, times) in part.calls {
            self.add_call(call, times);
        }
        self.more_remarks += part.more_remarks;
        self.add_remarks(part.remarks);
    }

    /// The calls that are affected most often, and how often.
    pub fn most_affected(&self, most: usize) -> Vec<(&str, u64)> {
        let mut calls: Vec<(&str, u64)> =
            self.calls.iter().map(|(call, times)| (call.as_str(), *times)).collect();
        calls.sort_by(|(a, most), (b, more)| more.cmp(most).then(a.cmp(b)));
        calls.truncate(most);
        calls
    }

    /// The object `summary`.
    pub fn summary(&self) -> Value {
        json!({
            "events": self.events,
            "unchanged": self.count(Class::Unchanged),
            "newly_blocked": self.count(Class::NewlyBlocked),
            "newly_allowed": self.count(Class::NewlyAllowed),
            "changed": self.count(Class::Changed),
            "failed": self.count(Class::Failed),
            "not_comparable": self.count(Class::NotComparable),
            "unsteady": self.unsteady,
        })
    }

    /// What each hook did, as JSON.
    pub fn hooks_json(&self) -> Value {
        let hooks = self.hooks.iter().map(|(name, hook)| {
            json!({
                "hook": name, "then": hook.then, "now": hook.now, "differences": hook.differences,
                "failed": hook.failed, "failure": hook.failure.as_ref().map(|(_, why)| why),
                "ms": hook.took.as_secs_f64() * 1000.0,
            })
        });
        hooks.collect()
    }

    /// Why events are not comparable, as JSON.
    pub fn reasons_json(&self) -> Value {
        let reasons = self.reasons.values().map(|reason| {
            json!({"why": reason.why, "events": reason.events, "first": reason.first.as_i64()})
        });
        reasons.collect()
    }
}

impl Judged {
    /// One entry of `changes`.
    pub fn to_json(&self) -> Value {
        let then = self.then.as_ref();
        let now = self.now.as_ref();
        let answer_then = then.and_then(|then| then.answer.as_ref());
        let answer_now = now.and_then(|now| now.answer.as_ref());
        json!({
            "seq": self.seq.as_i64(),
            "time": self.at.to_string(),
            "agent": self.agent,
            "session": self.session,
            "name": self.name,
            "kind": self.kind,
            "tool": self.tool,
            "gist": self.gist,
            "what": self.comparison.class.key(),
            "hook": self.comparison.hook,
            "then": then.map_or(Outcome::None, |then| then.outcome).as_str(),
            "now": now.map_or(Outcome::None, |now| now.outcome).as_str(),
            "reason_then": answer_then.and_then(words),
            "reason_now": answer_now.and_then(words),
            "answer_then": answer_then,
            "answer_now": answer_now,
            "why": self.comparison.why,
            "notes": self.comparison.notes,
        })
    }
}

/// What an answer says to whoever reads it, whichever dialect it is in.
fn words(answer: &Value) -> Option<&str> {
    let specific = &answer["hookSpecificOutput"];
    let places = [
        &answer["reason"],
        &answer["message"],
        &answer["stopReason"],
        &answer["context"],
        &specific["additionalContext"],
        &answer["systemMessage"],
    ];
    places.into_iter().find_map(Value::as_str)
}
