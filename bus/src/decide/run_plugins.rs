//! Asking plugins: all of a directory at once, each in its own process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::consent::Trust;
use super::hook::{Hook, Python};
use super::host::{self, Launch, Plugin, Told};
use super::launch;
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
        let whole = self.plan.whole;
        let folder = launch::folder(&python.folder, self.surroundings, &whole.base);
        let interpreter = launch::with_home(&python.launch.interpreter, self.surroundings);
        let launch = Launch { interpreter, ..python.launch };
        let plugins = whole.shelf.plugins(&folder, &whole.base, &whole.plugins, &launch);
        if plugins.is_empty() && !folder.is_dir() {
            let why = format!("there is no directory {}", folder.display());
            return vec![record(hook, Verdict::silent(), Some(why), Duration::ZERO)];
        }
        if whole.trust == Trust::Nobody {
            let hash = whole.shelf.hash(&folder, &whole.base, &whole.plugins, &launch);
            if let Some(refused) = self.without_consent(hook, &python.folder, Some(&hash)) {
                return vec![refused];
            }
        }
        let limit = python.timeout.min(self.end.saturating_duration_since(Instant::now()));
        if takes(event) == Takes::NOTHING {
            self.let_look_on(&plugins, python, event).await;
            return Vec::new();
        }
        let place = self.stand();
        let alone = plugins.len() == 1;
        let place = &place;
        let asked = plugins.iter().map(|plugin| async move {
            let started = Instant::now();
            let Told { verdict, failure, hash } = host::ask(plugin, event, place, limit).await?;
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
    /// after its answer. What is past was looked at then.
    async fn let_look_on(&self, plugins: &[Arc<Plugin>], python: &Python, event: &Event) {
        if self.scratch.is_some() {
            return;
        }
        let lives_on = self.surroundings.pid != Some(std::process::id());
        let looking = plugins.iter().map(|plugin| {
            let (event, place) = (event.clone(), self.surroundings.clone());
            look_on(Arc::clone(plugin), event, place, python.timeout)
        });
        if lives_on {
            looking.for_each(|looking| drop(tokio::spawn(looking)));
        } else {
            join_in_order(looking).await;
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

/// A plugin at an event where nothing it says counts.
async fn look_on(plugin: Arc<Plugin>, event: Event, place: Surroundings, limit: Duration) {
    let told = host::ask(&plugin, &event, &place, limit).await;
    if let Some(Told { failure: Some(why), .. }) = told {
        tracing::warn!(plugin = plugin.name(), event_id = %event.id, why, "a plugin failed");
    }
}
