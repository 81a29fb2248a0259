//! Probing plugins for the doctor and `hooks test`: each is started in a process of its own, reports its
//! subscriptions, and is called about sample events. No warm process is touched, and nothing is recorded.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::call::{CallContext, plugin_call, unusable};
use super::discovery::PluginForm;
use super::event_mapping::plugin_event_name;
use super::instance::{OnRepeatedFailure, PluginCall, PluginInstance};
use super::log::{FILE_NAME, PluginLog};
use super::plugin_dir::{PluginDir, find};
use super::pool::PluginSelection;
use super::process::{Process, ProcessError};
use crate::caller::Caller;
use crate::config::PythonLaunch;
use crate::dialect::{Capabilities, dialect_of};
use crate::event::Event;

/// What is wrong with a plugin, by what the user has to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginFault {
    /// Its directory lacks something.
    Incomplete(String),
    /// Its manifest lacks something; the text says what to write.
    BadManifest(String),
    /// It needs variables that are not set; the text says which.
    MissingVariables(String),
    /// It cannot be loaded.
    NotLoadable(String),
    /// One of its callbacks raised an exception, or its answer cannot be read.
    Raised(String),
    /// It gave no answer within its timeout.
    Hung(String),
    /// Its process ended.
    Died(String),
}

impl PluginFault {
    /// What is wrong.
    pub fn why(&self) -> &str {
        match self {
            Self::Incomplete(why)
            | Self::BadManifest(why)
            | Self::MissingVariables(why)
            | Self::NotLoadable(why)
            | Self::Raised(why)
            | Self::Hung(why)
            | Self::Died(why) => why,
        }
    }

    fn of(error: ProcessError) -> Self {
        match error {
            ProcessError::Broken(why) | ProcessError::Short(why) => Self::NotLoadable(why),
            ProcessError::Garbled(why) => Self::Raised(why),
            ProcessError::Hung(why) => Self::Hung(why),
            ProcessError::Gone(why) | ProcessError::Died(why) | ProcessError::BackingOff(why) => {
                Self::Died(why)
            }
            ProcessError::Refused(refusal) => Self::NotLoadable(refusal.why),
        }
    }
}

/// One call of a probed plugin.
#[derive(Debug, Clone)]
pub struct ProbeCall {
    /// Hermes' name of the event.
    pub event: String,
    /// What went wrong.
    pub fault: Option<PluginFault>,
    /// How long it took.
    pub took: Duration,
}

/// What probing one plugin found.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// Its name.
    pub plugin: String,
    /// Why it cannot be called at all.
    pub fault: Option<PluginFault>,
    /// The events it has callbacks for.
    pub subscriptions: Vec<String>,
    /// Those of them that its entry covers.
    pub covered: Vec<String>,
    /// The calls, in their order.
    pub calls: Vec<ProbeCall>,
}

/// The events that plugins are probed with.
pub struct ProbeEvents<'a> {
    /// The event they are started for.
    pub start: &'a Event,
    /// The events for a plugin with these subscriptions.
    pub events: &'a dyn Fn(&[String]) -> Vec<Event>,
}

impl fmt::Debug for ProbeEvents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeEvents").field("start", self.start).finish_non_exhaustive()
    }
}

/// How plugins are probed.
pub(crate) struct ProbeSettings<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) timeout: Duration,
    pub(crate) scope: ProbeScope,
}

/// Which sample events a plugin is really called about. Where no answer is possible, a callback exists for its
/// side effects: it may send a message or start an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeScope {
    /// All events.
    All,
    /// Events where an answer is possible.
    Answerable,
    /// No events: only find out which ones it would be called about.
    None,
}

impl ProbeScope {
    fn includes(self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Answerable => dialect_of(event.agent).capabilities(event) != Capabilities::NONE,
            Self::None => false,
        }
    }
}

/// The file that plugins print to, in a home.
pub(crate) fn log_path(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

/// Probes all plugins at `folder`, one after another, so that none slows another down.
pub(crate) async fn probe(
    folder: &Path,
    selection: PluginSelection<'_>,
    launch: &PythonLaunch,
    events: &ProbeEvents<'_>,
    settings: &ProbeSettings<'_>,
) -> Vec<ProbeReport> {
    let log = selection.log();
    let mut reports = Vec::new();
    for dir in find(folder, selection.lists) {
        let policy = OnRepeatedFailure::TryAgain;
        let plugin = PluginInstance::new(dir, launch.clone(), log.clone(), policy);
        let probe = Probe { plugin: &plugin, launch, log: &log, events, settings };
        reports.push(probe.run().await);
    }
    reports
}

struct Probe<'a> {
    plugin: &'a PluginInstance,
    launch: &'a PythonLaunch,
    log: &'a PluginLog,
    events: &'a ProbeEvents<'a>,
    settings: &'a ProbeSettings<'a>,
}

impl Probe<'_> {
    async fn run(&self) -> ProbeReport {
        let mut report = ProbeReport {
            plugin: self.plugin.name().to_owned(),
            fault: self.fault_on_disk(),
            subscriptions: Vec::new(),
            covered: Vec::new(),
            calls: Vec::new(),
        };
        if report.fault.is_some() {
            return report;
        }
        let mut process = match self.start().await {
            Ok(process) => Some(process),
            Err(fault) => return ProbeReport { fault: Some(fault), ..report },
        };
        let subscriptions =
            process.as_ref().map(|it| it.subscriptions().to_vec()).unwrap_or_default();
        for (name, event) in self.covered_events(&subscriptions, process.as_ref()) {
            report.covered.push(name.clone());
            let hung = |it: &ProbeCall| matches!(it.fault, Some(PluginFault::Hung(_)));
            if self.settings.scope.includes(&event) && !report.calls.iter().any(hung) {
                report.calls.push(self.call(&mut process, name, &event).await);
            }
        }
        ProbeReport { subscriptions, ..report }
    }

    /// What is wrong without even starting it.
    fn fault_on_disk(&self) -> Option<PluginFault> {
        let dir = &self.plugin.dir;
        if let Some(why) = &dir.broken {
            return Some(PluginFault::Incomplete(why.clone()));
        }
        invalid_events(dir).map(PluginFault::BadManifest).or_else(|| {
            unusable(self.plugin, self.settings.caller).map(PluginFault::MissingVariables)
        })
    }

    async fn start(&self) -> Result<Process, PluginFault> {
        let timeout = self.settings.timeout;
        let call = self.plugin_call(self.events.start.name.clone(), self.events.start);
        let (dir, code) = (&self.plugin.dir, self.plugin.code());
        Process::start(dir, &code, self.launch, &call, self.log, timeout)
            .await
            .map_err(PluginFault::of)
    }

    /// The caller of a probe has checked the approval.
    fn plugin_call(&self, name: String, event: &Event) -> PluginCall {
        let context = CallContext { caller: self.settings.caller.clone(), may_start: None };
        plugin_call(name, event, &context)
    }

    /// The events it is called about, each name once.
    fn covered_events(
        &self,
        subscriptions: &[String],
        process: Option<&Process>,
    ) -> Vec<(String, Event)> {
        let mut covered: Vec<(String, Event)> = Vec::new();
        for event in (self.events.events)(subscriptions) {
            let Some(name) = plugin_event_name(&event, self.plugin.dir.form) else { continue };
            let is_subscribed = process.is_some_and(|process| process.is_subscribed_to(&name));
            if is_subscribed && covered.iter().all(|(known, _)| *known != name) {
                covered.push((name, event));
            }
        }
        covered
    }

    async fn call(&self, process: &mut Option<Process>, name: String, event: &Event) -> ProbeCall {
        let timeout = self.settings.timeout;
        let started = Instant::now();
        let call = self.plugin_call(name.clone(), event);
        let answered = match process {
            Some(process) => process.call(&call, timeout, timeout).await.map_err(PluginFault::of),
            None => match self.start().await {
                Ok(new) => {
                    process.insert(new).call(&call, timeout, timeout).await.map_err(PluginFault::of)
                }
                Err(fault) => Err(fault),
            },
        };
        if matches!(answered, Err(PluginFault::Died(_) | PluginFault::Hung(_))) {
            *process = None;
        }
        let fault = answered.map_or_else(Some, |answer| raised(&answer));
        ProbeCall { event: name, fault, took: started.elapsed() }
    }
}

fn raised(answer: &Value) -> Option<PluginFault> {
    let errors = answer["errors"].as_array().into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    (!errors.is_empty()).then(|| PluginFault::Raised(errors.join("; ")))
}

/// What is wrong with the events in a `HOOK.yaml`. Hermes reads a text letter by letter, and skips a hook
/// without events.
fn invalid_events(dir: &PluginDir) -> Option<String> {
    if dir.form != PluginForm::Gateway {
        return None;
    }
    let events = dir.manifest.get("events");
    match events {
        Some(Value::Array(events)) if !events.is_empty() => None,
        Some(Value::String(event)) => Some(format!(
            "`events:` in its HOOK.yaml is one text, which is taken letter by letter; write `events: [{event}]`"
        )),
        Some(_) | None => Some(
            "its HOOK.yaml has no list of `events:`; name those it handles, as in `events: [agent:start]`"
                .to_owned(),
        ),
    }
}
