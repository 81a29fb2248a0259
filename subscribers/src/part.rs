//! Parts: what several workers of one observer share out among them. All events of a session are in
//! one part, so that they stay in order.

use sha2::{Digest, Sha256};

/// How many parts a shared observer has, and so how many workers can be busy at once.
const SHARED: usize = 8;

/// One part of an observer's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    index: usize,
    of: usize,
}

impl Part {
    /// The parts of an observer.
    pub(crate) fn all(shared: bool) -> Vec<Self> {
        let of = if shared { SHARED } else { 1 };
        (0..of).map(|index| Self { index, of }).collect()
    }

    /// Whether the events of this session belong to it.
    pub(crate) fn holds(self, session: &str) -> bool {
        let digest = Sha256::digest(session.as_bytes());
        usize::from(digest[0]) % self.of == self.index
    }

    /// What it is called in files and keys.
    pub(crate) fn key(self) -> String {
        format!("{}of{}", self.index, self.of)
    }

    /// The parts that the same events are in when they are shared out otherwise.
    pub(crate) fn otherwise(self) -> Vec<Self> {
        Self::all(self.of == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_is_in_one_part() {
        for session in ["", "a", "b", "2026-11-16", "ü"] {
            let holders = Part::all(true).into_iter().filter(|part| part.holds(session));
            assert_eq!(holders.count(), 1, "{session}");
            assert!(Part::all(false)[0].holds(session));
        }
    }
}
