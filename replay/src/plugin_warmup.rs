//! Rebuilds the state of plugins: passes them the events that they had received, in log order, and restarts
//! them at the events where the recorded process was started. Says what of that state is unknown.

use hookbus::config::Hook;
use hookbus::decide::replay::ReplayEnvironment;
use hookbus::decide::{Plan, plan};
use hookbus::event::{Event, PluginHistory};
use hookbus::log::RecordedEvent;

use crate::command_runner::CommandRunner;
use crate::replay_hooks::ReplayHooks;
use crate::unapproved::skip_unapproved;
use hookbus::event::RecordedDecision;

/// What the log says about the decision on an event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KnownDecision<'a> {
    /// This decision, or that there was none.
    Known(Option<&'a RecordedDecision>),
    /// The decision is missing or unreadable.
    Unknown,
}

/// Passes an event to the plugins that had received it, without a new decision.
pub(crate) fn notify_plugins(
    runner: &CommandRunner<'_>,
    hooks: &ReplayHooks,
    event: &Event,
    row: &RecordedEvent,
    decision: KnownDecision<'_>,
) {
    let recorded = match decision {
        KnownDecision::Known(decision) => decision,
        KnownDecision::Unknown => None,
    };
    let hash = recorded.and_then(|decision| decision.hooks.as_deref());
    let Ok(sets) = hooks.for_event(row, hash) else { return };
    let mut plan = plan(event, &sets);
    drop(skip_unapproved(&mut plan, hooks, row, recorded));
    hooks.leave_out_refused(&mut plan, row);
    if matches!(decision, KnownDecision::Unknown) {
        skip_project(&mut plan);
    }
    if plan.has_plugins() {
        runner.notify_plugins(&plan, event, row);
    }
}

/// Without the decision it is unknown whether the user had approved a project's hooks.
fn skip_project(plan: &mut Plan<'_>) {
    let of_project: Vec<&Hook> = plan.hooks().filter(|hook| hook.of_project).collect();
    plan.leave_out(&of_project);
}

/// Why the state of a plugin may differ from the recorded one: compares the `recorded` state with the
/// `replayed` one.
pub(crate) fn unknown_state(
    environment: &ReplayEnvironment,
    [recorded, replayed]: [Option<PluginHistory>; 2],
    same_hooks: bool,
) -> Option<String> {
    let Some(recorded) = recorded else {
        return Some("the log does not say how many events it had received".to_owned());
    };
    if !environment.has_passed(recorded.since) {
        return Some("it had received events that are not in this log".to_owned());
    }
    let replayed = replayed.filter(|it| same_hooks && it.events != recorded.events)?;
    Some(format!(
        "it had received {} then and {} now, because some were concurrent or late",
        events(recorded.events),
        events(replayed.events)
    ))
}

fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}
