//! A command, run on a made-up event: does it answer in words that are understood, and how fast?

use hookbus::decide::{Agreeable, Hooks};
use hookbus::event::{Agent, Kind, event_names, kind_of};

use super::super::{made_up, trial};
use super::finding::Finding;
use super::mend;

/// A hook that takes longer than this is felt.
pub(super) const SLOW_MS: f64 = 1000.0;

/// What becomes of it.
pub(super) fn tried(entry: &Agreeable, hooks: &Hooks, about: String) -> Finding {
    let Some((agent, name)) = an_event_for(&entry.event) else { return Finding::well(about) };
    let event = made_up::tried(agent, &name);
    let alone = hooks.alone(entry);
    let Ok(Some(decision)) = trial::put(&event, (&alone).into()) else {
        return Finding::well(about);
    };
    let row = decision.to_json();
    let Some(verdict) = row["verdicts"].get(0) else { return Finding::well(about) };
    if let Some(failure) = verdict["failure"].as_str() {
        let (exit, agent) = (verdict["exit"].as_i64(), agent.as_str());
        let way = mend::command(failure, exit, &format!("{name} --agent {agent}"));
        return Finding::bad(about, format!("tried with a made-up {name}: {failure}; {way}"));
    }
    let took = verdict["ms"].as_f64().unwrap_or_default();
    if took > SLOW_MS {
        let slow = format!("it took {took:.0} ms for a made-up event, which the agent waits for");
        return Finding::bad(about, format!("{slow}; make it quicker, or `mode: observe`"));
    }
    Finding::well(format!("{about}: answered a made-up event in {took:.0} ms"))
}

/// An event that a key stands for.
fn an_event_for(key: &str) -> Option<(Agent, String)> {
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
