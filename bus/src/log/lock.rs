//! The advisory lock beside the log, which makes writing processes queue. SQLite's own busy handler
//! polls and is unfair: of eight processes that competed for it, some waited for seconds.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::OpenError;
use crate::sys::file_lock;

/// The length of the note in a lock file.
const NOTE_LENGTH: usize = 128;

/// The lock file of one log.
#[derive(Debug)]
pub(super) struct WriteLock(Arc<File>);

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(super) struct WriteLockGuard(Arc<File>);

impl WriteLock {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600) // another user who could open the file could block us by locking it
            .open(path)
            .map(|file| Self(Arc::new(file)))
            .map_err(|error| OpenError::Io { path: path.to_owned(), error })
    }

    /// The note in a lock file that is not to be created; none if it cannot be read.
    pub(super) fn read_note(path: &Path) -> Option<String> {
        let file = File::open(path).ok()?;
        Some(Self(Arc::new(file)).note())
    }

    /// The note in the lock file; empty if there is none, or if it cannot be read.
    pub(super) fn note(&self) -> String {
        let mut bytes = [0; NOTE_LENGTH];
        let length = self.0.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..length]).trim_end().to_owned()
    }

    /// Writes the note, in one write of fixed length.
    pub(super) fn set_note(&self, note: &str) {
        let padded = format!("{note:<NOTE_LENGTH$}");
        if let Err(error) = self.0.write_all_at(padded.as_bytes(), 0) {
            tracing::debug!(%error, "cannot write to the lock file of the log");
        }
    }

    /// Takes the lock if no other process holds it.
    pub(super) fn try_acquire(&self) -> Option<WriteLockGuard> {
        file_lock::try_lock(&self.0).ok().map(|()| WriteLockGuard(Arc::clone(&self.0)))
    }

    /// Waits until this process holds the lock.
    pub(super) fn acquire(&self) -> WriteLockGuard {
        // Some file systems have no flock. SQLite's own locks then keep writers apart, only slower.
        if let Err(error) = file_lock::lock(&self.0) {
            tracing::warn!(%error, "cannot lock the log; relying on SQLite's own locks");
        }
        WriteLockGuard(Arc::clone(&self.0))
    }
}

impl Drop for WriteLockGuard {
    fn drop(&mut self) {
        if let Err(error) = file_lock::unlock(&self.0) {
            tracing::warn!(%error, "cannot unlock the log");
        }
    }
}
