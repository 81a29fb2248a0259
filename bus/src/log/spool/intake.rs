//! Taking in spool files: finding them, reading them a few at a time, and setting aside what is no event.
//!
//! A process holds a lock on a directory while it takes in files from it, so that no file is taken in by two
//! processes. A file is renamed before it is read, so that a newer file for the same event (now with its
//! decision) is not deleted unread.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Spool;
use super::file::{self, SpoolFileError, SpooledEvent, id_in_name};
use super::places::{HomeId, PlaceOwner};
use crate::event::EventId;
use crate::sys::file_lock;

/// The extension of a file that waits, that is being appended to the log, and that is no event.
pub(super) const WAITING: &str = "json";
pub(super) const TAKEN: &str = "taken";
pub(super) const UNREADABLE: &str = "unreadable";
/// The extension of a file that is being written.
pub(super) const INCOMPLETE: &str = "part";

/// A file that is incomplete for this long was left by a process that died.
const ABANDONED_AFTER: Duration = Duration::from_mins(10);

/// How many events, and about how many bytes of files, are in memory at once. A larger file is large: it is taken in after
/// all others, and alone, because a client may have no time to finish it.
const BATCH: usize = 64;
const BATCH_BYTES: u64 = 4 << 20;

/// Files that this process takes in. Other processes leave their directories alone until it is dropped.
#[derive(Debug)]
pub(in crate::log) struct Intake {
    home: HomeId,
    files: VecDeque<(PathBuf, PlaceOwner)>,
    /// How many files could not be taken in this time.
    pub(in crate::log) left: usize,
    _locks: Vec<File>,
}

impl Spool {
    /// Locks the directories and lists their files, oldest first. A directory from which another process is
    /// taking in files is left out.
    pub(in crate::log) fn take_in(&self) -> Intake {
        let (mut files, mut locks, mut left) = (Vec::new(), Vec::new(), 0);
        for place in self.places.iter().filter(|place| place.is_ours()) {
            let Ok(directory) = File::open(&place.directory) else { continue };
            match file_lock::try_lock(&directory) {
                Ok(()) => locks.push(directory),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    left += 1;
                    continue;
                }
                // Not every file system has locks. Appends are idempotent, so go on without.
                Err(error) => tracing::debug!(%error, "cannot lock a spool directory"),
            }
            match place.files() {
                Ok(found) => files.extend(found.into_iter().map(|path| (path, place.owner))),
                Err(error) => {
                    let directory = place.directory.display();
                    tracing::warn!(%error, %directory, "cannot list a spool directory");
                    left += 1;
                }
            }
        }
        files.retain(|(path, _)| match extension_of(path) {
            Some(WAITING | TAKEN) => true,
            Some(INCOMPLETE) if is_abandoned(path) => true,
            // Its writer may have died. Only a later look can tell.
            Some(INCOMPLETE) => {
                left += 1;
                false
            }
            Some(_) | None => false,
        });
        // Large files come last; ids sort by time. The file with an event's decision comes before the one without, which
        // then adds nothing. Of two files with one name, the one that an earlier try left comes first.
        files.sort_by_cached_key(|(path, _)| {
            let is_later = extension_of(path) != Some(TAKEN);
            (is_large(path), path.file_stem().map(OsStr::to_owned), is_later)
        });
        let files = files.into();
        Intake { home: self.home.clone(), files, left, _locks: locks }
    }
}

impl Spool {
    /// Whether a process has begun to take in a large file. It would begin anew in the next client if it stopped.
    pub fn is_taking_in_large_file(&self) -> bool {
        let files = self.places.iter().filter_map(|place| place.files().ok()).flatten();
        files.into_iter().any(|path| extension_of(&path) == Some(TAKEN) && is_large(&path))
    }

    /// Whether this event waits.
    pub fn holds(&self, id: EventId) -> bool {
        let names = [format!("{id}.{WAITING}"), format!("{id}.event.{WAITING}")];
        let mut places = self.places.iter();
        places.any(|place| names.iter().any(|name| place.directory.join(name).exists()))
    }
}

impl Intake {
    /// The next events; empty at the end.
    pub(in crate::log) fn next_batch(&mut self) -> Vec<SpooledEvent> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let is_alone = self.files.front().is_some_and(|(path, _)| is_large(path));
            if is_alone && !batch.is_empty() {
                break;
            }
            let Some((path, owner)) = self.files.pop_front() else { break };
            let length = fs::metadata(&path).map_or(0, |file| file.len());
            // A file that is set aside does not count: an empty batch is the end.
            if let Some(event) = self.read(&path, owner) {
                bytes += length;
                batch.push(event);
            }
        }
        batch
    }

    /// Reads one file. One that holds no event is set aside: it must not be in the way of the others, and must not
    /// disappear.
    fn read(&mut self, path: &Path, owner: PlaceOwner) -> Option<SpooledEvent> {
        let taken = path.with_extension(TAKEN);
        if path != taken {
            // Left by an earlier try, which comes first.
            if taken.exists() {
                self.left += 1;
                return None;
            }
            if let Err(error) = fs::rename(path, &taken) {
                tracing::warn!(%error, file = %path.display(), "cannot take in a spool file");
                self.left += 1;
                return None;
            }
        }
        let home = match owner {
            PlaceOwner::Shared => Some(&self.home),
            PlaceOwner::Home | PlaceOwner::Earlier => None,
        };
        match file::read(taken.clone(), home) {
            Ok(event) => Some(event),
            Err(error @ (SpoolFileError::Content(_) | SpoolFileError::OtherHome)) => {
                let aside = taken.with_extension(UNREADABLE);
                tracing::error!(%error, file = %aside.display(), "a spool file is set aside");
                if let Err(error) = fs::rename(&taken, &aside) {
                    tracing::error!(%error, file = %taken.display(), "cannot set a spool file aside");
                }
                None
            }
            Err(SpoolFileError::Io(error)) => {
                tracing::warn!(%error, file = %taken.display(), "cannot read a spool file");
                self.left += 1;
                None
            }
        }
    }

    /// Removes the file of an event that is in the log.
    pub(in crate::log) fn done(file: &Path) {
        if let Err(error) = fs::remove_file(file) {
            tracing::debug!(%error, "cannot remove a spool file; its event is in the log and is not appended twice");
        }
    }
}

fn is_large(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > BATCH_BYTES)
}

pub(super) fn extension_of(path: &Path) -> Option<&str> {
    path.extension().and_then(OsStr::to_str)
}

fn is_abandoned(path: &Path) -> bool {
    is_unchanged_for(path, ABANDONED_AFTER) && id_in_name(path).is_some()
}

/// Whether the file was last written this long ago.
pub(super) fn is_unchanged_for(path: &Path, time: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|file| file.modified());
    modified.ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= time)
}
