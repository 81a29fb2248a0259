//! Asking plugins: all of a directory at once, each in its own process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::hook::{Hook, OnFailure, Python};
use super::host::{self, Launch, Plugin, Told};
use super::launch;
use super::plan::policy_of;
use super::run::{Errand, join_in_order, record};
use super::surroundings::Surroundings;
use crate::dialect::{Takes, takes};
use crate::event::{Event, Verdict, VerdictRecord};

impl Errand<'_, '_> {
    /// One record per plugin that has a hook for the event.
    pub(super) async fn ask_plugins(
        &self,
        hook: &Hook,
        python: &Python,
        event: &Event,
    ) -> Vec<VerdictRecord> {
        let whole = self.plan.whole(hook);
        let folder = launch::folder(&python.folder, self.surroundings, &whole.base);
        let interpreter = launch::with_home(&python.launch.interpreter, self.surroundings);
        let launch = Launch { interpreter, ..python.launch };
        let limit = python.timeout.min(self.end.saturating_duration_since(Instant::now()));
        let shelf = &whole.shelf;
        let plugins = shelf.plugins(&folder, &whole.base, &whole.plugins, &launch, limit).await;
        let Some(plugins) = plugins else {
            let why = format!("{} could not be read in time", folder.display());
            return vec![record(hook, Verdict::silent(), Some(why), limit)];
        };
        if plugins.is_empty() && !folder.is_dir() {
            let why = format!("there is no directory {}", folder.display());
            return vec![record(hook, Verdict::silent(), Some(why), Duration::ZERO)];
        }
        if takes(event) == Takes::NOTHING {
            self.let_look_on(&plugins, python, event).await;
            return Vec::new();
        }
        let place = self.stand();
        let alone = plugins.len() == 1;
        let place = &place;
        let asked = plugins.iter().map(|plugin| async move {
            let started = Instant::now();
            let left = limit.min(self.end.saturating_duration_since(started));
            let told = host::ask(plugin, event, place, left).await?;
            // What is missing is recorded once, unless somebody is to be stopped by it.
            if told.again && policy_of(hook) == OnFailure::Allow {
                return None;
            }
            let Told { verdict, failure, hash, .. } = told;
            let record = record(hook, verdict, failure, started.elapsed());
            let name = if alone {
                hook.name.clone()
            } else {
                format!("{} ({})", hook.name, plugin.name())
            };
            Some(VerdictRecord { script: hash, hook: name, ..record })
        });
        join_in_order(asked).await.into_iter().flatten().collect()
    }

    /// Where nothing can be said plugins only look on: the agent does not wait, if somebody lives on
    /// after its answer: they have a queue and a thread of their own. Without a daemon the agent has to wait,
    /// or they would end with us. What is past was looked at then.
    async fn let_look_on(&self, plugins: &[Arc<Plugin>], python: &Python, event: &Event) {
        if self.scratch.is_some() {
            return;
        }
        let lives_on = self.surroundings.pid != Some(std::process::id());
        if !lives_on {
            let looking = plugins.iter().map(|plugin| async {
                let told = host::ask(plugin, event, self.surroundings, python.timeout).await;
                warn(plugin, event, told.and_then(|told| told.failure));
            });
            join_in_order(looking).await;
            return;
        }
        for plugin in plugins {
            let (plugin, limit) = (Arc::clone(plugin), python.timeout);
            let (event, place) = (event.clone(), self.surroundings.clone());
            drop(tokio::spawn(async move {
                let told = host::tell(&plugin, &event, &place, limit).await;
                warn(&plugin, &event, told.err());
            }));
        }
    }

    /// Where a plugin stands: where its agent does, or in the scratch place of a rehearsal.
    fn stand(&self) -> Surroundings {
        let mut place = self.surroundings.clone();
        if let Some(scratch) = self.scratch {
            scratch.cwd().clone_into(&mut place.cwd);
            for (name, value) in scratch.env() {
                place.env.retain(|(known, _)| known != name);
                place.env.push((name.to_owned(), value.to_owned()));
            }
        }
        place
    }
}

fn warn(plugin: &Plugin, event: &Event, failure: Option<String>) {
    if let Some(why) = failure {
        tracing::warn!(plugin = plugin.name(), event_id = %event.id, why, "a plugin failed");
    }
}
