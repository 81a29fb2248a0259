//! One home, ready for calls: its hooks, its log, its clock. `pipeline.rs` handles a call with it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::active::{ActiveRedaction, HookSets, HooksSource, Projects};
use crate::caller::Caller;
use crate::dialect::SessionLinks;
use crate::event::{Clock, EventId, OnFailure, Payload, SystemClock};
use crate::log::{Durability, LogPath, Recorder, Spool};
use crate::notice::Told;

/// Everything a call needs.
#[derive(Debug)]
pub struct Bus {
    /// Where rows go.
    pub recorder: Recorder,
    /// The user's own hooks.
    pub hooks: HooksSource,
    /// The hooks of projects.
    pub projects: Projects,
    /// Where rows are read from.
    pub log: LogPath,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Finds the session of events that name none.
    pub session_links: SessionLinks,
    /// What the user was told about the bus, by session.
    pub told: Told,
    /// What is replaced before an event is recorded.
    pub redaction: ActiveRedaction,
    /// Decisions whose record lacks secrets.
    pub whole_decisions: WholeDecisions,
    /// What an agent may do while it is not known which hooks there should be.
    pub on_unknown_hooks: OnFailure,
}

impl Bus {
    /// The bus of `home`, for the daemon. Events that cannot be written in the home are spooled in the `shared`
    /// directories.
    pub fn for_daemon(home: &Path, shared: &[PathBuf]) -> Self {
        let bus = Self::new(home, shared, Recorder::for_daemon);
        Self { redaction: bus.redaction.with_memory(), ..bus }
    }

    /// The bus of `home`, for a client that handles one event by itself.
    pub fn for_client(home: &Path, shared: &[PathBuf]) -> Self {
        Self::new(home, shared, Recorder::for_client)
    }

    fn new(
        home: &Path,
        shared: &[PathBuf],
        recorder: impl Fn(LogPath, Durability, Spool, Arc<dyn Clock>) -> Recorder,
    ) -> Self {
        let log = LogPath::in_home(home);
        let hooks = HooksSource::new(home, log.clone());
        let projects = Projects::new(home, log.clone());
        let active = hooks.active();
        let durability = active.file.durability;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let recorder =
            recorder(log.clone(), durability, Spool::new(home, shared), Arc::clone(&clock));
        recorder.set_name(active.file.name.as_deref());
        Self {
            recorder,
            hooks,
            projects,
            log,
            clock,
            session_links: SessionLinks::default(),
            told: Told::default(),
            redaction: ActiveRedaction::new(home),
            whole_decisions: WholeDecisions::default(),
            on_unknown_hooks: OnFailure::Allow,
        }
    }

    /// The same where `default_home` is the user's own home too, not a project.
    #[must_use]
    pub fn with_default_home(mut self, default_home: Option<PathBuf>) -> Self {
        self.projects = self.projects.with_default_home(default_home);
        self
    }

    /// The same with what the wiring of an agent says for the case that the hooks are not known.
    #[must_use]
    pub fn with_on_unknown_hooks(self, on_failure: OnFailure) -> Self {
        Self { on_unknown_hooks: on_failure, ..self }
    }

    /// The hooks that an event from `caller` is checked against.
    pub fn hooks_for(&self, caller: &Caller) -> HookSets {
        let own = self.hooks.active();
        self.recorder.set_name(own.file.name.as_deref());
        HookSets { own, project: self.projects.at(caller) }
    }
}

/// Decisions as they were made, for a while: a client that tries again must hear the answer and not its redacted record.
/// Only those whose record lacks something are here.
#[derive(Debug, Default)]
pub struct WholeDecisions(Mutex<VecDeque<(EventId, Payload)>>);

impl WholeDecisions {
    /// Clients try again within seconds.
    const MOST: usize = 256;

    /// Remembers the decision about an event.
    pub fn put(&self, event: EventId, decision: Payload) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(id, _)| *id != event);
        known.push_back((event, decision));
        if known.len() > Self::MOST {
            known.pop_front();
        }
    }

    /// The decision about an event.
    pub fn get(&self, event: EventId) -> Option<Payload> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(id, _)| *id == event).map(|(_, decision)| decision.clone())
    }
}
