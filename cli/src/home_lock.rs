//! An advisory lock on the home of hookbus. A command that changes approvals or connections holds it from reading the
//! files until it has written them, so that concurrent commands do not overwrite each other. Its file is removed afterwards.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const MOST_TRIES: usize = 100;

/// The lock, released when it is dropped.
#[derive(Debug)]
pub(crate) struct HomeLock {
    path: PathBuf,
    _file: File,
}

impl HomeLock {
    /// Waits for the lock. Creates the home if it does not exist.
    pub(crate) fn take(home: &Path) -> Result<Self> {
        let unusable = |path: &Path| format!("cannot use {}", path.display());
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(home);
        created.with_context(|| unusable(home))?;
        let path = home.join("consent.lock");
        let mut tries = 0;
        loop {
            tries += 1;
            let mut options = OpenOptions::new();
            let file = options.create(true).append(true).mode(0o600).open(&path);
            let file = file.with_context(|| unusable(&path))?;
            file.lock().with_context(|| unusable(&path))?;
            // The last holder removed the file before this one was locked: then the next command would lock a new file.
            let locked = file.metadata().with_context(|| unusable(&path))?;
            let is_current = fs::metadata(&path).is_ok_and(|there| there.ino() == locked.ino());
            // Some file systems report another inode number each time.
            if is_current || tries > MOST_TRIES {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "lock file not removed");
        }
    }
}
