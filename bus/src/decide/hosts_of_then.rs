//! The plugins of a replay: in fresh processes of its own, one set for each bus, started anew where those of
//! then were. What they remember is rebuilt from the recorded events alone.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::host::Shelf;
use crate::event::{BusId, EventId, Heard};

/// Where plugins were started then, as far as the decisions tell.
#[derive(Debug, Clone, Default)]
pub struct Starts(HashMap<EventId, Vec<Started>>);

/// One plugin that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Started {
    /// What it is called in the log.
    hook: String,
    /// The hash of its code, which says the same under any name.
    code: Option<String>,
}

impl Starts {
    /// The hook of this name, with this code, spoke then, having heard this.
    pub fn add(&mut self, hook: &str, code: Option<&str>, heard: Heard) {
        let started = Started { hook: hook.to_owned(), code: code.map(str::to_owned) };
        let there = self.0.entry(heard.since).or_default();
        if !there.contains(&started) {
            there.push(started);
        }
    }

    /// Those of both.
    pub fn merge(&mut self, other: Self) {
        for (since, more) in other.0 {
            let there = self.0.entry(since).or_default();
            for one in more {
                if !there.contains(&one) {
                    there.push(one);
                }
            }
        }
    }

    /// The events that they were started for.
    pub fn events(&self) -> impl Iterator<Item = EventId> {
        self.0.keys().copied()
    }
}

/// The plugins of one replay.
#[derive(Debug, Default)]
pub(super) struct HostsOfThen {
    starts: Starts,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    buses: HashMap<Option<BusId>, Bus>,
    /// Events that a plugin was started for then and that were passed by now.
    passed: HashSet<EventId>,
}

#[derive(Debug)]
struct Bus {
    shelf: Arc<Shelf>,
    /// Who is started anew before it hears the next event.
    due: Vec<Started>,
}

impl Default for Bus {
    /// Nobody rests here: how long one did then was a matter of the clock.
    fn default() -> Self {
        Self { shelf: Arc::new(Shelf::of_the_patient()), due: Vec::new() }
    }
}

impl HostsOfThen {
    pub(super) fn starting_at(starts: Starts) -> Self {
        Self { starts, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An event comes by, in the order of the log, whether or not anybody hears it now.
    pub(super) fn pass(&self, bus: Option<BusId>, event: EventId) {
        let Some(started) = self.starts.0.get(&event) else { return };
        let mut inner = self.inner();
        inner.passed.insert(event);
        inner.buses.entry(bus).or_default().due.extend(started.iter().cloned());
    }

    /// Whether everything since this event was told.
    pub(super) fn has_passed(&self, event: EventId) -> bool {
        self.inner().passed.contains(&event)
    }

    pub(super) fn shelf(&self, bus: Option<BusId>) -> Arc<Shelf> {
        Arc::clone(&self.inner().buses.entry(bus).or_default().shelf)
    }

    /// Whether this plugin has to be started anew; asked once.
    pub(super) fn is_due(&self, bus: Option<BusId>, hook: &str, code: &str) -> bool {
        let mut inner = self.inner();
        let due = &mut inner.buses.entry(bus).or_default().due;
        let before = due.len();
        // Its code says who it is; a name may stand for other code by now.
        due.retain(|one| one.hook != hook && one.code.as_deref() != Some(code));
        due.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    #[test]
    fn a_plugin_is_started_anew_once_where_it_was_and_only_on_its_bus() {
        let mint = || EventId::mint(Time::from_micros(1));
        let (first, second, bus) = (mint(), mint(), Some(BusId::mint(Time::from_micros(1))));
        let mut starts = Starts::default();
        starts.add("guard", Some("a"), Heard { since: second, events: 1 });
        starts.add("guard", Some("a"), Heard { since: second, events: 2 });
        let hosts = HostsOfThen::starting_at(starts);
        hosts.pass(bus, first);
        assert!(!hosts.is_due(bus, "guard", "a") && !hosts.has_passed(second));
        hosts.pass(bus, second);
        assert!(hosts.has_passed(second));
        assert!(!hosts.is_due(None, "guard", "a") && !hosts.is_due(bus, "other", "b"));
        // Under another name, by its code; then it has been.
        assert!(hosts.is_due(bus, "renamed", "a") && !hosts.is_due(bus, "guard", "a"));
    }
}
