//! A process for each observer: started, started again when it dies, ended when it is not wanted any
//! more. What such a process does is not our business.
//!
//! Each holds the reading end of a pipe from us. When we are gone, however that came about, it sees
//! the end of the pipe and leaves.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::relay::NatsSettings;

/// Before the second, third, … start of a process that keeps dying.
const BACK_OFF: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// A process that ran for this long did not die of its start.
const SETTLED: Duration = Duration::from_mins(1);

/// How long one may take to leave before it is made to.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);

/// How to start the process of an observer; its name comes last.
#[derive(Debug, Clone)]
pub struct ObserverProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before the name.
    pub arguments: Vec<OsString>,
    /// Where its complaints go; to ours where none.
    pub complaints: Option<PathBuf>,
}

/// What an observer's process was started with: the hash of the hooks and the way to NATS, which is
/// no part of it.
pub(super) type Version = (String, Option<NatsSettings>);

#[derive(Debug)]
pub(super) struct Supervisor {
    how: ObserverProgram,
    kept: BTreeMap<String, Kept>,
}

/// One observer.
#[derive(Debug)]
struct Kept {
    /// The settings it was started with.
    version: Version,
    running: Option<Running>,
    deaths: usize,
    not_before: Instant,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Dropped to tell it to leave.
    leash: Option<ChildStdin>,
    started: Instant,
    told_to_leave: Option<Instant>,
}

impl Supervisor {
    pub(super) fn new(how: ObserverProgram) -> Self {
        Self { how, kept: BTreeMap::new() }
    }

    /// Sees to it that the observers in `names`, and no others, run with settings of `version`.
    pub(super) fn look_after(&mut self, names: &[String], version: &Version) {
        for name in names {
            self.kept.entry(name.clone()).or_insert_with(|| Kept {
                version: version.clone(),
                running: None,
                deaths: 0,
                not_before: Instant::now(),
            });
        }
        for (name, kept) in &mut self.kept {
            let wanted = names.contains(name);
            kept.bury(name);
            if !wanted || kept.version != *version {
                kept.tell_to_leave();
            }
            if wanted && kept.running.is_none() && kept.not_before <= Instant::now() {
                if kept.version != *version {
                    (kept.version, kept.deaths) = (version.clone(), 0);
                }
                kept.start(&self.how, name);
            }
        }
        self.kept.retain(|name, kept| names.contains(name) || kept.running.is_some());
    }

    /// Tells all of them to leave, and waits until they have.
    pub(super) async fn leave(&mut self) {
        for kept in self.kept.values_mut() {
            kept.tell_to_leave();
        }
        while self.kept.values().any(|kept| kept.running.is_some()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            for (name, kept) in &mut self.kept {
                kept.bury(name);
                kept.tell_to_leave();
            }
        }
    }

    pub(super) fn describe(&self, name: &str) -> Value {
        let kept = self.kept.get(name);
        json!({
            "pid": kept.and_then(|kept| Some(kept.running.as_ref()?.child.id())),
            "deaths": kept.map_or(0, |kept| kept.deaths),
        })
    }
}

impl Kept {
    fn start(&mut self, how: &ObserverProgram, name: &str) {
        let complaints = how.complaints.as_ref().and_then(|file| {
            OpenOptions::new().create(true).append(true).mode(0o600).open(file).ok()
        });
        let started = Command::new(&how.program)
            .args(&how.arguments)
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(complaints.map_or_else(Stdio::inherit, Stdio::from))
            .spawn();
        match started {
            Ok(mut child) => {
                let leash = child.stdin.take();
                let started = Instant::now();
                self.running = Some(Running { child, leash, started, told_to_leave: None });
            }
            Err(error) => {
                tracing::error!(%error, name, "cannot start the observer");
                self.died();
            }
        }
    }

    /// Notices that it has ended.
    fn bury(&mut self, name: &str) {
        let Some(running) = &mut self.running else { return };
        let Ok(Some(status)) = running.child.try_wait() else { return };
        if running.told_to_leave.is_none() {
            tracing::warn!(name, %status, "an observer died; it is started again");
            if running.started.elapsed() > SETTLED {
                self.deaths = 0;
            }
            self.died();
        }
        self.running = None;
    }

    fn died(&mut self) {
        self.not_before = Instant::now() + BACK_OFF[self.deaths.min(BACK_OFF.len() - 1)];
        self.deaths += 1;
    }

    fn tell_to_leave(&mut self) {
        let Some(running) = &mut self.running else { return };
        drop(running.leash.take());
        let since = *running.told_to_leave.get_or_insert_with(Instant::now);
        if since.elapsed() > LEAVES_WITHIN
            && let Err(error) = running.child.kill()
        {
            tracing::debug!(%error, "it left by itself");
        }
    }
}
