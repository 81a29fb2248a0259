//! Remembers which parts are stored, so that the old messages of a long history cost no query each.

use std::collections::HashMap;

use super::part::{PartId, PartKey};

/// Keys kept in each of the two maps, about 40 bytes each.
const HALF: usize = 32 * 1024;

/// Keys of parts that are in one store. Bounded: forgets the keys that were not asked for lately.
#[derive(Debug, Default)]
pub(super) struct PartCache {
    /// Asked for lately.
    young: HashMap<PartKey, PartId>,
    /// What was in `young` before it was full. Dropped when `young` is full again.
    old: HashMap<PartKey, PartId>,
    uncommitted: Vec<PartKey>,
}

impl PartCache {
    /// The part with this key, if it is known to be stored.
    pub(super) fn get(&mut self, key: &PartKey) -> Option<PartId> {
        if let Some(id) = self.young.get(key) {
            return Some(*id);
        }
        let id = self.old.get(key).copied()?;
        self.found(*key, id);
        Some(id)
    }

    /// Remembers a part that the store has.
    pub(super) fn found(&mut self, key: PartKey, id: PartId) {
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, id);
    }

    /// Remembers a part that the open transaction inserted.
    pub(super) fn inserted(&mut self, key: PartKey, id: PartId) {
        self.found(key, id);
        self.uncommitted.push(key);
    }

    /// The open transaction was committed.
    pub(super) fn commit(&mut self) {
        self.uncommitted.clear();
    }

    /// Forgets what was inserted since the last commit.
    pub(super) fn roll_back(&mut self) {
        for key in self.uncommitted.drain(..) {
            self.young.remove(&key);
            self.old.remove(&key);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> PartKey {
        PartKey::of_text(&number.to_le_bytes())
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_asked_for() {
        let mut cache = PartCache::default();
        let kept = PartId::new(1).unwrap();
        cache.found(key(0), kept);
        for number in 1..5 * HALF {
            cache.found(key(number), PartId::new(2).unwrap());
            if number % 1000 == 0 {
                assert_eq!(cache.get(&key(0)), Some(kept));
            }
        }
        assert!(cache.young.len() + cache.old.len() <= 2 * HALF);
        assert_eq!(cache.get(&key(1)), None);
    }

    #[test]
    fn a_rollback_forgets_only_what_was_not_committed() {
        let mut cache = PartCache::default();
        let id = PartId::new(1).unwrap();
        cache.inserted(key(1), id);
        cache.commit();
        cache.inserted(key(2), id);
        cache.found(key(3), id);
        cache.roll_back();
        assert_eq!([1, 2, 3].map(|number| cache.get(&key(number)).is_some()), [true, false, true]);
    }
}
