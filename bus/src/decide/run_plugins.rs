//! Asking plugins: all of a directory at once, each in its own process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::consent::Objection;
use super::due::Due;
use super::hook::{Action, Hook, OnFailure, Python};
use super::host::{self, Launch, Meant, Plugin, Stand, Time, Told};
use super::idle::NoneLoaded;
use super::launch;
use super::plan::policy_of;
use super::run::{Errand, join_in_order, record};
use crate::dialect::{Takes, takes};
use crate::event::{Event, Verdict, VerdictRecord};

impl Errand<'_, '_> {
    /// One record per plugin that has a hook for the event, in the name of `hook`; it is `agreed` that somebody
    /// agreed to.
    pub(super) async fn ask_plugins(
        &self,
        hook: &Hook,
        agreed: &Hook,
        event: &Event,
    ) -> Vec<VerdictRecord> {
        let Action::Python(python) = &agreed.action else { return Vec::new() };
        let whole = self.plan.whole(hook);
        let (folder, launch) = self.place_of(hook, python);
        let limit = python.timeout.min(self.end.saturating_duration_since(Instant::now()));
        let (shelf, meant) = match self.scratch {
            Some(scratch) => {
                let meant = Meant { log_in: scratch.log_in(), ..whole.meant() };
                (scratch.hosts.shelf(self.bus), meant)
            }
            None => (Arc::clone(&whole.shelf), whole.meant()),
        };
        let plugins = shelf.plugins(&folder, meant, &launch, limit).await;
        let Some(plugins) = plugins else {
            let why = format!("{} could not be read in time", folder.display());
            return vec![record(hook, Verdict::silent(), Some(why), limit)];
        };
        if plugins.is_empty() {
            let failed = self.none_is_loaded(hook, folder, limit).await;
            return failed.into_iter().collect();
        }
        let alone = plugins.len() == 1;
        self.start_anew(hook, &plugins).await;
        let stand = &self.stand(agreed);
        if takes(event) == Takes::NOTHING {
            self.let_look_on(&plugins, python, event, stand).await;
            return Vec::new();
        }
        let asked = plugins.iter().map(|plugin| async move {
            let started = Instant::now();
            let told = host::ask(plugin, event, stand, self.time(python)).await?;
            if let Some(objection) = told.objection {
                return Some(Err(objection));
            }
            // What is missing is recorded once, unless somebody is to be stopped by it.
            if told.again && policy_of(hook) == OnFailure::Allow {
                return None;
            }
            let Told { verdict, failure, hash, heard, .. } = told;
            let record = record(hook, verdict, failure, started.elapsed());
            let name = name_of(hook, plugin, alone);
            Some(Ok(VerdictRecord { script: hash, heard, hook: name, ..record }))
        });
        let said: Result<Vec<VerdictRecord>, Objection> =
            join_in_order(asked).await.into_iter().flatten().collect();
        // Agreement is to all of a directory at once.
        said.unwrap_or_else(|objection| vec![self.turned_away(hook, objection)])
    }

    /// A guard that is not loaded does not guard: that is a failure, unless somebody wants it so. Whom it stops
    /// nobody by, hears of it once, and in a rehearsal not again.
    async fn none_is_loaded(
        &self,
        hook: &Hook,
        folder: PathBuf,
        limit: Duration,
    ) -> Option<VerdictRecord> {
        let failed = |why: String| Some(record(hook, Verdict::silent(), Some(why), Duration::ZERO));
        if !folder.is_dir() {
            return failed(NoneLoaded::NoFolder.said_of(&folder));
        }
        let whole = self.plan.whole(hook);
        let stops = policy_of(hook) == OnFailure::Block;
        if !stops && (self.scratch.is_some() || whole.shelf.was_seen_empty(&folder)) {
            return None;
        }
        let (all, at, place) = (whole.clone(), folder.clone(), self.surroundings.clone());
        let look = tokio::task::spawn_blocking(move || all.none_loaded(&at, &place));
        match tokio::time::timeout(limit, look).await {
            Ok(Ok(None | Some(NoneLoaded::SwitchedOff(_)))) => None,
            Ok(Ok(Some(NoneLoaded::NotEnabled(_) | NoneLoaded::Missing(_)))) if !stops => None,
            Ok(Ok(Some(why))) => failed(why.said_of(&folder)),
            Ok(Err(_)) | Err(_) => {
                failed(format!("{} could not be read in time", folder.display()))
            }
        }
    }

    /// Where the plugins of an entry are, and what they are started with.
    fn place_of(&self, hook: &Hook, python: &Python) -> (PathBuf, Launch) {
        let base = &self.plan.whole(hook).base;
        let interpreter = launch::with_home(&python.launch.interpreter, self.surroundings);
        let launch = Launch { interpreter, ..python.launch };
        (launch::folder(&python.folder, self.surroundings, base), launch)
    }

    /// Nobody agrees to these plugins any more.
    pub(super) fn let_go(&self, hook: &Hook, python: &Python) {
        if self.scratch.is_none() {
            self.plan.whole(hook).shelf.let_go(&self.place_of(hook, python));
        }
    }

    /// How long a plugin may take, and how long it is waited for. A rehearsal has no time for more.
    fn time(&self, python: &Python) -> Time {
        let left = self.end.saturating_duration_since(Instant::now());
        match self.scratch {
            Some(_) => Time::all(python.timeout.min(left)),
            None => Time::of(python.timeout, left),
        }
    }

    /// In a rehearsal: a plugin whose process was another one from here on then, forgets what it knows.
    async fn start_anew(&self, hook: &Hook, plugins: &[Arc<Plugin>]) {
        let Some(scratch) = self.scratch else { return };
        for plugin in plugins {
            let name = name_of(hook, plugin, plugins.len() == 1);
            if scratch.hosts.is_due(self.bus, &name, &plugin.hash()) {
                plugin.start_anew().await;
            }
        }
    }

    /// Where nothing can be said plugins only look on: the agent does not wait, if somebody lives on
    /// after its answer: they have a queue and a thread of their own. Without a daemon the agent has to wait,
    /// or they would end with us. A rehearsal waits as well: what comes next may depend on it.
    async fn let_look_on(
        &self,
        plugins: &[Arc<Plugin>],
        python: &Python,
        event: &Event,
        stand: &Stand,
    ) {
        let lives_on = self.surroundings.pid != Some(std::process::id());
        if !lives_on || self.scratch.is_some() {
            let time = match self.scratch {
                Some(_) => self.time(python),
                None => Time::all(python.timeout),
            };
            let looking = plugins.iter().map(|plugin| async {
                let told = host::ask(plugin, event, stand, time).await;
                warn(plugin, event, told.and_then(|told| told.failure));
            });
            join_in_order(looking).await;
            return;
        }
        for plugin in plugins {
            // Before the agent is answered: its next event must not be heard before this one.
            let turn = plugin.line_up().await;
            let (plugin, limit) = (Arc::clone(plugin), python.timeout);
            let (event, stand, due) = (event.clone(), stand.clone(), Due::one());
            drop(tokio::spawn(async move {
                let told = host::tell(&plugin, turn, &event, &stand, limit).await;
                warn(&plugin, &event, told.err());
                drop(due);
            }));
        }
    }

    /// Where a plugin stands: where its agent does, or in the scratch place of a rehearsal.
    fn stand(&self, hook: &Hook) -> Stand {
        let mut place = self.surroundings.clone();
        let gate = self.plan.whole(hook).gate(hook, self.surroundings);
        let gate = gate.map(|gate| Arc::new(gate.kept()));
        if let Some(scratch) = self.scratch {
            scratch.cwd().clone_into(&mut place.cwd);
            let hermes = ("HERMES_HOME".as_ref(), scratch.hermes().as_os_str());
            for (name, value) in scratch.env().into_iter().chain([hermes]) {
                place.env.retain(|(known, _)| known != name);
                place.env.push((name.to_owned(), value.to_owned()));
            }
        }
        Stand { place, gate }
    }
}

/// What a plugin is called in the log: one of several goes by its own name too.
fn name_of(hook: &Hook, plugin: &Plugin, alone: bool) -> String {
    if alone { hook.name.clone() } else { format!("{} ({})", hook.name, plugin.name()) }
}

fn warn(plugin: &Plugin, event: &Event, failure: Option<String>) {
    let Some(why) = failure else { return };
    if why.starts_with(host::LEFT_ALONE) {
        // That was said when it failed; an agent at work would fill the log with it.
        tracing::debug!(plugin = plugin.name(), event_id = %event.id, why, "not told");
    } else {
        tracing::warn!(plugin = plugin.name(), event_id = %event.id, why, "a plugin failed");
    }
}
