//! The advisory lock beside the log. SQLite's own busy handler polls and is unfair: eight
//! processes fighting over it waited for seconds. Waiting here first makes a queue of it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::OpenError;

/// The lock of one log, not held yet.
#[derive(Debug)]
pub(super) struct WriteLock(File);

/// The lock while it is held; given back when dropped.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a File);

impl WriteLock {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600) // whoever can open it can hold it
            .open(path)
            .map(Self)
            .map_err(|error| OpenError::Io { path: path.to_owned(), error })
    }

    /// Waits until it is ours.
    pub(super) fn acquire(&self) -> Held<'_> {
        // A refused flock (an odd file system) leaves SQLite's own locking, which is still right.
        if let Err(error) = flock(&self.0, FlockOperation::LockExclusive) {
            tracing::warn!(%error, "cannot lock the log; SQLite's own locks must do");
        }
        Held(&self.0)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Err(error) = flock(self.0, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock the log");
        }
    }
}
