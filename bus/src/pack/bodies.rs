//! Parts that were read lately, decompressed: the events of a session have most of their parts in common.

use std::collections::HashMap;
use std::sync::Arc;

use super::part::PartId;
use super::sealed::Body;

/// Bytes kept in each of the two maps.
const HALF: usize = 4 << 20;
/// What an entry counts for beside its bytes.
const ENTRY: usize = 96;

/// Larger bodies are not kept.
const LARGEST: usize = 128 * 1024;

/// What a part is, and its bytes.
pub(super) type OpenPart = (Body, Arc<[u8]>);

type Entries = HashMap<PartId, OpenPart>;

/// The bodies. Bounded: forgets those that were not asked for lately.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    /// Asked for lately.
    young: Entries,
    young_bytes: usize,
    /// What was in `young` before it was full. Dropped when `young` is full again.
    old: Entries,
}

impl Bodies {
    pub(super) fn get(&mut self, id: PartId) -> Option<OpenPart> {
        if let Some((kind, body)) = self.young.get(&id) {
            return Some((*kind, Arc::clone(body)));
        }
        let (kind, body) = self.old.remove(&id)?;
        self.add(id, kind, &body);
        Some((kind, body))
    }

    pub(super) fn add(&mut self, id: PartId, kind: Body, body: &Arc<[u8]>) {
        if body.len() > LARGEST {
            return;
        }
        let bytes = body.len() + ENTRY;
        if self.young_bytes + bytes > HALF {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(id, (kind, Arc::clone(body)));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
