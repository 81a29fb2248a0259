//! What each hook in force makes of an event, also those that do not match, and why. For people who ask; nothing runs.

use serde_json::{Value, json};

use crate::active::HookSets;
use crate::config::{Action, Hook, HookSummary, NotFor};
use crate::rule::{Facts, RuleReport};

/// One hook at one event.
#[derive(Debug)]
pub struct HookReport<'a> {
    /// The hook.
    pub hook: &'a Hook,
    /// Why it is not for the event, if so.
    pub not_for: Option<NotFor>,
    /// What its conditions see, if it is a rule for this event.
    pub rule: Option<RuleReport>,
}

/// What the hooks that can answer make of an event, in their order.
pub fn explain_hooks<'a>(sets: &'a HookSets, facts: &Facts<'_>) -> Vec<HookReport<'a>> {
    let report = |hook: &'a Hook| {
        let not_for = hook.not_for(facts.event);
        let rule = match (&hook.action, not_for) {
            (Action::Rule(rule), None) => Some(rule.explain(facts)),
            _ => None,
        };
        HookReport { hook, not_for, rule }
    };
    sets.hooks().filter(|hook| hook.is_asked()).map(report).collect()
}

impl HookReport<'_> {
    /// Whether it is asked and, if it is a rule, applies. None if that cannot be told.
    pub fn matches(&self) -> Option<bool> {
        match (self.not_for, &self.rule) {
            (Some(_), _) => Some(false),
            (None, Some(rule)) => rule.applies,
            (None, None) => Some(true),
        }
    }

    /// Why it does not match, in one sentence; none if it does.
    pub fn why_not(&self) -> Option<String> {
        if let Some(not_for) = self.not_for {
            return Some(self.hook.describe_not_for(not_for));
        }
        let rule = self.rule.as_ref().filter(|rule| rule.applies != Some(true))?;
        Some(match (&rule.failure, rule.obstacle()) {
            (Some(failure), _) => failure.clone(),
            (None, Some(obstacle)) => obstacle.to_string(),
            (None, None) => "each condition holds, but not for the same program or file".to_owned(),
        })
    }

    /// As `--json` prints it.
    pub fn to_json(&self) -> Value {
        let HookSummary { name, event, action, mode, line, pack, .. } = self.hook.summary();
        json!({
            "hook": name,
            "event": event,
            "action": action,
            "mode": mode,
            "line": line,
            "pack": pack,
            "project": self.hook.of_project,
            "matches": self.matches(),
            "why_not": self.why_not(),
            "rule": self.rule.as_ref().map(RuleReport::to_json),
        })
    }
}
