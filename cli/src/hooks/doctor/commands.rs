//! Checks a command: runs it with a sample event, and looks at its answer and its time.

use std::sync::Arc;

use hookbus::active::{ActiveHooks, HookSets};
use hookbus::consent::ApprovalItem;
use hookbus::dialect::{event_names, kind_of};
use hookbus::event::{Agent, Kind};

use super::super::{hooks_test, sample_events};
use super::advice;
use super::finding::Finding;

/// A hook that takes longer than this delays its agent noticeably.
pub(super) const SLOW_MS: f64 = 1000.0;

/// Runs the command of an entry, the only one in `active`.
pub(super) fn check(entry: &ApprovalItem, active: ActiveHooks, about: String) -> Finding {
    let Some((agent, name)) = sample_event_for(&entry.event) else { return Finding::ok(about) };
    let event = sample_events::over_bridge(agent, &name);
    let sets = HookSets::own(Arc::new(active));
    let Ok(Some(decision)) = hooks_test::run_hooks(&event, &sets) else {
        return Finding::ok(about);
    };
    let Some(verdict) = decision.verdicts.first() else { return Finding::ok(about) };
    if let Some(failure) = &verdict.failure {
        let test = format!("{name} --agent {agent}");
        let advice = advice::for_command(failure, verdict.exit, &test);
        return Finding::bad(about, format!("with a sample {name}: {failure}; {advice}"));
    }
    let took = verdict.took.as_secs_f64() * 1000.0;
    if took > SLOW_MS {
        let slow = format!("it took {took:.0} ms for a sample event, and the agent waits for it");
        return Finding::bad(about, format!("{slow}; make it faster, or use `mode: observe`"));
    }
    Finding::ok(format!("{about}: answered a sample event in {took:.0} ms"))
}

/// An event that a hook under this key runs on.
fn sample_event_for(key: &str) -> Option<(Agent, String)> {
    let known = |agent: Agent, name: &str| kind_of(agent, name) != Kind::Other;
    for agent in [Agent::Hermes, Agent::Gemini] {
        if known(agent, key) && !key.contains('*') {
            return Some((agent, key.to_owned()));
        }
        let mut names = event_names(agent).filter(|name| !name.contains('*'));
        if let Some(name) =
            names.find(|name| Kind::parse(key).is_some_and(|kind| kind_of(agent, name) == kind))
        {
            return Some((agent, name.to_owned()));
        }
    }
    (key == "*" || key == "tool.*").then(|| (Agent::Hermes, "pre_tool_call".to_owned()))
}
