//! Calling one plugin about one event: the call as the plugin gets it, and the verdict that its return values
//! amount to. Processes and queues belong to `instance.rs`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::event_mapping::{plugin_event_name, plugin_payload};
use super::instance::{CallError, CallReply, CallTimeout, PluginCall, PluginInstance, QueueSlot};
use crate::caller::Caller;
use crate::config::Refusal;
use crate::dialect::plugin_verdict;
use crate::event::{Event, PluginHistory, Rewrite, Verdict};

/// What a plugin answered.
#[derive(Debug)]
pub struct PluginAnswer {
    /// Its verdict.
    pub verdict: Verdict,
    /// What went wrong.
    pub failure: Option<String>,
    /// The hash of its code.
    pub hash: Option<String>,
    /// What it could remember when it answered.
    pub history: Option<PluginHistory>,
    /// Whether the same failure was reported before.
    pub repeated: bool,
    /// It was not started because the user has not approved it as it is now.
    pub refusal: Option<Refusal>,
    /// It was not started because the system is short of descriptors, processes or memory.
    pub short: bool,
}

/// The check before the plugin in a directory is started: gives the reason if it must not be. The user may have
/// edited the plugin since the event arrived.
#[derive(Clone)]
pub struct MayStart(Arc<StartCheck>);

type StartCheck = dyn Fn(&Path) -> Option<Refusal> + Send + Sync;

impl MayStart {
    /// A check that calls `check` with the plugin's directory.
    pub fn new(check: impl Fn(&Path) -> Option<Refusal> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) fn refusal(&self, folder: &Path) -> Option<Refusal> {
        (self.0)(folder)
    }
}

impl fmt::Debug for MayStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MayStart")
    }
}

/// What a plugin runs with, and the check before it is started.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Working directory and environment.
    pub caller: Caller,
    /// None if no check is needed.
    pub may_start: Option<MayStart>,
}

/// Calls `plugin` about `event`; none where it has no callback for it.
pub async fn call(
    plugin: &Arc<PluginInstance>,
    event: &Event,
    context: &CallContext,
    timeout: CallTimeout,
) -> Option<PluginAnswer> {
    let name = plugin_event_name(event, plugin.dir.form)?;
    if let Some(why) = unusable(plugin, &context.caller) {
        let repeated = plugin.mark_missing_variables_reported() && plugin.dir.broken.is_none();
        return Some(PluginAnswer { repeated, ..failed(why) });
    }
    match plugin.call(plugin_call(name, event, context), timeout).await {
        Ok(None) => None,
        Ok(Some(reply)) => Some(answer_in(event, reply)),
        Err(CallError::Failed(why)) => Some(failed(why)),
        Err(CallError::Short(why)) => Some(PluginAnswer { short: true, ..failed(why) }),
        Err(CallError::Refused(refusal)) => {
            Some(PluginAnswer { refusal: Some(refusal.clone()), ..failed(refusal.why) })
        }
    }
}

/// Notifies `plugin` of `event`, where no answer is possible, as soon as its slot in the queue is reached.
pub(crate) async fn notify(
    plugin: &Arc<PluginInstance>,
    slot: QueueSlot,
    event: &Event,
    context: &CallContext,
    timeout: Duration,
) -> Result<(), CallError> {
    let Some(name) = plugin_event_name(event, plugin.dir.form) else { return Ok(()) };
    if let Some(why) = unusable(plugin, &context.caller) {
        let is_repeated = plugin.mark_missing_variables_reported();
        return if is_repeated { Ok(()) } else { Err(CallError::Failed(why)) };
    }
    plugin.notify(slot, plugin_call(name, event, context), timeout).await
}

pub(super) fn plugin_call(name: String, event: &Event, context: &CallContext) -> PluginCall {
    let (session, payload) = (event.session.clone(), plugin_payload(event));
    let CallContext { caller, may_start } = context.clone();
    PluginCall { id: event.id, name, session, payload, caller, may_start }
}

fn failed(why: String) -> PluginAnswer {
    PluginAnswer {
        verdict: Verdict::silent(),
        failure: Some(why),
        hash: None,
        history: None,
        repeated: false,
        refusal: None,
        short: false,
    }
}

/// Why it cannot be called at all.
pub(super) fn unusable(plugin: &PluginInstance, caller: &Caller) -> Option<String> {
    if let Some(why) = &plugin.dir.broken {
        return Some(why.clone());
    }
    // As Hermes documents it: without its variables a plugin is disabled.
    let missing: Vec<String> = plugin
        .dir
        .required_variables()
        .into_iter()
        .filter(|name| caller.var(name).is_none_or(std::ffi::OsStr::is_empty))
        .collect();
    (!missing.is_empty())
        .then(|| format!("disabled: it needs {}; set it where the agent runs", missing.join(", ")))
}

fn answer_in(event: &Event, reply: CallReply) -> PluginAnswer {
    let CallReply { answer, hash, history } = reply;
    let list = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
    let verdicts: Vec<Verdict> =
        list("returns").iter().map(|value| plugin_verdict(event.kind, value)).collect();
    let contexts: Vec<&str> =
        verdicts.iter().filter_map(|verdict| verdict.context.as_deref()).collect();
    let context = (!contexts.is_empty()).then(|| contexts.join("\n\n"));
    let decides = |verdict: &&Verdict| verdict.ruling.is_some() || verdict.rewrite.is_some();
    let mut verdict = verdicts.iter().find(decides).cloned().unwrap_or_default();
    verdict.context = context;
    if let Some(Value::Object(args)) = answer.get("args") {
        verdict.rewrite = Some(Rewrite::Whole(args.clone()));
    }
    let errors: Vec<String> =
        list("errors").iter().filter_map(|error| error.as_str().map(str::to_owned)).collect();
    let failure = (!errors.is_empty()).then(|| errors.join("; "));
    let (hash, history) = (Some(hash), Some(history));
    PluginAnswer { verdict, failure, hash, history, repeated: false, refusal: None, short: false }
}
