//! Partitions: how the events of one observer are divided among its workers. All events of a session
//! are in the same partition, so that they stay in order.

use sha2::{Digest, Sha256};

/// How many partitions `share: session` makes, and so how many workers can be busy at once.
const SHARED: usize = 8;

/// One partition of an observer's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Partition {
    index: usize,
    of: usize,
}

impl Partition {
    /// The partitions of an observer: one, or eight with `share: session`.
    pub(crate) fn all(shared: bool) -> Vec<Self> {
        let of = if shared { SHARED } else { 1 };
        (0..of).map(|index| Self { index, of }).collect()
    }

    /// Whether the events of this session belong to it.
    pub(crate) fn contains(self, session: &str) -> bool {
        let digest = Sha256::digest(session.as_bytes());
        usize::from(digest[0]) % self.of == self.index
    }

    /// Its name in files and keys: `0of1`, `3of8`.
    pub(crate) fn key(self) -> String {
        format!("{}of{}", self.index, self.of)
    }

    /// The partitions that hold the same events while `share` is set the other way.
    pub(crate) fn with_sharing_switched(self) -> Vec<Self> {
        Self::all(self.of == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_is_in_exactly_one_partition() {
        for session in ["", "a", "b", "2026-11-16", "ü"] {
            let holders = Partition::all(true).into_iter().filter(|part| part.contains(session));
            assert_eq!(holders.count(), 1, "{session}");
            assert!(Partition::all(false)[0].contains(session));
        }
    }
}
