//! Noticing that a file has changed, without reading it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device, inode, length and change time of a file. The change time cannot be set back by a user, so an
/// equal stamp means equal content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    device: u64,
    inode: u64,
    /// The length in bytes.
    pub length: u64,
    /// The change time in seconds and nanoseconds.
    pub changed: (i64, i64),
}

impl Stamp {
    /// The stamp of the file at `path`, or of a link there that leads nowhere; all zero where there is none.
    pub fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path).or_else(|_| fs::symlink_metadata(path));
        metadata.map(|metadata| Self::from(&metadata)).unwrap_or_default()
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
