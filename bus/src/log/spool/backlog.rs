//! What waits in the spool, for `hookbus status` and `hookbus hooks doctor`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::Spool;
use super::file::{id_in_name, reason};
use super::intake::{INCOMPLETE, TAKEN, UNREADABLE, WAITING, extension_of, is_unchanged_for};
use crate::event::{EventId, Time};

/// How many unreadable files are named.
const MAX_NAMED: usize = 10;

/// The reason is not read from files above this size.
const MAX_READ: u64 = 1 << 20;

/// Writing a file takes less than this; one that is incomplete for longer was probably left by a process that died.
const LONGEST_WRITE: Duration = Duration::from_secs(30);

/// What waits in the spool of a home.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many files wait to be appended to the log.
    pub waiting: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// When the oldest event happened.
    pub oldest: Option<Time>,
    /// Why the oldest event is not in the log.
    pub why: Option<String>,
    /// How many files were not written to their end. They are taken in after a while, as far as they hold an event.
    pub incomplete: usize,
    /// How many files are set aside because they hold no event.
    pub unreadable: usize,
    /// The first of them.
    pub unreadable_files: Vec<PathBuf>,
    /// Directories where files could be, but that cannot be read or that other users can write to.
    pub unusable_directories: Vec<PathBuf>,
}

impl Spool {
    /// Looks at the directories; reads at most one file.
    pub fn backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        let mut oldest: Option<(EventId, PathBuf)> = None;
        for place in &self.places {
            if place.directory.symlink_metadata().is_err() {
                continue;
            }
            let Some(files) = place.is_ours().then(|| place.files().ok()).flatten() else {
                backlog.unusable_directories.push(place.directory.clone());
                continue;
            };
            for path in files {
                match extension_of(&path) {
                    Some(WAITING | TAKEN) => {
                        backlog.waiting += 1;
                        backlog.bytes += fs::metadata(&path).map_or(0, |file| file.len());
                        let id = id_in_name(&path);
                        let is_older = |id: &EventId| oldest.as_ref().is_none_or(|(it, _)| id < it);
                        if let Some(id) = id.filter(is_older) {
                            oldest = Some((id, path));
                        }
                    }
                    Some(INCOMPLETE) => {
                        let is_left = is_unchanged_for(&path, LONGEST_WRITE);
                        backlog.incomplete += usize::from(is_left);
                    }
                    Some(UNREADABLE) => {
                        backlog.unreadable += 1;
                        if backlog.unreadable_files.len() < MAX_NAMED {
                            backlog.unreadable_files.push(path);
                        }
                    }
                    Some(_) | None => {}
                }
            }
        }
        if let Some((id, file)) = oldest {
            backlog.oldest = Some(id.minted());
            let is_small = fs::metadata(&file).is_ok_and(|found| found.len() <= MAX_READ);
            backlog.why = is_small.then(|| reason(&file)).flatten();
        }
        backlog
    }
}

impl Backlog {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The `spool` of `hookbus status --json`.
    pub fn to_json(&self, now: Time) -> Value {
        let age = |at: Time| now.micros().saturating_sub(at.micros()).max(0) / 1_000_000;
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        json!({
            "waiting": self.waiting,
            "bytes": self.bytes,
            "oldest": self.oldest.map(|at| at.to_string()),
            "oldest_age_s": self.oldest.map(age),
            "why": self.why,
            "incomplete": self.incomplete,
            "unreadable": self.unreadable,
            "unreadable_files": paths(&self.unreadable_files),
            "unusable_directories": paths(&self.unusable_directories),
        })
    }
}
