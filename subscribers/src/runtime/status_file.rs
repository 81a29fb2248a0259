//! `state.json`: what an observer process reports about itself, for `hookbus status` to read.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hookbus::config::observer_folder;
use hookbus::event::Time;
use serde_json::{Value, json};

use crate::assignment::Assignment;
use crate::error::DeliveryError;
use crate::store::{create_private_dir, replace_file};

/// Changes that are not urgent are written at most this often.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// The status file, shared by all workers of the process.
#[derive(Debug, Clone)]
pub(super) struct StatusFile(Arc<Mutex<Status>>);

#[derive(Debug)]
struct Status {
    file: PathBuf,
    name: String,
    written: Option<Instant>,
    source: &'static str,
    partitions: usize,
    held: usize,
    handled: u64,
    failed: u64,
    dead_letters: Option<usize>,
    /// How many messages this process refused, and those before it.
    refused: u64,
    refused_before: u64,
    lag: Option<u64>,
    last_event: Option<Time>,
    /// When the event that is being delivered happened: the oldest that waits.
    delivering: Option<Time>,
    error: Option<String>,
}

/// Whether a change is written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Now,
    Soon,
}

impl StatusFile {
    pub(super) fn new(assignment: &Assignment, partitions: usize) -> Self {
        let name = assignment.observer.name();
        let file = observer_folder(&assignment.home, name).join("state.json");
        let refused_before = refused_in(&file);
        Self(Arc::new(Mutex::new(Status {
            file,
            name: name.to_owned(),
            written: None,
            source: assignment.source_name(),
            partitions,
            held: 0,
            handled: 0,
            failed: 0,
            dead_letters: None,
            refused: 0,
            refused_before,
            lag: None,
            last_event: None,
            delivering: None,
            error: None,
        })))
    }

    fn update(&self, write: Write, change: impl FnOnce(&mut Status)) {
        let mut status = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut status);
        let due = status.written.is_none_or(|written| written.elapsed() > WRITE_EVERY);
        if due || write == Write::Now {
            status.written = Some(Instant::now());
            status.write();
        }
    }

    /// This process has claimed a partition.
    pub(super) fn claimed(&self) {
        self.update(Write::Now, |status| {
            status.held += 1;
            status.error = None;
        });
    }

    /// This process has released a partition, or lost it.
    pub(super) fn released(&self) {
        self.update(Write::Now, |status| status.held = status.held.saturating_sub(1));
    }

    /// Another worker holds the partition; this process stands by.
    pub(super) fn standing_by(&self) {
        self.update(Write::Soon, |_| {});
    }

    /// Something failed and will be retried.
    pub(super) fn failing(&self, error: &impl Display) {
        self.update(Write::Now, |status| status.error = Some(error.to_string()));
    }

    /// An event is being delivered.
    pub(super) fn delivering(&self, at: Time) {
        self.update(Write::Soon, |status| status.delivering = Some(at));
    }

    /// An event was handled.
    pub(super) fn handled(&self, at: Time) {
        self.update(Write::Soon, |status| {
            status.handled += 1;
            status.delivering = None;
            status.last_event = Some(at);
            status.error = None;
        });
    }

    /// An event became a dead letter.
    pub(super) fn dead_lettered(&self, error: &DeliveryError) {
        self.update(Write::Now, |status| {
            status.failed += 1;
            status.delivering = None;
            status.dead_letters = status.dead_letters.map(|count| count + 1);
            status.error = Some(error.to_string());
        });
    }

    /// Messages of the stream were refused.
    pub(super) fn refused(&self, count: usize) {
        self.update(Write::Now, |status| status.refused += count as u64);
    }

    /// The position was saved: nothing is wrong.
    pub(super) fn saved(&self) {
        self.update(Write::Soon, |status| status.error = None);
    }

    /// How many rows are still to come; `None` keeps the last number.
    pub(super) fn lag(&self, lag: Option<u64>) {
        if lag.is_some() {
            self.update(Write::Now, |status| status.lag = lag);
        }
    }

    /// How many dead letters there are; `None` keeps the last number.
    pub(super) fn dead_letters(&self, count: Option<usize>) {
        self.update(Write::Now, |status| status.dead_letters = count.or(status.dead_letters));
    }

    /// How many events this process has handled, how many became dead letters, and how many messages it refused.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let status = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (status.handled, status.failed, status.refused)
    }
}

/// How many messages earlier processes refused, by their status file.
fn refused_in(file: &Path) -> u64 {
    let status = fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    status.and_then(|status| status["refused"].as_u64()).unwrap_or_default()
}

impl Status {
    fn write(&self) {
        let state = match (self.held, &self.error) {
            (0, Some(_)) => "in trouble",
            (0, None) => "standing by",
            (_, _) => "working",
        };
        let content = json!({
            "name": self.name,
            "pid": std::process::id(),
            "state": state,
            "source": self.source,
            "parts": self.partitions,
            "working_on": self.held,
            "handled": self.handled,
            "set_aside": self.failed,
            "dead_letters": self.dead_letters,
            "refused": self.refused_before + self.refused,
            "lag_events": self.lag,
            "oldest_waiting": self.delivering.map(|at| at.to_string()),
            "last": self.last_event.map(|at| at.to_string()),
            "error": self.error,
        });
        let written = self
            .file
            .parent()
            .map_or(Ok(()), create_private_dir)
            .and_then(|()| replace_file(&self.file, content.to_string().as_bytes()));
        if let Err(error) = written {
            tracing::debug!(%error, "cannot write the status file");
        }
    }
}
