//! What changes when a file does, so that it need not be read again while it does not.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file it is, how long, and when anything about it changed, which no tool can turn back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) length: u64,
    /// In seconds and nanoseconds.
    pub(super) changed: (i64, i64),
}

impl Stamp {
    /// Of what lies at `path` now; all nothing where nothing does.
    pub(super) fn of(path: &Path) -> Self {
        fs::metadata(path).map(|about| Self::from(&about)).unwrap_or_default()
    }
}

impl From<&Metadata> for Stamp {
    fn from(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            length: about.len(),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}
