//! Verdicts of rules about calls that repeat. Agents run the same few commands again and again, and reading a shell line
//! and comparing it with a hundred rules takes longer than everything else in a replay.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use hookbus::active::HookSets;
use hookbus::config::Action;
use hookbus::decide::{HookResult, Plan, run_rules};
use hookbus::event::VerdictRecord;
use hookbus::rule::{Facts, hash_call};

/// Then it starts anew, so that it stays small.
const MOST_CALLS: usize = 50_000;

/// A call, hashed twice with keys that nobody knows: a payload cannot be made to look like another one.
type CallKey = [u64; 2];

/// The verdicts about calls that were replayed before.
#[derive(Debug, Default)]
pub(crate) struct RuleMemory {
    keys: [RandomState; 2],
    /// The hooks that the rest is about.
    hooks: Option<HookSets>,
    /// By the addresses of the hooks of a plan: whether all of them are rules about nothing but the call.
    plans: HashMap<u64, bool>,
    /// The verdicts, with the indexes of their hooks in the plan.
    calls: HashMap<CallKey, Vec<(usize, VerdictRecord)>>,
}

impl RuleMemory {
    /// The results of the rules of `plan`, which was made from `hooks`.
    pub(crate) fn run<'h>(
        &mut self,
        plan: &Plan<'h>,
        hooks: &HookSets,
        facts: &Facts<'_>,
    ) -> Vec<HookResult<'h>> {
        let run = || run_rules(plan, facts, Duration::MAX);
        let Some(key) = self.key(plan, hooks, facts) else { return run() };
        if let Some(known) = self.calls.get(&key) {
            let of = |(index, record): &(usize, VerdictRecord)| {
                Some(HookResult::new(plan.hooks().nth(*index)?, record.clone()))
            };
            return known.iter().filter_map(of).collect();
        }
        let results = run();
        let index_of = |result: &HookResult<'h>| {
            let hook = result.hook()?;
            plan.hooks().position(|other| std::ptr::eq(other, hook))
        };
        let indexed = results.iter().map(|it| Some((index_of(it)?, it.record().clone())));
        if let Some(indexed) = indexed.collect() {
            if self.calls.len() >= MOST_CALLS {
                self.calls.clear();
            }
            self.calls.insert(key, indexed);
        }
        results
    }

    /// The key of a call; none if the rules may look at more than that.
    fn key(&mut self, plan: &Plan<'_>, hooks: &HookSets, facts: &Facts<'_>) -> Option<CallKey> {
        if plan.is_sequential() {
            return None;
        }
        // Addresses say which hooks are meant only as long as these hooks are kept.
        if !self.hooks.as_ref().is_some_and(|known| are_same(known, hooks)) {
            self.hooks = Some(hooks.clone());
            self.plans.clear();
            self.calls.clear();
        }
        let [first, second] = &self.keys;
        let mut state = first.build_hasher();
        plan.hooks().for_each(|hook| std::ptr::hash(hook, &mut state));
        let addresses = state.finish();
        let is_about_the_call = self.plans.entry(addresses).or_insert_with(|| {
            plan.hooks().all(|hook| match &hook.action {
                Action::Rule(rule) => rule.is_about_the_call_alone(),
                Action::Command(_)
                | Action::Python(_)
                | Action::Webhook(_)
                | Action::Archive(_)
                | Action::Analytics(_)
                | Action::Broken(_)
                | Action::Unapproved { .. } => false,
            })
        });
        if !*is_about_the_call {
            return None;
        }
        let mut call = TwoHashers(first.build_hasher(), second.build_hasher());
        addresses.hash(&mut call);
        hash_call(facts.event, facts.place, &mut call).then(|| [call.0.finish(), call.1.finish()])
    }
}

fn are_same(one: &HookSets, other: &HookSets) -> bool {
    Arc::ptr_eq(&one.own, &other.own)
        && match (&one.project, &other.project) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
}

/// Hashes with two keys in one pass.
struct TwoHashers<H>(H, H);

impl<H: Hasher> Hasher for TwoHashers<H> {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.1.write(bytes);
    }
}
