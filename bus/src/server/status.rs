//! The state that `hookbus status` shows, as JSON.

use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chrono::DateTime;
use serde_json::{Map, Value, json};

use super::retention::last_retention;
use super::version::VERSION;
use crate::active::{ActiveHooks, HooksSource};
use crate::config::{Hook, Reach, observer_folder};
use crate::event::{BusIdentity, Clock, SystemClock, Time};
use crate::files::check_private;
use crate::log::{LogPath, LogReader, OpenError, local_identity};
use crate::sys::process::is_running;

/// What the daemon counts.
#[derive(Debug)]
pub(super) struct Counters {
    started: Instant,
    calls: AtomicU64,
    in_flight: AtomicUsize,
    /// When the last call began or ended, in milliseconds after `started`.
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

    /// Counts a call as in flight until the guard is dropped.
    pub(super) fn begin(&self) -> CallGuard<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.touch();
        CallGuard(self)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// How long there was no call.
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

/// A call in flight.
pub(super) struct CallGuard<'a>(&'a Counters);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

/// The daemon's own part of the state.
pub(super) fn of_daemon(counters: &Counters, idle_timeout: Option<Duration>) -> Value {
    json!({
        "pid": std::process::id(),
        "version": VERSION,
        "uptime_s": counters.started.elapsed().as_secs(),
        "calls": counters.calls.load(Ordering::Relaxed),
        "in_flight": counters.in_flight(),
        "idle_s": counters.idle().as_secs(),
        "leaves_after_idle_s": idle_timeout.map(|after| after.as_secs()),
    })
}

/// The state of a home's log, hooks and observers, with or without a daemon.
pub fn describe(log: &LogPath, hooks: &HooksSource) -> Map<String, Value> {
    let active = hooks.active();
    let observers =
        active.file.observer_names().into_iter().map(|name| describe_observer(log, name));
    Map::from_iter([
        ("bus".to_owned(), describe_bus(log, active.file.name.as_deref())),
        ("log".to_owned(), describe_log(log)),
        ("hooks".to_owned(), describe_hooks(hooks)),
        ("observers".to_owned(), observers.collect()),
        ("retention".to_owned(), describe_retention(log, &active)),
    ])
}

/// The rules of `retain:`, what is wrong with them, and what their last run did.
fn describe_retention(log: &LogPath, active: &ActiveHooks) -> Value {
    let home = log.file().parent().unwrap_or(log.file());
    let (rules, error) = match active.retain_rules() {
        Ok(rules) => (rules.len(), None),
        Err(error) => (0, Some(error)),
    };
    json!({"rules": rules, "error": error, "last": last_retention(home)})
}

/// What the observer's process last reported about itself, corrected if the process is gone.
fn describe_observer(log: &LogPath, name: &str) -> Value {
    let home = log.file().parent().unwrap_or(log.file());
    let folder = observer_folder(home, name);
    let reported = fs::read(folder.join("state.json")).ok();
    let reported: Option<Value> = reported.and_then(|json| serde_json::from_slice(&json).ok());
    let mut state = reported.unwrap_or_else(|| json!({"name": name}));
    if !state["pid"].as_u64().is_some_and(is_running) {
        state["state"] = json!("not running");
        state["pid"] = Value::Null;
    }
    if state["source"] != "nats" {
        let letters = fs::read_dir(folder.join("dead")).into_iter().flatten().flatten();
        let is_letter =
            |file: &fs::DirEntry| file.path().extension().is_some_and(|end| end == "json");
        state["dead_letters"] = json!(letters.filter(is_letter).count());
    }
    let oldest = state["oldest_waiting"].as_str().and_then(parse_time);
    let waits = state["lag_events"].as_u64().is_some_and(|lag| lag > 0);
    let age = oldest.filter(|_| waits).map(|oldest| SystemClock.now().since(oldest).as_secs());
    state["lag_s"] = json!(age);
    state
}

pub(super) fn parse_time(text: &str) -> Option<Time> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc().into())
}

/// Who records now. The id is null until there is a log.
fn describe_bus(log: &LogPath, name: Option<&str>) -> Value {
    let home = log.file().parent().unwrap_or(log.file());
    let id = LogReader::open(log).ok().and_then(|log| log.bus().ok());
    let BusIdentity { host, user, home, name } = local_identity(home, name);
    let id = id.map(|id| id.to_string());
    json!({"id": id, "name": name, "host": host, "user": user, "home": home})
}

fn describe_log(log: &LogPath) -> Value {
    let file = log.file();
    let metadata = fs::metadata(file).ok();
    if let Some(Err(error)) = metadata.map(|metadata| check_private(file, &metadata)) {
        return json!({"file": file.to_string_lossy(), "error": error.to_string()});
    }
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
            "damage": log.damage(),
            "damage_file": log.damage_file(),
        }),
        Err(error) => json!({"file": file.to_string_lossy(), "error": error.to_string()}),
    }
}

fn describe_hooks(hooks: &HooksSource) -> Value {
    let active = hooks.active();
    let problems = &active.file.problems;
    // Without hooks that need an approval it does not matter what a log that cannot be read would tell.
    let needs_approvals = active.file.hooks.iter().any(Hook::runs_outside);
    let consent_error = active.approvals.store().problem();
    let consent_error = consent_error.filter(|it| needs_approvals || !it.is_unknown());
    let broken = problems.iter().filter(|problem| problem.reach != Reach::Nothing);
    json!({
        "file": hooks.file().to_string_lossy(),
        "standing": active.status.as_str(),
        "error": active.status.problem().map(ToString::to_string),
        "consent_error": consent_error.map(|problem| problem.to_string()),
        "hash": active.file.hash,
        "count": active.file.hooks.len(),
        "record": active.file.recording.describe(),
        "problems": problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "broken": broken.map(ToString::to_string).collect::<Vec<_>>(),
    })
}
