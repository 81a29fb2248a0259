//! A map that forgets what was not asked for lately, so that its size is bounded.

use std::collections::HashMap;
use std::hash::Hash;

/// Bytes kept in each of the two maps of a [`RecentMap`].
const HALF: usize = 8 << 20;
/// What an entry counts for beside its bytes.
const ENTRY: usize = 96;

/// Values with the bytes that they take.
#[derive(Debug)]
pub(super) struct RecentMap<K, V> {
    /// Asked for lately.
    young: HashMap<K, (V, usize)>,
    young_bytes: usize,
    /// What was in `young` before it was full. Dropped when `young` is full again.
    old: HashMap<K, (V, usize)>,
}

impl<K, V> Default for RecentMap<K, V> {
    fn default() -> Self {
        Self { young: HashMap::new(), young_bytes: 0, old: HashMap::new() }
    }
}

impl<K: Eq + Hash + Copy, V> RecentMap<K, V> {
    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        if let Some((value, bytes)) = self.old.remove(key)
            && !self.young.contains_key(key)
        {
            self.put(*key, value, bytes);
        }
        self.young.get(key).map(|(value, _)| value)
    }

    /// Replaces the value of the same key.
    pub(super) fn put(&mut self, key: K, value: V, bytes: usize) {
        if self.young_bytes > HALF {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes + ENTRY;
        if let Some((_, before)) = self.young.insert(key, (value, bytes)) {
            self.young_bytes -= before + ENTRY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_bytes_are_bounded() {
        let mut map = RecentMap::default();
        for key in 0..40_000_usize {
            map.put(key, key, 1000);
            assert_eq!(map.get(&0), Some(&0));
        }
        assert_eq!(map.get(&39_999), Some(&39_999));
        assert_eq!(map.get(&1), None);
        for _ in 0..40_000 {
            map.put(39_999, 39_999, 1000);
        }
        assert_eq!(map.get(&0), Some(&0), "what is replaced does not count twice");
        let kept: usize = map.young.values().chain(map.old.values()).map(|it| it.1).sum();
        assert!(kept < 2 * HALF + 2000, "{kept}");
    }
}
