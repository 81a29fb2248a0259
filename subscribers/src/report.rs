//! What an observer's process says about itself, in a file that `hookbus status` reads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hookbus::decide::observer_folder;
use hookbus::event::Time;
use serde_json::json;

use crate::ledger::{private_folder, replace};

/// A file is not written more often than this.
const EVERY: Duration = Duration::from_millis(500);

/// A handle that all parts of an observer write to.
#[derive(Debug, Clone)]
pub(crate) struct Report(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    file: PathBuf,
    name: String,
    written: Option<Instant>,
    source: &'static str,
    parts: usize,
    working: usize,
    handled: u64,
    set_aside: u64,
    dead_letters: Option<usize>,
    lag: Option<u64>,
    last: Option<Time>,
    error: Option<String>,
}

impl Report {
    pub(crate) fn new(home: &Path, name: &str, source: &'static str, parts: usize) -> Self {
        let file = observer_folder(home, name).join("state.json");
        Self(Arc::new(Mutex::new(Inner {
            file,
            name: name.to_owned(),
            written: None,
            source,
            parts,
            working: 0,
            handled: 0,
            set_aside: 0,
            dead_letters: None,
            lag: None,
            last: None,
            error: None,
        })))
    }

    fn change(&self, urgent: bool, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut inner);
        if urgent || inner.written.is_none_or(|written| written.elapsed() > EVERY) {
            inner.written = Some(Instant::now());
            inner.write();
        }
    }

    /// A part was taken up.
    pub(crate) fn took_up(&self) {
        self.change(true, |inner| {
            inner.working += 1;
            inner.error = None;
        });
    }

    /// A part was let go of.
    pub(crate) fn let_go(&self) {
        self.change(true, |inner| inner.working = inner.working.saturating_sub(1));
    }

    /// Another worker has it; we stand by.
    pub(crate) fn stands_by(&self) {
        self.change(false, |_| {});
    }

    pub(crate) fn trouble(&self, error: &str) {
        self.change(true, |inner| inner.error = Some(error.to_owned()));
    }

    pub(crate) fn handled(&self, at: Time) {
        self.change(false, |inner| {
            inner.handled += 1;
            inner.last = Some(at);
            inner.error = None;
        });
    }

    pub(crate) fn set_aside(&self, error: &str) {
        self.change(true, |inner| {
            inner.set_aside += 1;
            inner.dead_letters = inner.dead_letters.map(|count| count + 1);
            inner.error = Some(error.to_owned());
        });
    }

    /// Nothing is wrong at the moment.
    pub(crate) fn well(&self) {
        self.change(false, |inner| inner.error = None);
    }

    /// How many rows wait.
    pub(crate) fn lag(&self, lag: u64) {
        self.change(true, |inner| inner.lag = Some(lag));
    }

    /// How many dead letters there are.
    pub(crate) fn dead_letters(&self, count: Option<usize>) {
        self.change(true, |inner| inner.dead_letters = count.or(inner.dead_letters));
    }

    /// Handled and set aside, since the process began.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.handled, inner.set_aside)
    }
}

impl Inner {
    fn write(&self) {
        let state = match (self.working, &self.error) {
            (0, Some(_)) => "in trouble",
            (0, None) => "standing by",
            (_, _) => "working",
        };
        let content = json!({
            "name": self.name,
            "pid": std::process::id(),
            "state": state,
            "source": self.source,
            "parts": self.parts,
            "working_on": self.working,
            "handled": self.handled,
            "set_aside": self.set_aside,
            "dead_letters": self.dead_letters,
            "lag_events": self.lag,
            "last": self.last.map(|at| at.to_string()),
            "error": self.error,
        });
        let written = self
            .file
            .parent()
            .map_or(Ok(()), private_folder)
            .and_then(|()| replace(&self.file, content.to_string().as_bytes()));
        if let Err(error) = written {
            tracing::debug!(%error, "cannot write down how it is going");
        }
    }
}
