//! Where the programs of a replay run: scratch directories, `HOOKBUS_REPLAY=1` in the environment, a memory
//! limit, and no process left running afterwards. It keeps a replay from touching the user's files by
//! accident; it is not a security boundary, except as far as an [`Isolation`] is one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys::isolation::Isolation;
use crate::sys::process_group::ProcessGroup;

/// A set of scratch directories, and the process groups that run in them.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// For each process, in bytes.
    memory: u64,
    home: PathBuf,
    temporary: PathBuf,
    work: PathBuf,
    bus: PathBuf,
    hermes: PathBuf,
    isolation: Option<Isolation>,
    running: Arc<Mutex<Running>>,
}

#[derive(Debug, Default)]
struct Running {
    groups: Vec<ProcessGroup>,
    ended: bool,
}

impl Sandbox {
    /// A sandbox in `folder`, which must exist. Each process may use `memory` bytes.
    pub(crate) fn in_folder(folder: &Path, memory: u64) -> std::io::Result<Self> {
        let create = |name: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).map(|()| path)
        };
        Ok(Self {
            memory,
            home: create("home")?,
            temporary: create("tmp")?,
            work: create("work")?,
            bus: create("hookbus")?,
            hermes: create("home/.hermes")?,
            isolation: None,
            running: Arc::default(),
        })
    }

    /// The same, with programs kept apart from the rest of the system.
    #[must_use]
    pub(crate) fn isolated(self, isolation: Isolation) -> Self {
        Self { isolation: Some(isolation), ..self }
    }

    /// The words that start a program here; none if it is started as it is.
    pub(super) fn wrap(
        &self,
        words: &[OsString],
        env: &[(String, String)],
    ) -> Option<Vec<OsString>> {
        self.isolation.as_ref().and_then(|isolation| isolation.wrap(words, env))
    }

    /// Kills everything that runs here, and everything that enters from now on.
    pub(crate) fn end(&self) {
        let mut running = self.running();
        running.ended = true;
        running.groups.drain(..).for_each(ProcessGroup::kill);
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits a process group and keeps track of it.
    pub(super) fn enter(&self, group: ProcessGroup) {
        group.limit_memory(self.memory);
        let mut running = self.running();
        if running.ended {
            group.kill();
        } else {
            running.groups.push(group);
        }
    }

    /// Kills what is left of a group.
    pub(super) fn leave(&self, group: ProcessGroup) {
        let mut running = self.running();
        group.kill();
        running.groups.retain(|other| *other != group);
    }

    /// The working directory.
    pub(crate) fn cwd(&self) -> &Path {
        &self.work
    }

    /// The directory for plugins' output.
    pub(crate) fn log_folder(&self) -> &Path {
        &self.bus
    }

    /// Replaces Hermes' home, where plugins keep their state: in a replay they receive every event again.
    pub(crate) fn hermes_home(&self) -> &Path {
        &self.hermes
    }

    /// The variables that every process gets. A hook that calls hookbus starts no daemon and publishes
    /// nothing.
    pub(crate) fn env(&self) -> [(&OsStr, &OsStr); 12] {
        [
            ("HOOKBUS_REPLAY".as_ref(), "1".as_ref()),
            ("HOOKBUS_HOME".as_ref(), self.bus.as_ref()),
            ("HOOKBUS_DAEMON".as_ref(), "off".as_ref()),
            ("HOOKBUS_NATS_URL".as_ref(), "".as_ref()),
            ("XDG_RUNTIME_DIR".as_ref(), self.temporary.as_ref()),
            ("XDG_CONFIG_HOME".as_ref(), self.home.as_ref()),
            ("XDG_STATE_HOME".as_ref(), self.home.as_ref()),
            ("XDG_DATA_HOME".as_ref(), self.home.as_ref()),
            ("XDG_CACHE_HOME".as_ref(), self.home.as_ref()),
            ("HOME".as_ref(), self.home.as_ref()),
            ("TMPDIR".as_ref(), self.temporary.as_ref()),
            ("PWD".as_ref(), self.work.as_ref()),
        ]
    }
}
