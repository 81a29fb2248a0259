//! Texts that were packed lately, with their parts. To compare a text with the one seen before takes a tenth of the time
//! that its hash takes, and most of a long history was in the event before.

use std::collections::HashMap;

use super::part::PartId;

/// Bytes kept in each of the two maps.
const HALF: usize = 8 << 20;
/// What an entry counts for beside its bytes.
const ENTRY: usize = 96;
/// Longer texts are not kept.
const LONGEST: usize = 64 * 1024;

/// The texts. Bounded: forgets those that were not seen lately.
#[derive(Debug, Default)]
pub(super) struct SeenTexts {
    /// Seen lately.
    young: HashMap<Mark, Seen>,
    young_bytes: usize,
    /// What was in `young` before it was full. Dropped when `young` is full again.
    old: HashMap<Mark, Seen>,
}

/// Where a text is looked for. Texts with the same mark replace each other.
type Mark = (usize, [u64; 4]);

#[derive(Debug)]
struct Seen {
    text: Box<[u8]>,
    id: PartId,
    hash: u64,
}

impl SeenTexts {
    /// The part with exactly this text, and its hash.
    pub(super) fn get(&mut self, text: &[u8]) -> Option<(PartId, u64)> {
        let mark = mark(text)?;
        if let Some(seen) = self.young.get(&mark) {
            return (*seen.text == *text).then_some((seen.id, seen.hash));
        }
        let seen = self.old.remove(&mark).filter(|seen| *seen.text == *text)?;
        let found = (seen.id, seen.hash);
        self.put(mark, seen);
        Some(found)
    }

    /// Remembers a text that is stored.
    pub(super) fn add(&mut self, text: &[u8], id: PartId, hash: u64) {
        if let Some(mark) = mark(text) {
            self.put(mark, Seen { text: text.into(), id, hash });
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn put(&mut self, mark: Mark, seen: Seen) {
        if self.young_bytes > HALF {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += seen.text.len() + ENTRY;
        self.young.insert(mark, seen);
    }
}

/// The length and bytes of four places, which most texts differ in; none if the text is too long to be kept.
fn mark(text: &[u8]) -> Option<Mark> {
    let last = text.len().checked_sub(8)?;
    let word =
        |at: usize| text.get(at..).and_then(<[u8]>::first_chunk).map(|it| u64::from_le_bytes(*it));
    let places = [word(1.min(last))?, word(last / 3)?, word(last / 3 * 2)?, word(last)?];
    (text.len() <= LONGEST).then_some((text.len(), places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_is_found_and_memory_is_bounded() {
        let mut seen = SeenTexts::default();
        let id = PartId::new(1).unwrap();
        let mut text = vec![b'a'; 1000];
        seen.add(&text, id, 7);
        assert_eq!(seen.get(&text), Some((id, 7)));
        text[40] = b'b'; // the mark is the same
        assert_eq!(seen.get(&text), None);
        for number in 0..40_000_usize {
            let mut text = vec![b'x'; 1000];
            text[1..9].copy_from_slice(&number.to_le_bytes());
            seen.add(&text, id, 7);
        }
        let kept: usize =
            seen.young.values().chain(seen.old.values()).map(|it| it.text.len()).sum();
        assert!(kept < 2 * HALF + 2000, "{kept}");
        assert_eq!(seen.get(&[b'a'; 1000]), None);
    }
}
