//! Checks the plugins of an entry: loads each one, and calls it with a sample of every event that it listens to and can
//! answer. Other events may have effects outside, so they are left to `hookbus hooks test`.

use std::path::Path;
use std::time::Duration;

use hookbus::active::ActiveHooks;
use hookbus::config::did_you_mean;
use hookbus::consent::ApprovalItem;
use hookbus::decide::probe_entry;
use hookbus::dialect::event_names;
use hookbus::event::Agent;
use hookbus::plugins::{PluginFault, ProbeCall, ProbeEvents, ProbeReport};

use super::super::{current_caller, sample_events};
use super::advice;
use super::commands::SLOW_MS;
use super::finding::Finding;

/// Checks them; none if the entry has no plugins.
pub(super) fn check(entry: &ApprovalItem, active: &ActiveHooks) -> Option<Vec<Finding>> {
    let start = sample_events::over_bridge(Agent::Hermes, "on_session_start");
    let events = ProbeEvents { start: &start, events: &sample_events::for_patterns };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let reports = runtime.block_on(probe_entry(active, entry, &events, &current_caller()));
    if reports.is_empty() {
        return None;
    }
    let log = active.plugin_log();
    let is_single = reports.len() == 1;
    let subscribes = reports.iter().any(|it| !it.subscriptions.is_empty());
    if subscribes && reports.iter().all(|it| it.fault.is_none() && it.covered.is_empty()) {
        return Some(vec![subscribes_elsewhere(entry, &reports)]);
    }
    let of_one = |report: &ProbeReport| {
        let plugin = if is_single { String::new() } else { format!(" ({})", report.plugin) };
        let about = format!("{}{plugin} on {}", entry.hook, entry.event);
        let wrong = wrong_with(report, &log, is_single);
        match wrong.as_slice() {
            [] => vec![Finding::ok(summary(&about, report))],
            [..] => wrong.iter().map(|wrong| Finding::bad(about.clone(), wrong)).collect(),
        }
    };
    Some(reports.iter().flat_map(of_one).collect())
}

/// All of them work, and none listens to the entry's event.
fn subscribes_elsewhere(entry: &ApprovalItem, reports: &[ProbeReport]) -> Finding {
    let mut names: Vec<&str> =
        reports.iter().flat_map(|it| it.subscriptions.iter().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let wrong = format!(
        "it does not listen to {}, only to {}; put it under one of those, or under `'*'`",
        entry.event,
        names.join(", ")
    );
    Finding::bad(format!("{} on {}", entry.hook, entry.event), wrong)
}

fn wrong_with(report: &ProbeReport, log: &Path, is_single: bool) -> Vec<String> {
    let log = log.display().to_string();
    let with_advice = |why: &str, fault: &PluginFault| match advice::for_plugin(fault, &log) {
        Some(advice) => format!("{why}; {advice}"),
        None => why.to_owned(),
    };
    if let Some(fault) = &report.fault {
        return vec![with_advice(fault.why(), fault)];
    }
    if report.subscriptions.is_empty() {
        let advice =
            if is_single { "remove this entry" } else { "remove it from `plugins: enabled:`" };
        return vec![format!(
            "it registers no hook, so it never runs here; {advice}, or register a hook in its code"
        )];
    }
    let mut wrong: Vec<String> =
        report.subscriptions.iter().filter_map(|name| unknown(name)).collect();
    for (fault, events) in failures(&report.calls) {
        let why = format!("with a sample {}: {}", events.join(", "), fault.why());
        wrong.push(with_advice(&why, fault));
    }
    let slow = report.calls.iter().filter(|it| it.fault.is_none());
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
fn failures(calls: &[ProbeCall]) -> Vec<(&PluginFault, Vec<&str>)> {
    let mut all: Vec<(&PluginFault, Vec<&str>)> = Vec::new();
    for call in calls {
        let Some(fault) = &call.fault else { continue };
        match all.iter_mut().find(|(known, _)| *known == fault) {
            Some((_, events)) => events.push(&call.event),
            None => all.push((fault, vec![&call.event])),
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

fn summary(about: &str, report: &ProbeReport) -> String {
    let ProbeReport { subscriptions, covered, calls, .. } = report;
    let Some(slowest) = calls.iter().map(|call| call.took).max() else {
        return format!("{about}: loaded, listens to {}", subscriptions.join(", "));
    };
    let events: Vec<&str> = calls.iter().map(|call| call.event.as_str()).collect();
    let untried = covered.iter().map(String::as_str).filter(|name| !events.contains(name));
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
