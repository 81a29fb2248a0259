//! Checks the plugins of an entry: loads each one, and calls it with a sample of every event that it listens to and can
//! answer. Other events may have effects outside, so they are left to `hookbus hooks test`.

use std::path::Path;
use std::time::Duration;

use hookbus::decide::{Agreeable, Ailment, Attempt, Checkup, Exam, Hooks, did_you_mean};
use hookbus::event::{Agent, event_names};

use super::super::{here, made_up};
use super::advice;
use super::commands::SLOW_MS;
use super::finding::Finding;

/// Checks them; none if the entry has no plugins.
pub(super) fn check(entry: &Agreeable, hooks: &Hooks) -> Option<Vec<Finding>> {
    let start = made_up::tried(Agent::Hermes, "on_session_start");
    let exam = Exam { start: &start, events: &made_up::day };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let checkups = runtime.block_on(hooks.check_plugins(entry, &exam, &here()));
    if checkups.is_empty() {
        return None;
    }
    let log = hooks.plugins_log();
    let alone = checkups.len() == 1;
    let listens = checkups.iter().any(|it| !it.listens.is_empty());
    if listens && checkups.iter().all(|it| it.ailment.is_none() && it.hears.is_empty()) {
        return Some(vec![listens_elsewhere(entry, &checkups)]);
    }
    let of_one = |checkup: &Checkup| {
        let plugin = if alone { String::new() } else { format!(" ({})", checkup.plugin) };
        let about = format!("{}{plugin} on {}", entry.hook, entry.event);
        let wrong = wrong_with(checkup, &log, alone);
        match wrong.as_slice() {
            [] => vec![Finding::ok(summary(&about, checkup))],
            [..] => wrong.iter().map(|wrong| Finding::bad(about.clone(), wrong)).collect(),
        }
    };
    Some(checkups.iter().flat_map(of_one).collect())
}

/// All of them work, and none listens to the entry's event.
fn listens_elsewhere(entry: &Agreeable, checkups: &[Checkup]) -> Finding {
    let mut names: Vec<&str> =
        checkups.iter().flat_map(|it| it.listens.iter().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let wrong = format!(
        "it does not listen to {}, only to {}; put it under one of those, or under `'*'`",
        entry.event,
        names.join(", ")
    );
    Finding::bad(format!("{} on {}", entry.hook, entry.event), wrong)
}

fn wrong_with(checkup: &Checkup, log: &Path, alone: bool) -> Vec<String> {
    let log = log.display().to_string();
    let with_advice = |why: &str, ailment: &Ailment| match advice::for_plugin(ailment, &log) {
        Some(advice) => format!("{why}; {advice}"),
        None => why.to_owned(),
    };
    if let Some(ailment) = &checkup.ailment {
        return vec![with_advice(ailment.why(), ailment)];
    }
    if checkup.listens.is_empty() {
        let advice = if alone { "remove this entry" } else { "remove it from `plugins: enabled:`" };
        return vec![format!(
            "it registers no hook, so it never runs here; {advice}, or register a hook in its code"
        )];
    }
    let mut wrong: Vec<String> = checkup.listens.iter().filter_map(|name| unknown(name)).collect();
    for (ailment, events) in failures(&checkup.attempts) {
        let why = format!("with a sample {}: {}", events.join(", "), ailment.why());
        wrong.push(with_advice(&why, ailment));
    }
    let slow = checkup.attempts.iter().filter(|it| it.ailment.is_none());
    let slow = slow.max_by_key(|it| it.took).filter(|it| ms(it.took) > SLOW_MS);
    wrong.extend(slow.map(|it| {
        format!(
            "it took {:.0} ms for a sample {}, and the agent waits for it; make it faster, or use `mode: observe`",
            ms(it.took),
            it.event
        )
    }));
    wrong
}

/// Each failure, with the events that failed in this way.
fn failures(attempts: &[Attempt]) -> Vec<(&Ailment, Vec<&str>)> {
    let mut all: Vec<(&Ailment, Vec<&str>)> = Vec::new();
    for attempt in attempts {
        let Some(ailment) = &attempt.ailment else { continue };
        match all.iter_mut().find(|(known, _)| *known == ailment) {
            Some((_, events)) => events.push(&attempt.event),
            None => all.push((ailment, vec![&attempt.event])),
        }
    }
    all
}

/// An event that Hermes never sends, with a similar one that it does.
fn unknown(name: &str) -> Option<String> {
    if name.contains('*') || event_names(Agent::Hermes).any(|known| known == name) {
        return None;
    }
    let known = event_names(Agent::Hermes).filter(|known| !known.contains('*'));
    let similar = did_you_mean(name, known).filter(|_| !name.starts_with("command:"))?;
    Some(format!("it listens to `{name}`, which Hermes never sends; did you mean `{similar}`?"))
}

fn summary(about: &str, checkup: &Checkup) -> String {
    let Checkup { listens, hears, attempts, .. } = checkup;
    let Some(slowest) = attempts.iter().map(|attempt| attempt.took).max() else {
        return format!("{about}: loaded, listens to {}", listens.join(", "));
    };
    let events: Vec<&str> = attempts.iter().map(|attempt| attempt.event.as_str()).collect();
    let untried = hears.iter().map(String::as_str).filter(|name| !events.contains(name));
    let untried: Vec<&str> = untried.collect();
    let more = match untried.as_slice() {
        [] => String::new(),
        [..] => format!("; it only observes {}", untried.join(", ")),
    };
    format!("{about}: answered a sample {} in {:.0} ms{more}", events.join(", "), ms(slowest))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
