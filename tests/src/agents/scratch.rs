//! The throw-away place one run happens in: a home, a work directory the agent starts in, a place for
//! programs and one for temporary files. It is gone when the last owner drops it.

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
        // Always the same length, so that no agent wraps or cuts a path in one run and not in another.
        let root = tempfile::Builder::new().prefix("agent-").tempdir().expect("a scratch place");
        let scratch = Self { root };
        for place in [scratch.home(), scratch.work(), scratch.programs(), scratch.temporary()] {
            fs::create_dir(place).expect("a fresh directory");
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

    /// Writes an executable outside of the work directory and says where it is.
    pub(super) fn program(&self, name: &str, content: &str) -> PathBuf {
        let path = self.programs().join(name);
        write(&path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
        path
    }
}

/// Writes a file, with the directories above it.
pub(super) fn write(path: &Path, content: &str) {
    let above = path.parent().expect("a file is in a directory");
    fs::create_dir_all(above).expect("the directories above a file");
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
