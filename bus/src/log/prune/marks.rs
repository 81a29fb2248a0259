//! Which parts of payloads are needed: those that a row refers to, and those that these refer to.

use std::collections::HashMap;

use rusqlite::Connection;

use super::error::PruneError;
use crate::log::payload::PartTable;
use crate::pack::{PartSource, Unpacker};

/// How many words a block has.
const WORDS: usize = 64;

/// How many bits.
const BITS: i64 = 64 * 64;

/// The parts that are needed, as far as rows were looked at.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// A bit for each part, by its number, in blocks: a damaged log can name any number.
    bits: HashMap<i64, Box<[u64; WORDS]>>,
    unpacker: Unpacker,
}

impl Marks {
    /// Marks what the row `seq` with this skeleton needs. Returns how many bytes the parts have that were not marked yet.
    pub(super) fn add(
        &mut self,
        db: &Connection,
        seq: i64,
        skeleton: &[u8],
    ) -> Result<u64, PruneError> {
        let damaged = |why: String| PruneError::DamagedRow { seq, why };
        let references = self.unpacker.references_of_skeleton(skeleton);
        let mut pending = references.map_err(|error| damaged(error.to_string()))?;
        let (mut bytes, mut data) = (0, Vec::new());
        while let Some(id) = pending.pop() {
            if self.contains(id.as_i64()) {
                continue;
            }
            if !PartTable(db).read(id, &mut data)? {
                return Err(damaged(format!("part {} is missing", id.as_i64())));
            }
            self.mark(id.as_i64());
            bytes += data.len() as u64;
            let references = self.unpacker.references_of_part(&data);
            pending.extend(references.map_err(|error| damaged(error.to_string()))?);
        }
        Ok(bytes)
    }

    /// Whether a part is needed.
    pub(super) fn contains(&self, id: i64) -> bool {
        let Place { block, word, bit } = Place::of(id);
        let word = self.bits.get(&block).and_then(|words| words.get(word));
        word.is_some_and(|word| word & bit != 0)
    }

    fn mark(&mut self, id: i64) {
        let Place { block, word, bit } = Place::of(id);
        let words = self.bits.entry(block).or_insert_with(|| Box::new([0; WORDS]));
        if let Some(word) = words.get_mut(word) {
            *word |= bit;
        }
    }
}

/// Where the bit of a part is.
struct Place {
    block: i64,
    word: usize,
    bit: u64,
}

impl Place {
    fn of(id: i64) -> Self {
        let in_block = id.rem_euclid(BITS);
        let word = usize::try_from(in_block / 64).unwrap_or(0);
        Self { block: id.div_euclid(BITS), word, bit: 1 << (in_block % 64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_bit_of_its_own() {
        let mut marks = Marks::default();
        let marked = [1, 63, 64, 4095, 4096, 1 << 60];
        for id in marked {
            assert!(!marks.contains(id));
            marks.mark(id);
        }
        let near = marked.iter().flat_map(|id| [id - 1, *id, id + 1]);
        assert!(near.into_iter().all(|id| marks.contains(id) == marked.contains(&id)));
    }
}
