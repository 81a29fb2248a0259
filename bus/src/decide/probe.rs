//! Calling plugins about sample events, for the doctor and `hooks test`: all plugins of one entry, and those
//! of a plan at an event where no answer is possible.

use std::time::Duration;

use super::plan::Plan;
use super::run::{HookResult, record};
use crate::active::ActiveHooks;
use crate::caller::Caller;
use crate::config::{Action, Hook, Mode, Python, PythonLaunch};
use crate::consent::ApprovalItem;
use crate::dialect::{Capabilities, dialect_of};
use crate::event::{Event, Verdict, VerdictRecord};
use crate::plugins::{NothingLoaded, ProbeEvents, ProbeReport, ProbeScope, ProbeSettings, probe};

/// Probes the plugins of `item`, which the user approved: each is loaded, and called about the events that
/// its entry covers and where an answer is possible.
pub async fn probe_entry(
    active: &ActiveHooks,
    item: &ApprovalItem,
    events: &ProbeEvents<'_>,
    caller: &Caller,
) -> Vec<ProbeReport> {
    let Some((hook, python)) = active.hook_of(item).and_then(python_of) else {
        return Vec::new();
    };
    let is_for = |event: &Event| {
        hook.on.covers(event) && hook.agent.is_none_or(|agent| agent == event.agent)
    };
    let covered = |subscriptions: &[String]| {
        (events.events)(subscriptions).into_iter().filter(is_for).collect::<Vec<Event>>()
    };
    let events = ProbeEvents { start: events.start, events: &covered };
    let scope = match hook.mode {
        Mode::Decide | Mode::Shadow => ProbeScope::Answerable,
        Mode::Observe => ProbeScope::None,
    };
    probe_plugins(active, python, &events, caller, scope).await
}

/// Notifies the plugins of a plan of an event where no answer is possible, and takes them out of the plan, so
/// that they are not called again with the rest of it.
pub async fn notify_for_test<'a>(
    plan: &mut Plan<'a>,
    event: &Event,
    caller: &Caller,
) -> Vec<HookResult<'a>> {
    let mut results = Vec::new();
    if dialect_of(event.agent).capabilities(event) != Capabilities::NONE {
        return results;
    }
    let events = ProbeEvents { start: event, events: &|_: &[String]| vec![event.clone()] };
    for (hook, python) in plan.hooks().filter_map(python_of).collect::<Vec<_>>() {
        let active = plan.active(hook);
        let own = active.approvals.store().hook_caller(caller, hook.pass_env());
        let folder = own.resolve(&python.folder, &active.file.base);
        let refused = active.approvals.refusal(hook, caller, python.timeout).await.is_some();
        if refused || NothingLoaded::find(&folder, &active.file.plugins).is_some() {
            continue;
        }
        let reports = probe_plugins(active, python, &events, caller, ProbeScope::All).await;
        let is_single = reports.len() == 1;
        let records = reports.into_iter().filter_map(|it| notified(hook, it, is_single));
        results.extend(records.map(|record| HookResult::new(hook, record)));
        plan.leave_out(&[hook]);
    }
    results
}

/// None for a plugin without a callback for the event.
fn notified(hook: &Hook, report: ProbeReport, is_single: bool) -> Option<VerdictRecord> {
    let ProbeReport { plugin, fault, calls, .. } = report;
    let call = calls.into_iter().next();
    let took = call.as_ref().map_or(Duration::ZERO, |call| call.took);
    if fault.is_none() && call.is_none() {
        return None;
    }
    let fault = fault.or_else(|| call.and_then(|call| call.fault));
    let failure = fault.map(|fault| fault.why().to_owned());
    let name = if is_single { hook.name.clone() } else { format!("{} ({plugin})", hook.name) };
    let record = record(hook, Verdict::silent(), failure, took);
    // A failure here never blocks: no answer is possible.
    Some(VerdictRecord { hook: name, verdict: Verdict::silent(), ..record })
}

async fn probe_plugins(
    active: &ActiveHooks,
    python: &Python,
    events: &ProbeEvents<'_>,
    caller: &Caller,
    scope: ProbeScope,
) -> Vec<ProbeReport> {
    let caller = &active.approvals.store().hook_caller(caller, &python.launch.pass_env);
    let folder = caller.resolve(&python.folder, &active.file.base);
    let interpreter = caller.expand_home(&python.launch.interpreter);
    let launch = PythonLaunch { interpreter, ..python.launch.clone() };
    let settings = ProbeSettings { caller, timeout: python.timeout, scope };
    probe(&folder, active.plugin_selection(), &launch, events, &settings).await
}

fn python_of(hook: &Hook) -> Option<(&Hook, &Python)> {
    let Action::Python(python) = &hook.action else { return None };
    Some((hook, python))
}
