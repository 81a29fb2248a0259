//! Which parts of payloads are needed: those that a row refers to, and those that these refer to.

use std::collections::HashMap;

use rusqlite::Connection;

use super::error::PruneError;
use crate::log::payload::PartTable;
use crate::pack::{PartId, PartSource, UnpackError, Unpacker};

/// How many words a block has.
const WORDS: usize = 64;

/// How many bits.
const BITS: i64 = 64 * 64;

/// The parts that are needed, as far as rows were looked at.
#[derive(Debug, Default)]
pub(in crate::log) struct Marks {
    /// A bit for each part, by its number, in blocks: a damaged log can name any number.
    bits: HashMap<i64, Box<[u64; WORDS]>>,
    unpacker: Unpacker,
    bases: Bases,
}

/// Whether a part is needed because another one is compressed with it.
#[derive(Debug, Default)]
enum Bases {
    /// It is.
    #[default]
    Needed,
    /// It is not: before it is deleted, the needed parts that are compressed with it are written anew. They are here, by the
    /// number of the part that they are compressed with.
    Replaceable(HashMap<i64, Vec<PartId>>),
}

impl Marks {
    /// Marks only parts whose own bytes are needed. A secret must not stay because another text is compressed with it.
    pub(in crate::log) fn without_bases() -> Self {
        Self { bases: Bases::Replaceable(HashMap::new()), ..Self::default() }
    }

    /// Writes the needed parts anew that are compressed with the part `base`, which is about to be deleted.
    pub(in crate::log) fn detach(&mut self, db: &Connection, base: i64) -> Result<(), PruneError> {
        let Bases::Replaceable(compressed_with) = &mut self.bases else { return Ok(()) };
        let mut update = db.prepare_cached("UPDATE parts SET data = ?2 WHERE id = ?1")?;
        for id in compressed_with.remove(&base).unwrap_or_default() {
            let data = self.unpacker.without_base(id, &mut PartTable(db));
            let data = data.map_err(|error| match error {
                UnpackError::Store(error) => PruneError::from(error),
                UnpackError::MissingPart(_) | UnpackError::Unreadable(_) => {
                    PruneError::DamagedPart { part: id.as_i64(), why: error.to_string() }
                }
            })?;
            update.execute((id.as_i64(), data))?;
        }
        Ok(())
    }

    /// Marks what the row `seq` with this skeleton needs. Returns how many bytes the parts have that were not marked yet.
    pub(in crate::log) fn add(
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
            let mut references = references.map_err(|error| damaged(error.to_string()))?;
            let base = Unpacker::base_of_part(&data).map_err(|error| damaged(error.to_string()))?;
            if let (Bases::Replaceable(compressed_with), Some(base)) = (&mut self.bases, base) {
                compressed_with.entry(base.as_i64()).or_default().push(id);
                references.retain(|part| *part != base);
            }
            pending.extend(references);
        }
        Ok(bytes)
    }

    /// Whether a part is needed.
    pub(in crate::log) fn contains(&self, id: i64) -> bool {
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
