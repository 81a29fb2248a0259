//! Calling the plugins of a hook: all plugins of a directory at once, each in its own process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::background::InFlight;
use super::plan::failure_policy;
use super::run::{HookRun, blocking_by_default, failed, policy_for_refusal, record};
use crate::config::{Action, Hook, Python, PythonLaunch, Refusal};
use crate::dialect::{Capabilities, dialect_of};
use crate::event::{Event, OnFailure, VerdictRecord};
use crate::plugins::{
    self, BACKING_OFF, CallContext, CallTimeout, NothingLoaded, PluginAnswer, PluginInstance,
    nothing_loaded,
};

/// One record per plugin with a callback for the event, in the name of `hook`. `approved` is the entry
/// that the user approved.
pub(super) async fn call_plugins(
    run: &HookRun<'_, '_>,
    hook: &Hook,
    approved: &Hook,
    event: &Event,
) -> Vec<VerdictRecord> {
    let Action::Python(python) = &approved.action else { return Vec::new() };
    let active = run.plan.active(hook);
    let (folder, launch) = plugin_folder(run, hook, python);
    let limit = python.timeout.min(run.time_left());
    let (pool, selection) = match run.replay {
        Some(replay) => {
            let selection = active.plugin_selection_in(replay.sandbox.log_folder());
            (replay.plugins.pool(run.bus), selection)
        }
        None => (Arc::clone(&active.plugins), active.plugin_selection()),
    };
    let Some(plugins) = pool.plugins(&folder, selection, &launch, limit).await else {
        let why = format!("{} could not be read in time", folder.display());
        return vec![failed(hook, why, limit)];
    };
    if plugins.is_empty() {
        return report_nothing_loaded(run, hook, folder, limit).await.into_iter().collect();
    }
    let is_single = plugins.len() == 1;
    restart_where_recorded(run, hook, &plugins).await;
    let context = &call_context(run, approved);
    if dialect_of(event.agent).capabilities(event) == Capabilities::NONE {
        notify_plugins(run, &plugins, python, event, context).await;
        return Vec::new();
    }
    if event.is_partial() {
        let why = "the payload is too large, or nested too deep, for a plugin".to_owned();
        return vec![failed(&blocking_by_default(hook), why, Duration::ZERO)];
    }
    let calls = plugins.iter().map(|plugin| async move {
        let started = Instant::now();
        let answer = plugins::call(plugin, event, context, timeout(run, python)).await?;
        if let Some(refusal) = answer.refusal {
            return Some(Err(refusal));
        }
        // Missing variables are reported once, unless they block.
        if answer.repeated && failure_policy(hook) == OnFailure::Allow {
            return None;
        }
        let PluginAnswer { verdict, failure, hash, history, short, .. } = answer;
        let record = if short {
            run.note_shortage(hook);
            record(&blocking_by_default(hook), verdict, failure, started.elapsed())
        } else {
            record(hook, verdict, failure, started.elapsed())
        };
        let name = recorded_name(hook, plugin, is_single);
        Some(Ok(VerdictRecord { script: hash, history, hook: name, ..record }))
    });
    let records: Result<Vec<VerdictRecord>, Refusal> =
        join_all(calls).await.into_iter().flatten().collect();
    // An approval is for a directory as a whole.
    records.unwrap_or_else(|refusal| {
        vec![run.refused(&policy_for_refusal(hook, &refusal, event), refusal)]
    })
}

/// A directory that loads no plugin is a failure, because its guard is missing, unless the user disabled it.
/// Reported every time if `on_failure` is `block`; otherwise once, and never in a replay.
async fn report_nothing_loaded(
    run: &HookRun<'_, '_>,
    hook: &Hook,
    folder: PathBuf,
    limit: Duration,
) -> Option<VerdictRecord> {
    let fail = |why: String| Some(failed(hook, why, Duration::ZERO));
    if !folder.is_dir() {
        return fail(NothingLoaded::NoFolder.describe(&folder));
    }
    let active = run.plan.active(hook);
    let blocks = failure_policy(hook) == OnFailure::Block;
    if !blocks && (run.replay.is_some() || active.plugins.mark_empty_reported(&folder)) {
        return None;
    }
    let (file, path, caller) = (active.file.clone(), folder.clone(), run.caller(hook));
    let finding = tokio::task::spawn_blocking(move || nothing_loaded(&file, &path, &caller));
    match tokio::time::timeout(limit, finding).await {
        Ok(Ok(None | Some(NothingLoaded::Disabled(_)))) => None,
        Ok(Ok(Some(NothingLoaded::NotEnabled(_) | NothingLoaded::Missing(_)))) if !blocks => None,
        Ok(Ok(Some(why))) => fail(why.describe(&folder)),
        Ok(Err(_)) | Err(_) => fail(format!("{} could not be read in time", folder.display())),
    }
}

/// Where the plugins of an entry are, and what they are started with.
fn plugin_folder(run: &HookRun<'_, '_>, hook: &Hook, python: &Python) -> (PathBuf, PythonLaunch) {
    let (base, caller) = (&run.plan.active(hook).file.base, run.caller(hook));
    let interpreter = caller.expand_home(&python.launch.interpreter);
    let launch = PythonLaunch { interpreter, ..python.launch.clone() };
    (caller.resolve(&python.folder, base), launch)
}

/// Ends the plugins of an entry, because it is not approved any more.
pub(super) fn end_plugins(run: &HookRun<'_, '_>, hook: &Hook, python: &Python) {
    if run.replay.is_none() {
        run.plan.active(hook).plugins.end(&plugin_folder(run, hook, python));
    }
}

/// How long a plugin may take, and how long the caller waits for it. In a replay the two are the same.
fn timeout(run: &HookRun<'_, '_>, python: &Python) -> CallTimeout {
    match run.replay {
        Some(_) => CallTimeout::full(python.timeout.min(run.time_left())),
        None => CallTimeout::new(python.timeout, run.time_left()),
    }
}

/// In a replay: restarts each plugin at the events where the recorded process restarted.
async fn restart_where_recorded(
    run: &HookRun<'_, '_>,
    hook: &Hook,
    plugins: &[Arc<PluginInstance>],
) {
    let Some(replay) = run.replay else { return };
    for plugin in plugins {
        let name = recorded_name(hook, plugin, plugins.len() == 1);
        if replay.plugins.take_restart(run.bus, &name, &plugin.hash()) {
            plugin.restart().await;
        }
    }
}

/// Notifies plugins of an event where no answer is possible. In the daemon the agent does not wait, because
/// each plugin has a queue. A client without a daemon has to wait, or the plugins would end with it. A replay
/// waits too, because the next event may depend on it.
async fn notify_plugins(
    run: &HookRun<'_, '_>,
    plugins: &[Arc<PluginInstance>],
    python: &Python,
    event: &Event,
    context: &CallContext,
) {
    let in_client = run.agent.pid == Some(std::process::id());
    if in_client || run.replay.is_some() {
        let timeout = match run.replay {
            Some(_) => timeout(run, python),
            None => CallTimeout::full(python.timeout),
        };
        let calls = plugins.iter().map(|plugin| async {
            let answer = plugins::call(plugin, event, context, timeout).await;
            warn(plugin, event, answer.and_then(|answer| answer.failure).as_deref());
        });
        join_all(calls).await;
        return;
    }
    for plugin in plugins {
        // Before the agent gets its answer: its next event must not overtake this one.
        let slot = plugin.enqueue().await;
        let (plugin, timeout) = (Arc::clone(plugin), python.timeout);
        let (event, context, in_flight) = (event.clone(), context.clone(), InFlight::start());
        drop(tokio::spawn(async move {
            let notified = plugins::notify(&plugin, slot, &event, &context, timeout).await;
            warn(&plugin, &event, notified.err().map(|error| error.to_string()).as_deref());
            drop(in_flight);
        }));
    }
}

/// What plugins run with: the caller's directory and environment, or those of a replay's sandbox.
fn call_context(run: &HookRun<'_, '_>, hook: &Hook) -> CallContext {
    let mut caller = run.caller(hook);
    let may_start = run.plan.active(hook).approvals.may_start(hook, run.agent);
    if let Some(replay) = run.replay {
        let sandbox = &replay.sandbox;
        sandbox.cwd().clone_into(&mut caller.cwd);
        let hermes = ("HERMES_HOME".as_ref(), sandbox.hermes_home().as_os_str());
        for (name, value) in sandbox.env().into_iter().chain([hermes]) {
            caller.set_var(name, value);
        }
    }
    CallContext { caller, may_start }
}

/// A plugin's name in the log: one of several in a directory has its own name added.
fn recorded_name(hook: &Hook, plugin: &PluginInstance, is_single: bool) -> String {
    if is_single { hook.name.clone() } else { format!("{} ({})", hook.name, plugin.name()) }
}

fn warn(plugin: &PluginInstance, event: &Event, failure: Option<&str>) {
    let Some(why) = failure else { return };
    if why.starts_with(BACKING_OFF) {
        // The failure itself was reported; repeating it at every event would fill the log.
        tracing::debug!(plugin = plugin.name(), event_id = %event.id, why, "a plugin was not called");
    } else {
        tracing::warn!(plugin = plugin.name(), event_id = %event.id, why, "a plugin failed");
    }
}
