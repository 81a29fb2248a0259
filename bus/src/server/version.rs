//! Which build of hookbus a process runs, so that an old daemon exits when a newer client calls.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// A build, ordered by version and then by the modification time of the program (after a rebuild).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuildVersion {
    version: [u32; 3],
    modified: i64,
}

impl BuildVersion {
    /// The build of this process. Call it once at the start: the program may be replaced later.
    pub fn current() -> Self {
        let modified =
            std::env::current_exe().and_then(fs::metadata).map_or(0, |file| file.mtime());
        let mut parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap_or(0));
        let version = std::array::from_fn(|_| parts.next().unwrap_or(0));
        Self { version, modified }
    }

    pub(super) fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        for (slot, part) in bytes.chunks_exact_mut(4).zip(self.version) {
            slot.copy_from_slice(&part.to_be_bytes());
        }
        bytes[12..].copy_from_slice(&self.modified.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 20] = bytes.try_into().ok()?;
        let part = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let modified = bytes[12..].try_into().ok().map(i64::from_be_bytes)?;
        Some(Self { version: [part(0), part(4), part(8)], modified })
    }
}

/// The version that users see.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_counts_before_the_modification_time() {
        let old = BuildVersion { version: [0, 9, 9], modified: 20 };
        let new = BuildVersion { version: [0, 10, 0], modified: 10 };
        assert!(old < new);
        assert!(new < BuildVersion { modified: 11, ..new });
        assert_eq!(BuildVersion::from_bytes(&new.to_bytes()), Some(new));
    }
}
