//! One at a time: whoever changes what a person agreed to, or what is connected, holds this from reading to
//! writing, and so builds on what the one before wrote. Nothing of it is left behind.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const MOST_TRIES: usize = 100;

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct HomeLock {
    path: PathBuf,
    _held: File,
}

impl HomeLock {
    /// Waits until nobody else holds it. The home is made if it is not there.
    pub(crate) fn take(home: &Path) -> Result<Self> {
        let unusable = |path: &Path| format!("cannot use {}", path.display());
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(home);
        made.with_context(|| unusable(home))?;
        let path = home.join("consent.lock");
        let mut tries = 0;
        loop {
            tries += 1;
            let mut options = OpenOptions::new();
            let file = options.create(true).append(true).mode(0o600).open(&path);
            let file = file.with_context(|| unusable(&path))?;
            file.lock().with_context(|| unusable(&path))?;
            // Whoever held it until now took the file away: this would be a lock that nobody else sees.
            let held = file.metadata().with_context(|| unusable(&path))?;
            let is_there = fs::metadata(&path).is_ok_and(|there| there.ino() == held.ino());
            // There are disks on which a file never has the same number twice.
            if is_there || tries > MOST_TRIES {
                return Ok(Self { path, _held: file });
            }
        }
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "the file of a lock stays behind");
        }
    }
}
