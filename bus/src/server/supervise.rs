//! Supervises one process per observer: starts it, restarts it with a back-off when it dies, and stops
//! it when the observer is removed or its settings change.
//!
//! Each process has the reading end of a pipe from the daemon as its stdin. When the daemon ends, even by
//! SIGKILL, the process reads the end of the pipe and exits.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::env_file;
use crate::backoff::Backoff;
use crate::config::NatsSettings;
use crate::sys::descriptors::restore_limit;

/// Between restarts of a process that keeps dying.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(30) };

/// A process that ran for this long had a successful start: the back-off begins again.
const STABLE_AFTER: Duration = Duration::from_mins(1);

/// A process that has not exited this long after it was told to is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How to start the process of an observer. The observer's name is the last argument.
#[derive(Debug, Clone)]
pub struct ObserverProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before the name.
    pub arguments: Vec<OsString>,
    /// The file that its stderr is appended to; the daemon's own stderr if none.
    pub stderr_file: Option<PathBuf>,
    /// The file with more variables for its environment.
    pub env_file: PathBuf,
}

/// The settings that an observer's process is started with: the hash of the hooks file, and the NATS
/// settings, which may come from elsewhere.
pub(super) type ObserverVersion = (String, Option<NatsSettings>);

/// Supervises the processes of all observers.
#[derive(Debug)]
pub(super) struct Supervisor {
    program: ObserverProgram,
    observers: BTreeMap<String, SupervisedObserver>,
}

/// One observer.
#[derive(Debug)]
struct SupervisedObserver {
    /// The settings its process was started with.
    version: ObserverVersion,
    process: Option<ObserverProcess>,
    /// How often in a row the process died.
    deaths: u32,
    /// When it may be started again.
    restart_at: Instant,
}

#[derive(Debug)]
struct ObserverProcess {
    child: Child,
    /// Closed to tell the process to exit.
    stdin: Option<ChildStdin>,
    started: Instant,
    stop_requested: Option<Instant>,
}

impl Supervisor {
    pub(super) fn new(program: ObserverProgram) -> Self {
        Self { program, observers: BTreeMap::new() }
    }

    /// Starts and stops processes so that the observers in `names`, and no others, run with `version`.
    /// Called again and again; does not block.
    pub(super) fn reconcile(&mut self, names: &[String], version: &ObserverVersion) {
        for name in names {
            self.observers.entry(name.clone()).or_insert_with(|| SupervisedObserver {
                version: version.clone(),
                process: None,
                deaths: 0,
                restart_at: Instant::now(),
            });
        }
        for (name, observer) in &mut self.observers {
            let wanted = names.contains(name);
            observer.reap(name);
            if !wanted || observer.version != *version {
                observer.request_stop();
            }
            if wanted && observer.process.is_none() && observer.restart_at <= Instant::now() {
                if observer.version != *version {
                    (observer.version, observer.deaths) = (version.clone(), 0);
                }
                observer.start(&self.program, name);
            }
        }
        self.observers.retain(|name, observer| names.contains(name) || observer.process.is_some());
    }

    /// Tells all processes to exit, and waits until they have.
    pub(super) async fn stop_all(&mut self) {
        for observer in self.observers.values_mut() {
            observer.request_stop();
        }
        while self.observers.values().any(|observer| observer.process.is_some()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            for (name, observer) in &mut self.observers {
                observer.reap(name);
                observer.request_stop();
            }
        }
    }

    pub(super) fn describe(&self, name: &str) -> Value {
        let observer = self.observers.get(name);
        json!({
            "pid": observer.and_then(|observer| Some(observer.process.as_ref()?.child.id())),
            "deaths": observer.map_or(0, |observer| observer.deaths),
        })
    }
}

impl SupervisedObserver {
    fn start(&mut self, program: &ObserverProgram, name: &str) {
        let stderr = program.stderr_file.as_ref().and_then(|file| {
            OpenOptions::new().create(true).append(true).mode(0o600).open(file).ok()
        });
        let variables = env_file::read(&program.env_file).unwrap_or_else(|error| {
            let file = program.env_file.display();
            tracing::error!(%error, %file, name, "the variables of this file are left out");
            Vec::new()
        });
        let spawned = Command::new(&program.program)
            .args(&program.arguments)
            .arg(name)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(stderr.map_or_else(Stdio::inherit, Stdio::from))
            .spawn();
        match spawned {
            Ok(mut child) => {
                restore_limit(Some(child.id()));
                let stdin = child.stdin.take();
                let started = Instant::now();
                self.process =
                    Some(ObserverProcess { child, stdin, started, stop_requested: None });
            }
            Err(error) => {
                tracing::error!(%error, name, "cannot start the process of the observer");
                self.count_death();
            }
        }
    }

    /// Notices that the process has ended.
    fn reap(&mut self, name: &str) {
        let Some(process) = &mut self.process else { return };
        let Ok(Some(status)) = process.child.try_wait() else { return };
        if process.stop_requested.is_none() {
            tracing::warn!(name, %status, "the process of an observer died; it will be restarted");
            if process.started.elapsed() > STABLE_AFTER {
                self.deaths = 0;
            }
            self.count_death();
        }
        self.process = None;
    }

    fn count_death(&mut self) {
        self.deaths = self.deaths.saturating_add(1);
        self.restart_at = Instant::now() + BACKOFF.delay(self.deaths);
    }

    /// Tells the process to exit, and kills it if it has not in time.
    fn request_stop(&mut self) {
        let Some(process) = &mut self.process else { return };
        drop(process.stdin.take());
        let since = *process.stop_requested.get_or_insert_with(Instant::now);
        if since.elapsed() > STOP_TIMEOUT
            && let Err(error) = process.child.kill()
        {
            tracing::debug!(%error, "the process ended before it was killed");
        }
    }
}
