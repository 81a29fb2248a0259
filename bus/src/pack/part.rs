//! What parts are known by, and what the store of parts promises.
//!
//! The store is somewhere else (a table of the log, a map in tests); this room only asks it questions.

/// The number of a stored part: positive, given by the store, smaller than the numbers of all parts that refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId(i64);

impl PartId {
    /// Larger numbers do not fit into a recipe.
    const LARGEST: i64 = 1 << 60;

    /// The part with this number; none if it is not positive, or larger than a store could count to.
    pub const fn new(number: i64) -> Option<Self> {
        if 0 < number && number <= Self::LARGEST { Some(Self(number)) } else { None }
    }

    /// The number, as SQLite stores it.
    pub const fn as_i64(self) -> i64 {
        self.0
    }
}

/// What a part is found by: the first 16 bytes of a BLAKE3 hash of its content before compression. A part that refers to
/// others is hashed with their numbers instead of their content, so a key means something only within one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartKey([u8; 16]);

/// Separates the keys of parts of text from those of parts with references.
const TEXT_CONTEXT: &[u8; 32] = b"hookbus log: a part that is text";
const RECIPE_CONTEXT: &[u8; 32] = b"hookbus log: a part with recipe.";

impl PartKey {
    /// The key of a part that is text.
    pub(super) fn of_text(text: &[u8]) -> Self {
        Self::of_hash(blake3::keyed_hash(TEXT_CONTEXT, text))
    }

    /// The key of a part with this recipe.
    pub(super) fn of_recipe(recipe: &[u8]) -> Self {
        Self::of_hash(blake3::keyed_hash(RECIPE_CONTEXT, recipe))
    }

    fn of_hash(hash: blake3::Hash) -> Self {
        let [bytes @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = *hash.as_bytes();
        Self(bytes)
    }

    /// The key as bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The first 8 bytes as a number, for stores with a shorter key.
    pub fn short(&self) -> i64 {
        let [bytes @ .., _, _, _, _, _, _, _, _] = self.0;
        i64::from_le_bytes(bytes)
    }
}

/// Where parts are written. Every implementation promises that:
/// - `find` returns what `insert` returned for the same key, or nothing if that was rolled back or deleted;
/// - `insert` gives a larger number than any part ever had, also one that was deleted: readers remember numbers.
pub trait Parts {
    /// Why the store could not answer.
    type Error;

    /// The part with this key.
    fn find(&mut self, key: &PartKey) -> Result<Option<PartId>, Self::Error>;

    /// Stores a part that `find` did not find.
    fn insert(&mut self, key: &PartKey, data: &[u8]) -> Result<PartId, Self::Error>;
}

/// Where parts are read from.
pub trait PartSource {
    /// Why the store could not answer.
    type Error;

    /// Replaces the content of `data` by what was inserted as `id`. Returns whether there is such a part.
    fn read(&mut self, id: PartId, data: &mut Vec<u8>) -> Result<bool, Self::Error>;
}
