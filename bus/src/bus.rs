//! One home, ready for calls: its hooks, its log, its clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decide::{HooksSource, Projects};
use crate::event::{Clock, SystemClock};
use crate::log::{Durability, LogPath, Recorder, Spool};
use crate::sessions::Sessions;

/// Everything a call needs.
#[derive(Debug)]
pub struct Bus {
    /// Where rows go.
    pub recorder: Recorder,
    /// Which hooks are in force.
    pub hooks: HooksSource,
    /// Which more in the project that a client stands in.
    pub projects: Projects,
    /// Where rows are read from.
    pub log: LogPath,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which session an event belongs to that does not say so.
    pub(crate) sessions: Sessions,
}

impl Bus {
    /// The bus of `home`, for the daemon. Events that even the home cannot take go to `shared`
    /// directories.
    pub fn for_daemon(home: &Path, shared: &[PathBuf]) -> Self {
        Self::with(home, shared, Recorder::for_daemon)
    }

    /// The bus of `home`, for a client that handles one event by itself.
    pub fn for_client(home: &Path, shared: &[PathBuf]) -> Self {
        Self::with(home, shared, Recorder::for_client)
    }

    fn with(
        home: &Path,
        shared: &[PathBuf],
        recorder: impl Fn(LogPath, Durability, Spool, Arc<dyn Clock>) -> Recorder,
    ) -> Self {
        let log = LogPath::in_home(home);
        let hooks = HooksSource::new(home, log.clone());
        let projects = Projects::new(home, log.clone());
        let durability = hooks.in_force().hooks.durability;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let recorder =
            recorder(log.clone(), durability, Spool::new(home, shared), Arc::clone(&clock));
        Self { recorder, hooks, projects, log, clock, sessions: Sessions::default() }
    }
}
