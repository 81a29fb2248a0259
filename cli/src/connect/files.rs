//! The files and directories that a connection touches: reading, writing and removing them.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result};

use crate::files::behind_links;
pub(super) use crate::files::write;

/// The mode of directories in the home of hookbus: it holds what users say to their agents.
pub(super) const PRIVATE: u32 = 0o700;

/// A file that a plan writes or removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingWrite {
    pub(super) path: PathBuf,
    /// Its present text; none if there is no such file.
    pub(super) now: Option<String>,
    /// The text to write; none to remove the file.
    pub(super) then: Option<String>,
}

impl PendingWrite {
    /// Writes or removes the file.
    pub(super) fn apply(&self) -> Result<()> {
        match &self.then {
            Some(text) => write(&self.path, text),
            None => remove(&self.path),
        }
    }
}

/// A file's text; none if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// A path with all symlinks resolved, as far as it exists.
pub(super) fn canonical(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|start| Some((start, fs::canonicalize(start).ok()?)));
    let Some((start, resolved)) = existing else { return path.to_owned() };
    let rest = path.strip_prefix(start).unwrap_or(path);
    if rest.as_os_str().is_empty() { resolved } else { resolved.join(rest) }
}

/// Creates the directories above `path`; returns those that were missing, outermost first.
pub(super) fn create_folders(path: &Path, mode: u32) -> Result<Vec<PathBuf>> {
    let Some(folder) = path.parent() else { return Ok(Vec::new()) };
    let mut missing: Vec<PathBuf> =
        folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    missing.reverse();
    let created = fs::DirBuilder::new().recursive(true).mode(mode).create(folder);
    created.with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(missing)
}

/// Removes a file; one that does not exist is no error.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(behind_links(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes those of these directories that are empty, innermost first.
pub(super) fn remove_folders(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        // Python's cache of the bridge's code does not count.
        drop(fs::remove_dir_all(folder.join("__pycache__")));
        if let Err(error) = fs::remove_dir(folder) {
            tracing::debug!(%error, folder = %folder.display(), "directory not removed");
        }
    }
}
