//! What `hookbus status` tells.

use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::build::VERSION;
use crate::active::HooksSource;
use crate::config::observer_folder;
use crate::log::{LogPath, LogReader, OpenError};

/// What a daemon counts.
#[derive(Debug)]
pub(super) struct Counters {
    started: Instant,
    calls: AtomicU64,
    in_flight: AtomicUsize,
    /// Milliseconds after `started` at which the last call came or went.
    last_call: AtomicU64,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            calls: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            last_call: AtomicU64::new(0),
        }
    }

    /// Counts a call for as long as the guard lives.
    pub(super) fn begin(&self) -> InFlight<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.touch();
        InFlight(self)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// How long nobody has called.
    pub(super) fn idle(&self) -> Duration {
        let last = Duration::from_millis(self.last_call.load(Ordering::Relaxed));
        if self.in_flight() > 0 {
            Duration::ZERO
        } else {
            self.started.elapsed().saturating_sub(last)
        }
    }

    fn touch(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_call.store(now, Ordering::Relaxed);
    }
}

/// A call under way.
pub(super) struct InFlight<'a>(&'a Counters);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

/// The daemon's part of the state, as JSON.
pub(super) fn of_daemon(counters: &Counters, leaves_after: Option<Duration>) -> Value {
    json!({
        "pid": std::process::id(),
        "version": VERSION,
        "uptime_s": counters.started.elapsed().as_secs(),
        "calls": counters.calls.load(Ordering::Relaxed),
        "in_flight": counters.in_flight(),
        "idle_s": counters.idle().as_secs(),
        "leaves_after_idle_s": leaves_after.map(|after| after.as_secs()),
    })
}

/// What can be said of a home with or without a daemon: its log, its hooks and its observers.
pub fn describe(log: &LogPath, hooks: &HooksSource) -> Map<String, Value> {
    let active = hooks.active();
    let observers =
        active.file.observer_names().into_iter().map(|name| describe_observer(log, name));
    Map::from_iter([
        ("log".to_owned(), describe_log(log)),
        ("hooks".to_owned(), describe_hooks(hooks)),
        ("observers".to_owned(), observers.collect()),
    ])
}

/// What an observer's process last said about itself, if it still runs.
fn describe_observer(log: &LogPath, name: &str) -> Value {
    let home = log.file().parent().unwrap_or(log.file());
    let folder = observer_folder(home, name);
    let said = fs::read(folder.join("state.json")).ok();
    let said: Option<Value> = said.and_then(|said| serde_json::from_slice(&said).ok());
    let mut state = said.unwrap_or_else(|| json!({"name": name}));
    let is_up = |pid| fs::exists(format!("/proc/{pid}")).is_ok_and(|there| there);
    if !state["pid"].as_u64().is_some_and(is_up) {
        state["state"] = json!("not running");
        state["pid"] = Value::Null;
    }
    if state["source"] != "nats" {
        let letters = fs::read_dir(folder.join("dead")).into_iter().flatten().flatten();
        let is_one = |file: &fs::DirEntry| file.path().extension().is_some_and(|end| end == "json");
        state["dead_letters"] = json!(letters.filter(is_one).count());
    }
    state
}

fn describe_log(log: &LogPath) -> Value {
    let file = log.file();
    let head = match LogReader::open(log) {
        Ok(log) => log.head(),
        Err(OpenError::Missing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    };
    match head {
        Ok(head) => json!({
            "file": file.to_string_lossy(),
            "rows": head.map_or(0, |(seq, _)| seq.as_i64()),
            "last": head.map(|(_, at)| at.to_string()),
            "bytes": fs::metadata(file).map_or(0, |file| file.len()),
        }),
        Err(error) => json!({"file": file.to_string_lossy(), "error": error.to_string()}),
    }
}

fn describe_hooks(hooks: &HooksSource) -> Value {
    let active = hooks.active();
    json!({
        "file": hooks.file().to_string_lossy(),
        "standing": active.status.as_str(),
        "error": active.status.problem().map(ToString::to_string),
        "hash": active.file.hash,
        "count": active.file.hooks.len(),
        "problems": active.file.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
