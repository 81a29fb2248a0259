//! Calls an observer's plugins: each event goes to every plugin of a directory that has a callback for it,
//! in warm processes, with Hermes' names and arguments. What they return is ignored; only whether all of
//! them succeeded counts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use hookbus::active::ActiveRedaction;
use hookbus::caller::Caller;
use hookbus::config::{Action, Hook, Python, PythonLaunch};
use hookbus::dialect::is_recorded_variable;
use hookbus::event::EventId;
use hookbus::log::Row;
use hookbus::plugins::{
    self, CallContext, CallTimeout, NothingLoaded, PluginInstance, PluginPool, PluginSelection,
    required_variables,
};
use hookbus::redact::Redactor;

use super::input::DeliveryContext;
use crate::observer::{Observer, recorded_event};

/// Why plugins did not handle an event.
#[derive(Debug, thiserror::Error)]
pub enum PluginsError {
    /// The user has not approved them as they are now.
    #[error("{0}")]
    NotApproved(String),
    /// The directory could not be read.
    #[error("{} could not be read in time", .0.display())]
    Unreadable(PathBuf),
    /// No plugin of the directory is loaded; the text says why, and what to do.
    #[error("{0}")]
    NothingLoaded(String),
    /// A plugin needs variables that are not set.
    #[error("{plugin} needs {missing}; set it where the observer runs, or take the plugin out")]
    MissingVariables {
        /// The plugin.
        plugin: String,
        /// The variables.
        missing: String,
    },
    /// Some of them failed; the text says which, and how.
    #[error("{0}")]
    Failed(String),
    /// The entry has no plugins.
    #[error("the entry has no plugin directory")]
    NoPlugins,
}

/// The plugins of one observer, warm as long as this lives.
#[derive(Debug)]
pub(super) struct PluginTargets {
    pool: Arc<PluginPool>,
    /// What removes secrets from what they print. Events come without secrets; variables may hold some.
    redactor: OnceLock<Option<Arc<Redactor>>>,
    /// The plugins that have handled the current event: a retry does not call them again.
    handled: Option<(EventId, Vec<String>)>,
}

impl Default for PluginTargets {
    fn default() -> Self {
        Self {
            pool: Arc::new(PluginPool::without_backoff()),
            redactor: OnceLock::new(),
            handled: None,
        }
    }
}

impl PluginTargets {
    /// Calls all of them about `row`. In a retry only those that failed are called.
    pub(super) async fn call(
        &mut self,
        observer: &Observer,
        hook: &Hook,
        row: &Row,
        context: &DeliveryContext,
    ) -> Result<(), PluginsError> {
        let Action::Python(python) = &hook.action else { return Err(PluginsError::NoPlugins) };
        let caller = context.caller(observer, hook, row);
        if let Some(refusal) = observer.approvals.refusal(hook, &caller, hook.timeout()).await {
            if refusal.checked {
                self.pool.end(&location(observer, python, &caller));
            }
            return Err(PluginsError::NotApproved(refusal.why));
        }
        let plugins = self.plugins(observer, python, &caller).await?;
        // Hermes has no name for rows of the bus itself.
        let Some(event) = recorded_event(row) else { return Ok(()) };
        let mut handled = match self.handled.take() {
            Some((event, handled)) if event == row.id => handled,
            Some(_) | None => Vec::new(),
        };
        let may_start = observer.approvals.may_start(hook, &caller);
        let (event, context) = (&event, &CallContext { caller, may_start });
        let left = plugins.iter().filter(|plugin| !handled.iter().any(|it| it == plugin.name()));
        let calls = left.map(|plugin| async move {
            let answer =
                plugins::call(plugin, event, context, CallTimeout::full(python.timeout)).await;
            (plugin.name().to_owned(), answer.and_then(|answer| answer.failure))
        });
        let mut failures = Vec::new();
        for (name, failure) in join_all(calls).await {
            match failure {
                Some(why) if plugins.len() == 1 => failures.push(why),
                Some(why) => failures.push(format!("{name}: {why}")),
                None => handled.push(name),
            }
        }
        self.handled = Some((row.id, handled));
        if failures.is_empty() { Ok(()) } else { Err(PluginsError::Failed(failures.join("; "))) }
    }

    async fn plugins(
        &self,
        observer: &Observer,
        python: &Python,
        caller: &Caller,
    ) -> Result<Vec<Arc<PluginInstance>>, PluginsError> {
        let (folder, launch) = location(observer, python, caller);
        let lists = &observer.plugins;
        let built_in = || ActiveRedaction::new(&observer.base).built_in().map(Arc::new);
        let redactor = self.redactor.get_or_init(built_in).clone();
        let selection =
            PluginSelection { lists, of_project: false, log_folder: &observer.base, redactor };
        let plugins = self.pool.plugins(&folder, selection, &launch, python.timeout).await;
        let plugins = plugins.ok_or_else(|| PluginsError::Unreadable(folder.clone()))?;
        if let (true, Some(why)) = (plugins.is_empty(), NothingLoaded::find(&folder, lists)) {
            return Err(PluginsError::NothingLoaded(why.describe(&folder)));
        }
        Ok(plugins)
    }
}

/// Whether there is a plugin to call, with the variables that it needs.
pub(super) fn check_ready(
    observer: &Observer,
    env: &[(OsString, OsString)],
) -> Result<(), PluginsError> {
    let Action::Python(python) = &observer.first_entry().action else { return Ok(()) };
    let caller = observer.caller(env);
    let folder = caller.resolve(&python.folder, &observer.base);
    if let Some(why) = NothingLoaded::find(&folder, &observer.plugins) {
        return Err(PluginsError::NothingLoaded(why.describe(&folder)));
    }
    let is_missing = |name: &&String| {
        !is_recorded_variable(name) && caller.var(name).is_none_or(std::ffi::OsStr::is_empty)
    };
    for (plugin, required) in required_variables(&folder, &observer.plugins) {
        let missing: Vec<&str> = required.iter().filter(is_missing).map(String::as_str).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(PluginsError::MissingVariables { plugin, missing });
        }
    }
    Ok(())
}

/// Where an observer's plugins are, and what they are started with.
fn location(observer: &Observer, python: &Python, caller: &Caller) -> (PathBuf, PythonLaunch) {
    let interpreter = caller.expand_home(&python.launch.interpreter);
    let launch = PythonLaunch { interpreter, ..python.launch.clone() };
    (caller.resolve(&python.folder, &observer.base), launch)
}
