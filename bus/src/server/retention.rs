//! Runs the rules of `retain:` once an hour, in a process of its own, while no agent is waiting. When they ran last is in a
//! file of the home, because a daemon that a hook started lives for minutes only.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::status::parse_time;
use crate::event::Time;

/// The file that tells what the last run did, in the home.
const STATE_FILE: &str = "retention.json";

/// Between runs.
const INTERVAL: Duration = Duration::from_hours(1);

/// Between tries of which none tells what it did: another process prunes, or the program cannot be started.
const BETWEEN_TRIES: Duration = Duration::from_mins(10);

/// A run begins after this time without a call; one that is due for a whole interval more does not wait for it.
const IDLE: Duration = Duration::from_secs(2);

/// How to run the rules.
#[derive(Debug, Clone)]
pub struct RetentionProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The file that its stderr is appended to; the daemon's own stderr if none.
    pub stderr_file: Option<PathBuf>,
}

/// Where a run of the rules tells what it did, for `hookbus status` and for the next daemon.
pub fn retention_file(home: &Path) -> PathBuf {
    home.join(STATE_FILE)
}

/// What the last run did; null if there was none.
pub fn last_retention(home: &Path) -> Value {
    let state = fs::read(retention_file(home)).ok();
    state.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}

/// The runs of one daemon.
#[derive(Debug)]
pub(super) struct RetentionSchedule {
    program: RetentionProgram,
    running: Option<Child>,
    next_try: Instant,
}

impl RetentionSchedule {
    pub(super) fn new(program: RetentionProgram) -> Self {
        Self { program, running: None, next_try: Instant::now() }
    }

    /// Starts a run if one is due. Called again and again; does not block.
    pub(super) fn update(&mut self, home: &Path, has_rules: bool, idle: Duration, now: Time) {
        if self.is_running() || !has_rules || Instant::now() < self.next_try {
            return;
        }
        let last = last_retention(home)["at"].as_str().and_then(parse_time);
        // A run in the future: the clock was put back.
        let since = last.filter(|at| *at <= now).map(|at| now.since(at));
        let is_due = since.is_none_or(|since| since >= INTERVAL);
        let is_late = since.is_some_and(|since| since >= INTERVAL * 2);
        if is_due && (is_late || idle >= IDLE) {
            self.next_try = Instant::now() + BETWEEN_TRIES;
            self.start();
        }
    }

    /// Whether a run has not ended yet.
    pub(super) fn is_running(&mut self) -> bool {
        let Some(child) = &mut self.running else { return false };
        match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                tracing::debug!(%status, "the rules of `retain` ran");
                self.running = None;
                false
            }
            Err(error) => {
                tracing::warn!(%error, "cannot wait for the process that prunes the log");
                self.running = None;
                false
            }
        }
    }

    /// Ends a run. What it has removed stays removed, with its record; the rest is for the next one.
    pub(super) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let ended = child.kill().and_then(|()| child.wait());
            if let Err(error) = ended {
                tracing::warn!(%error, "cannot end the process that prunes the log");
            }
        }
    }

    fn start(&mut self) {
        let RetentionProgram { program, arguments, stderr_file } = &self.program;
        let stderr = stderr_file.as_ref().and_then(|file| {
            OpenOptions::new().create(true).append(true).mode(0o600).open(file).ok()
        });
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr.map_or_else(Stdio::inherit, Stdio::from))
            .spawn();
        match started {
            Ok(child) => self.running = Some(child),
            Err(error) => tracing::warn!(%error, "cannot run the rules of `retain`"),
        }
    }
}
