//! Parts in memory: for tests, and to train a dictionary.

use std::collections::HashMap;
use std::convert::Infallible;

use super::part::{PartId, PartKey, PartSource, Parts};

/// A store of parts that ends with the process.
#[derive(Debug, Default, Clone)]
pub struct MemoryParts {
    ids: HashMap<PartKey, PartId>,
    data: Vec<Vec<u8>>,
}

impl MemoryParts {
    /// The data of all parts, in the order of their numbers.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.data.iter().map(Vec::as_slice)
    }

    /// Stores a part without a key, as a damaged log might have it. None if there is no number left.
    pub fn push(&mut self, data: Vec<u8>) -> Option<PartId> {
        self.data.push(data);
        i64::try_from(self.data.len()).ok().and_then(PartId::new)
    }
}

impl Parts for MemoryParts {
    type Error = NoNumberLeft;

    fn find(&mut self, key: &PartKey) -> Result<Option<PartId>, Self::Error> {
        Ok(self.ids.get(key).copied())
    }

    fn insert(&mut self, key: &PartKey, data: &[u8]) -> Result<PartId, Self::Error> {
        let id = self.push(data.to_vec()).ok_or(NoNumberLeft)?;
        self.ids.insert(*key, id);
        Ok(id)
    }
}

impl PartSource for MemoryParts {
    type Error = Infallible;

    fn read(&mut self, id: PartId, data: &mut Vec<u8>) -> Result<bool, Self::Error> {
        let index = usize::try_from(id.as_i64() - 1).ok();
        let found = index.and_then(|index| self.data.get(index));
        data.clear();
        data.extend_from_slice(found.map_or(&[], Vec::as_slice));
        Ok(found.is_some())
    }
}

/// There are 2^63 parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no number is left for another part")]
pub struct NoNumberLeft;
