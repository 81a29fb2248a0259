//! Packs payloads: cuts the parts out, and compresses what is left.

use super::cut::cut;
use super::intern::{Interner, Known};
use super::part::Parts;
use super::sealed::{Body, Compression};
use super::{recipe, varint};

/// The first byte of a skeleton. Other formats get other numbers.
pub(super) const FORMAT: u8 = 1;

/// A payload cannot be longer: no log can hold a longer value (`SQLITE_MAX_LENGTH`).
pub(super) const LONGEST_PAYLOAD: usize = 1_000_000_000;

/// Shorter payloads are stored as they are, without a look inside.
const SHORTEST_PACKED: usize = 768;

/// A payload as it is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packed {
    /// The payload itself: packing would not make it much smaller.
    AsIs,
    /// What [`Unpacker::unpack`](super::Unpacker::unpack) turns into the payload.
    Skeleton(Vec<u8>),
}

/// Packs payloads for one store, one after the other. Keeps its memory and knows what the store has, so use one for many
/// payloads.
///
/// Its owner calls [`commit`](Self::commit) or [`roll_back`](Self::roll_back) with the store's transaction, and
/// [`clear`](Self::clear) when another process may have deleted parts or replaced the store.
#[derive(Debug)]
pub struct Packer {
    known: Known,
    recipe: Vec<u8>,
}

impl Default for Packer {
    fn default() -> Self {
        Self::new(Compression::WhereItPays)
    }
}

impl Packer {
    /// A packer that compresses, or not.
    pub fn new(compression: Compression) -> Self {
        Self { known: Known::new(compression), recipe: Vec::new() }
    }

    /// The parts inserted since the last call are there to stay.
    pub fn commit(&mut self) {
        self.known.commit();
    }

    /// Forgets the parts that were inserted since the last [`commit`](Self::commit).
    pub fn roll_back(&mut self) {
        self.known.roll_back();
    }

    /// Forgets what the store has.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// Stores the parts of `payload` that `store` does not have yet, and returns how to put it together again.
    pub fn pack<P: Parts>(&mut self, payload: &[u8], store: &mut P) -> Result<Packed, P::Error> {
        if payload.len() < SHORTEST_PACKED || payload.len() > LONGEST_PAYLOAD {
            return Ok(Packed::AsIs);
        }
        let cuts = cut(payload, Interner { store, known: &mut self.known })?;
        if cuts.is_empty() {
            let skeleton = self.skeleton(payload.len(), Body::Text, payload);
            let pays = skeleton.len() < payload.len() - payload.len() / 8;
            return Ok(if pays { Packed::Skeleton(skeleton) } else { Packed::AsIs });
        }
        let mut body = std::mem::take(&mut self.recipe);
        body.clear();
        recipe::write(payload, &(0..payload.len()), &cuts, &mut body);
        let skeleton = self.skeleton(payload.len(), Body::Recipe, &body);
        self.recipe = body;
        Ok(Packed::Skeleton(skeleton))
    }

    /// The payload as a skeleton without parts, for a column in which all BLOBs are skeletons. Payloads must not be longer
    /// than SQLite allows.
    pub fn wrap(&mut self, payload: &[u8]) -> Vec<u8> {
        self.skeleton(payload.len(), Body::Text, payload)
    }

    fn skeleton(&mut self, len: usize, kind: Body, body: &[u8]) -> Vec<u8> {
        let mut skeleton = Vec::with_capacity(body.len() / 2 + 16);
        skeleton.push(FORMAT);
        varint::write(varint::of_len(len), &mut skeleton);
        self.known.sealer.seal(kind, body, &mut skeleton);
        skeleton
    }
}
