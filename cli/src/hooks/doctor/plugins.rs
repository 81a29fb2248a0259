//! The plugins of an entry: each is loaded, and tried with an event of every kind that it listens to and can
//! answer. What it does elsewhere it does for good, so that is left to `hookbus hooks test`.

use std::path::Path;
use std::time::Duration;

use hookbus::decide::{Agreeable, Ailment, Attempt, Checkup, Exam, Hooks, did_you_mean};
use hookbus::event::{Agent, event_names};

use super::super::{here, made_up};
use super::commands::SLOW_MS;
use super::finding::Finding;
use super::mend;

/// What is found; none where the entry has no plugins.
pub(super) fn look(entry: &Agreeable, hooks: &Hooks) -> Option<Vec<Finding>> {
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
        return Some(vec![on_nobodys_behalf(entry, &checkups)]);
    }
    let of_one = |checkup: &Checkup| {
        let whose = if alone { String::new() } else { format!(" ({})", checkup.plugin) };
        let about = format!("{}{whose} on {}", entry.hook, entry.event);
        let wrong = wrong_with(checkup, &log, alone);
        match wrong.as_slice() {
            [] => vec![Finding::well(in_short(&about, checkup))],
            [..] => wrong.iter().map(|wrong| Finding::bad(about.clone(), wrong)).collect(),
        }
    };
    Some(checkups.iter().flat_map(of_one).collect())
}

/// All of them are well, and none hears anything.
fn on_nobodys_behalf(entry: &Agreeable, checkups: &[Checkup]) -> Finding {
    let mut names: Vec<&str> =
        checkups.iter().flat_map(|it| it.listens.iter().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let wrong = format!(
        "nothing here listens to {}, only to {}; put it under one of those, or under `'*'`",
        entry.event,
        names.join(", ")
    );
    Finding::bad(format!("{} on {}", entry.hook, entry.event), wrong)
}

fn wrong_with(checkup: &Checkup, log: &Path, alone: bool) -> Vec<String> {
    let log = log.display().to_string();
    let with_way = |why: &str, way: Option<String>| match way {
        Some(way) => format!("{why}; {way}"),
        None => why.to_owned(),
    };
    if let Some(ailment) = &checkup.ailment {
        return vec![with_way(ailment.why(), mend::plugin(ailment, &log))];
    }
    if checkup.listens.is_empty() {
        let way = if alone { "take this entry out" } else { "take it out of `plugins: enabled:`" };
        return vec![format!(
            "it registers no hook, so nothing of it ever runs here; {way}, or register one in its code"
        )];
    }
    let mut wrong: Vec<String> = checkup.listens.iter().filter_map(|name| unknown(name)).collect();
    for (ailment, events) in failures(&checkup.attempts) {
        let why = format!("tried with a made-up {}: {}", events.join(", "), ailment.why());
        wrong.push(with_way(&why, mend::plugin(ailment, &log)));
    }
    let slow = checkup.attempts.iter().filter(|it| it.ailment.is_none());
    let slow = slow.max_by_key(|it| it.took).filter(|it| ms(it.took) > SLOW_MS);
    wrong.extend(slow.map(|it| {
        format!(
            "it took {:.0} ms for a made-up {}, which the agent waits for; make it quicker, or `mode: observe`",
            ms(it.took),
            it.event
        )
    }));
    wrong
}

/// What failed in the same way, with where.
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

/// A name that nobody sends, where a known one is near.
fn unknown(name: &str) -> Option<String> {
    if name.contains('*') || event_names(Agent::Hermes).any(|known| known == name) {
        return None;
    }
    let known = event_names(Agent::Hermes).filter(|known| !known.contains('*'));
    let near = did_you_mean(name, known).filter(|_| !name.starts_with("command:"))?;
    Some(format!("it listens to `{name}`, which Hermes never sends; did you mean `{near}`?"))
}

fn in_short(about: &str, checkup: &Checkup) -> String {
    let Checkup { listens, hears, attempts, .. } = checkup;
    let Some(slowest) = attempts.iter().map(|attempt| attempt.took).max() else {
        return format!("{about}: loaded, listens to {}", listens.join(", "));
    };
    let events: Vec<&str> = attempts.iter().map(|attempt| attempt.event.as_str()).collect();
    let untried = hears.iter().map(String::as_str).filter(|name| !events.contains(name));
    let untried: Vec<&str> = untried.collect();
    let more = match untried.as_slice() {
        [] => String::new(),
        [..] => format!("; it looks on at {}", untried.join(", ")),
    };
    format!("{about}: answered a made-up {} in {:.0} ms{more}", events.join(", "), ms(slowest))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
