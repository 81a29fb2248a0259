//! The temporary directory of one run: a home, a working directory, a directory for programs and one for
//! temporary files. It is removed when it is dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

#[derive(Debug)]
pub(super) struct Scratch {
    root: TempDir,
}

impl Scratch {
    pub(super) fn new() -> Self {
        // Always the same length, so that agents wrap and cut paths in the same way in every run.
        let root =
            tempfile::Builder::new().prefix("agent-").tempdir().expect("a temporary directory");
        let scratch = Self { root };
        for folder in [scratch.home(), scratch.work(), scratch.programs(), scratch.temporary()] {
            fs::create_dir(folder).expect("a fresh directory");
        }
        scratch
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.root().join("tmp")
    }

    fn programs(&self) -> PathBuf {
        self.root().join("bin")
    }

    /// Writes an executable outside of the working directory; returns its path.
    pub(super) fn program(&self, name: &str, content: &str) -> PathBuf {
        let path = self.programs().join(name);
        write(&path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
        path
    }
}

/// Writes a file, and creates its directory.
pub(super) fn write(path: &Path, content: &str) {
    let above = path.parent().expect("a file is in a directory");
    fs::create_dir_all(above).expect("the directories above a file");
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
