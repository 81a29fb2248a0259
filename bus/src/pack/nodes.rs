//! List nodes that were packed lately, with their text. A list that grew begins with the nodes of the list before; to
//! compare their text is faster than to walk through it.

use super::part::PartId;
use super::recent::RecentMap;

/// A node is found by this many bytes at its start.
const START: usize = 256;
/// Longer nodes are not kept: the nodes in them are.
const LONGEST: usize = 128 * 1024;
/// Nodes of elements are at level 0, nodes of those at level 1. Higher ones are too long.
const LEVELS: usize = 2;
/// So many nodes with the same start are kept.
const ALTERNATIVES: usize = 4;

/// The nodes. Bounded: forgets those that were not seen lately.
#[derive(Debug, Default)]
pub(super) struct SeenNodes(RecentMap<Key, Seen>);

/// What else decides how a list is cut, beside its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Setting {
    /// How many levels of objects and lists inside an element are still cut.
    pub(super) depth: usize,
    /// The length from which on strings are parts.
    pub(super) string: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    setting: Setting,
    level: usize,
    start: u64,
    alternative: usize,
}

/// A node at the place that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeHere {
    pub(super) level: usize,
    pub(super) len: usize,
    pub(super) id: PartId,
    pub(super) hash: u64,
}

#[derive(Debug)]
struct Seen {
    text: Box<[u8]>,
    id: PartId,
    hash: u64,
}

impl SeenNodes {
    /// The node of the highest level below `levels` with which `text` starts.
    pub(super) fn find(
        &mut self,
        setting: Setting,
        levels: usize,
        text: &[u8],
    ) -> Option<NodeHere> {
        if levels == 0 {
            return None;
        }
        let start = hash_of_start(text)?;
        for level in (0..levels.min(LEVELS)).rev() {
            for alternative in 0..ALTERNATIVES {
                let key = Key { setting, level, start, alternative };
                let Some(seen) = self.0.get(&key) else { break };
                if text.starts_with(&seen.text) {
                    let Seen { text, id, hash } = seen;
                    return Some(NodeHere { level, len: text.len(), id: *id, hash: *hash });
                }
            }
        }
        None
    }

    /// Remembers a node that is stored.
    pub(super) fn add(
        &mut self,
        setting: Setting,
        level: usize,
        text: &[u8],
        (id, hash): (PartId, u64),
    ) {
        // A number could go on behind the node.
        let ends = matches!(text.last(), Some(b'"' | b'}' | b']'));
        if !ends || level >= LEVELS || text.len() > LONGEST {
            return;
        }
        let Some(start) = hash_of_start(text) else { return };
        let key = |alternative| Key { setting, level, start, alternative };
        let free = (0..ALTERNATIVES).find(|it| match self.0.get(&key(*it)) {
            Some(seen) => seen.id == id,
            None => true,
        });
        let alternative = free.unwrap_or(text.len() % ALTERNATIVES);
        self.0.put(key(alternative), Seen { text: text.into(), id, hash }, text.len());
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A hash of the bytes that a node is found by; none for shorter texts.
fn hash_of_start(text: &[u8]) -> Option<u64> {
    let start: &[u8; START] = text.first_chunk()?;
    let (words, _) = start.as_chunks::<8>();
    Some(words.iter().fold(0, |hash: u64, word| {
        (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting { depth: 3, string: 96 };

    fn text(last: &str) -> Vec<u8> {
        format!("\"{}{last}\"", "a".repeat(START)).into_bytes()
    }

    #[test]
    fn finds_the_highest_node_that_the_text_starts_with() {
        let mut nodes = SeenNodes::default();
        let id = |number| PartId::new(number).unwrap();
        let whole = [text("1"), b", ".to_vec(), text("2")].concat();
        nodes.add(SETTING, 0, &text("1"), (id(1), 11));
        nodes.add(SETTING, 0, &text("3"), (id(3), 13));
        nodes.add(SETTING, 1, &whole, (id(2), 12));
        let mut find = |levels, text: &[u8]| {
            nodes.find(SETTING, levels, text).map(|it| (it.level, it.len, it.id.as_i64(), it.hash))
        };
        let longer = [&whole, &b", 5]"[..]].concat();
        assert_eq!(find(9, &longer), Some((1, whole.len(), 2, 12)));
        assert_eq!(find(1, &longer), Some((0, START + 3, 1, 11)));
        assert_eq!(find(0, &longer), None);
        assert_eq!(find(9, &whole[..whole.len() - 1]), Some((0, START + 3, 1, 11)));
        assert_eq!(find(9, &text("3")), Some((0, START + 3, 3, 13)));
        assert_eq!(find(9, &text("4")), None);
        assert_eq!(find(9, b"\"a"), None);
        assert_eq!(nodes.find(Setting { depth: 2, ..SETTING }, 9, &whole), None);
    }
}
