//! The plugins of a replay: fresh processes, one pool for each bus, restarted at the events where the recorded
//! processes restarted. What they remember is rebuilt from the recorded events alone.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::{BusId, EventId, PluginHistory};
use crate::plugins::PluginPool;

/// The events at which plugins were started, from recorded decisions.
#[derive(Debug, Clone, Default)]
pub struct PluginRestarts(HashMap<EventId, Vec<Started>>);

/// One plugin that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Started {
    /// Its name in the log.
    hook: String,
    /// The hash of its code, which stays the same under another name.
    code: Option<String>,
}

impl PluginRestarts {
    /// Adds a recorded verdict: its hook, the hash of the plugin's code, and the history of the process.
    pub fn add(&mut self, hook: &str, code: Option<&str>, history: PluginHistory) {
        let started = Started { hook: hook.to_owned(), code: code.map(str::to_owned) };
        let at_event = self.0.entry(history.since).or_default();
        if !at_event.contains(&started) {
            at_event.push(started);
        }
    }

    /// Adds those of `other`.
    pub fn merge(&mut self, other: Self) {
        for (since, more) in other.0 {
            let at_event = self.0.entry(since).or_default();
            for started in more {
                if !at_event.contains(&started) {
                    at_event.push(started);
                }
            }
        }
    }

    /// The events that plugins were started for.
    pub fn events(&self) -> impl Iterator<Item = EventId> {
        self.0.keys().copied()
    }
}

/// The plugins of one replay.
#[derive(Debug, Default)]
pub(in super::super) struct ReplayPlugins {
    restarts: PluginRestarts,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    buses: HashMap<Option<BusId>, Bus>,
    /// Events that a plugin was started for and that the replay has passed.
    passed: HashSet<EventId>,
}

#[derive(Debug)]
struct Bus {
    pool: Arc<PluginPool>,
    /// Plugins to restart before their next event.
    due: Vec<Started>,
}

impl Default for Bus {
    /// Without back-off, because that depends on the clock.
    fn default() -> Self {
        Self { pool: Arc::new(PluginPool::without_backoff()), due: Vec::new() }
    }
}

impl ReplayPlugins {
    pub(super) fn new(restarts: PluginRestarts) -> Self {
        Self { restarts, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called for every event, in log order, whether or not a hook is asked about it.
    pub(super) fn pass(&self, bus: Option<BusId>, event: EventId) {
        let Some(started) = self.restarts.0.get(&event) else { return };
        let mut inner = self.inner();
        inner.passed.insert(event);
        inner.buses.entry(bus).or_default().due.extend(started.iter().cloned());
    }

    /// Whether the replay has passed this event.
    pub(super) fn has_passed(&self, event: EventId) -> bool {
        self.inner().passed.contains(&event)
    }

    pub(in super::super) fn pool(&self, bus: Option<BusId>) -> Arc<PluginPool> {
        Arc::clone(&self.inner().buses.entry(bus).or_default().pool)
    }

    /// Whether this plugin has to be restarted now; true once.
    pub(in super::super) fn take_restart(
        &self,
        bus: Option<BusId>,
        hook: &str,
        code: &str,
    ) -> bool {
        let mut inner = self.inner();
        let due = &mut inner.buses.entry(bus).or_default().due;
        let before = due.len();
        // By its code too, because it may have another name by now.
        due.retain(|started| started.hook != hook && started.code.as_deref() != Some(code));
        due.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    #[test]
    fn a_plugin_is_restarted_once_at_the_recorded_event_and_only_on_its_bus() {
        let mint = || EventId::mint(Time::from_micros(1));
        let (first, second, bus) = (mint(), mint(), Some(BusId::mint(Time::from_micros(1))));
        let mut restarts = PluginRestarts::default();
        restarts.add("guard", Some("a"), PluginHistory { since: second, events: 1 });
        restarts.add("guard", Some("a"), PluginHistory { since: second, events: 2 });
        let plugins = ReplayPlugins::new(restarts);
        plugins.pass(bus, first);
        assert!(!plugins.take_restart(bus, "guard", "a") && !plugins.has_passed(second));
        plugins.pass(bus, second);
        assert!(plugins.has_passed(second));
        assert!(
            !plugins.take_restart(None, "guard", "a") && !plugins.take_restart(bus, "other", "b")
        );
        // A renamed plugin is recognised by its code, and restarted once.
        assert!(
            plugins.take_restart(bus, "renamed", "a") && !plugins.take_restart(bus, "guard", "a")
        );
    }
}
