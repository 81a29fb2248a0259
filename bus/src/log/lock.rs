//! The advisory lock beside the log, which makes writing processes queue. SQLite's own busy handler
//! polls and is unfair: of eight processes that competed for it, some waited for seconds.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::OpenError;
use crate::sys::file_lock;

/// The lock file of one log.
#[derive(Debug)]
pub(super) struct WriteLock(File);

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(super) struct WriteLockGuard<'a>(&'a File);

impl WriteLock {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600) // another user who could open the file could block us by locking it
            .open(path)
            .map(Self)
            .map_err(|error| OpenError::Io { path: path.to_owned(), error })
    }

    /// Waits until this process holds the lock.
    pub(super) fn acquire(&self) -> WriteLockGuard<'_> {
        // Some file systems have no flock. SQLite's own locks then keep writers apart, only slower.
        if let Err(error) = file_lock::lock(&self.0) {
            tracing::warn!(%error, "cannot lock the log; relying on SQLite's own locks");
        }
        WriteLockGuard(&self.0)
    }
}

impl Drop for WriteLockGuard<'_> {
    fn drop(&mut self) {
        if let Err(error) = file_lock::unlock(self.0) {
            tracing::warn!(%error, "cannot unlock the log");
        }
    }
}
