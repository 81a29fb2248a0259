//! Groups the elements of a long list into nodes, and nodes into nodes, where the content of an element says so. A list
//! that grew shares all nodes but the last open ones with the list before, so it costs a few references, not one per
//! element.

use std::ops::Range;

use super::intern::Interner;
use super::part::Parts;
use super::recipe::Cut;

/// Average count of elements in a node.
const MEAN_ELEMENTS: u64 = 4;
/// Average count of nodes in a node.
const MEAN_NODES: u64 = 12;
/// A node ends here in any case.
const MOST: usize = 64;
/// A node of elements has at least this many bytes of its own, where a reference counts as `REFERENCE`.
const LEAST_BYTES: usize = 96;
const REFERENCE: usize = 8;
/// The same for a node without references: there is less to gain.
const LEAST_TEXT: usize = 4096;

/// The open groups of one list: of elements first, then of nodes, and so on.
#[derive(Debug, Default)]
pub(super) struct Groups {
    levels: Vec<Option<Group>>,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    first_cut: usize,
    start: usize,
    elements: usize,
}

impl Groups {
    /// Adds the element at `span`, whose cuts are those from `first_cut` on. Replaces the cuts of a complete group by
    /// one cut for its node.
    pub(super) fn add<P: Parts>(
        &mut self,
        text: &[u8],
        span: Range<usize>,
        mut first_cut: usize,
        cuts: &mut Vec<Cut>,
        parts: &mut Interner<'_, P>,
    ) -> Result<(), P::Error> {
        let mut hash = hash_of(text, &span, cuts.get(first_cut..).unwrap_or_default());
        let mut start = span.start;
        for level in 0.. {
            if self.levels.len() <= level {
                self.levels.push(None);
            }
            let Some(slot) = self.levels.get_mut(level) else { break };
            let group = slot.get_or_insert(Group { first_cut, start, elements: 0 });
            group.elements += 1;
            let whole = group.start..span.end;
            let inside = cuts.get(group.first_cut..).unwrap_or_default();
            if !ends(level, group.elements, hash, &whole, inside) {
                break;
            }
            let node = parts.store(text, whole, inside)?;
            (first_cut, start, hash) = (group.first_cut, group.start, node.hash);
            *slot = None;
            cuts.truncate(first_cut);
            cuts.push(node);
        }
        Ok(())
    }
}

/// Whether a group ends with the element (or node) that has this hash.
fn ends(level: usize, elements: usize, hash: u64, span: &Range<usize>, cuts: &[Cut]) -> bool {
    let mean = if level == 0 { MEAN_ELEMENTS } else { MEAN_NODES };
    if level > 0 && elements < 2 {
        return false;
    }
    if !(hash >> 32).is_multiple_of(mean) && elements < MOST {
        return false;
    }
    match cuts {
        [] => span.len() >= LEAST_TEXT,
        [only] if only.span == *span => false,
        [..] => own_bytes(span, cuts) + REFERENCE * cuts.len() >= LEAST_BYTES,
    }
}

/// The bytes of `span` that are in no cut.
pub(super) fn own_bytes(span: &Range<usize>, cuts: &[Cut]) -> usize {
    cuts.iter().fold(span.len(), |left, cut| left.saturating_sub(cut.span.len()))
}

/// A hash of an element that depends on its content only. Only for the choice of boundaries: whoever makes it collide
/// gets a list that is grouped badly.
fn hash_of(text: &[u8], span: &Range<usize>, cuts: &[Cut]) -> u64 {
    let mut hash = 0;
    let mut at = span.start;
    for cut in cuts {
        hash = hash_bytes(hash, text.get(at..cut.span.start).unwrap_or_default());
        hash = mix(hash, cut.hash);
        at = cut.span.end;
    }
    hash_bytes(hash, text.get(at..span.end).unwrap_or_default())
}

fn hash_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    for &byte in rest {
        hash = mix(hash, u64::from(byte));
    }
    hash
}

const fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash.rotate_left(25) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}
