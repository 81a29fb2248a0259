//! Texts that were packed lately, with their parts. To compare a text with the one seen before takes a tenth of the time
//! that its hash takes, and most of a long history was in the event before.

use super::part::PartId;
use super::recent::RecentMap;

/// Longer texts are not kept.
const LONGEST: usize = 64 * 1024;

/// The texts. Bounded: forgets those that were not seen lately.
#[derive(Debug, Default)]
pub(super) struct SeenTexts(RecentMap<Mark, Seen>);

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
        let seen = self.0.get(&mark(text)?)?;
        (*seen.text == *text).then_some((seen.id, seen.hash))
    }

    /// Remembers a text that is stored.
    pub(super) fn add(&mut self, text: &[u8], id: PartId, hash: u64) {
        if let Some(mark) = mark(text) {
            self.0.put(mark, Seen { text: text.into(), id, hash }, text.len());
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
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
    fn only_the_same_text_is_found() {
        let mut seen = SeenTexts::default();
        let id = PartId::new(1).unwrap();
        let mut text = vec![b'a'; 1000];
        seen.add(&text, id, 7);
        assert_eq!(seen.get(&text), Some((id, 7)));
        text[40] = b'b'; // the mark is the same
        assert_eq!(seen.get(&text), None);
        text[40] = b'a';
        assert_eq!(seen.get(&text), Some((id, 7)));
    }
}
