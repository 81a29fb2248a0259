//! Groups the elements of a long list into nodes, and nodes into nodes, where the content of an element says so. A list
//! that grew shares all nodes but the last open ones with the list before, so it costs a few references, not one per
//! element.

use std::ops::Range;

use super::intern::Interner;
use super::nodes::{NodeHere, Setting};
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
#[derive(Debug)]
pub(super) struct Groups {
    setting: Setting,
    levels: Vec<Option<Group>>,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    first_cut: usize,
    start: usize,
    elements: usize,
}

/// An element or a node whose end was just reached.
struct Passed {
    start: usize,
    end: usize,
    /// Its cuts are those from here on.
    first_cut: usize,
    hash: u64,
}

impl Groups {
    /// The groups of a list that is cut in this way.
    pub(super) const fn new(setting: Setting) -> Self {
        Self { setting, levels: Vec::new() }
    }

    /// Adds the element at `span`, whose cuts are those from `first_cut` on.
    pub(super) fn add<P: Parts>(
        &mut self,
        text: &[u8],
        span: Range<usize>,
        first_cut: usize,
        cuts: &mut Vec<Cut>,
        parts: &mut Interner<'_, P>,
    ) -> Result<(), P::Error> {
        let hash = hash_of(text, &span, cuts.get(first_cut..).unwrap_or_default());
        let element = Passed { start: span.start, end: span.end, first_cut, hash };
        self.add_at(0, element, text, cuts, parts)
    }

    /// Adds the node that starts at `start` if it was packed lately. Returns where it ends.
    pub(super) fn add_seen<P: Parts>(
        &mut self,
        text: &[u8],
        start: usize,
        cuts: &mut Vec<Cut>,
        parts: &mut Interner<'_, P>,
    ) -> Result<Option<usize>, P::Error> {
        // A node starts only where no group of its level or below is open.
        let free = self.levels.iter().position(Option::is_some).unwrap_or(usize::MAX);
        let rest = text.get(start..).unwrap_or_default();
        let Some(node) = parts.known.nodes.find(self.setting, free, rest) else { return Ok(None) };
        let NodeHere { level, len, id, hash } = node;
        let (end, first_cut) = (start + len, cuts.len());
        cuts.push(Cut { span: start..end, id, hash });
        while self.levels.len() <= level {
            self.levels.push(None);
        }
        self.add_at(level + 1, Passed { start, end, first_cut, hash }, text, cuts, parts)?;
        Ok(Some(end))
    }

    /// Adds an element or a node to the group at `lowest`. Replaces the cuts of a complete group by one cut for its node, and
    /// adds that at the next level.
    fn add_at<P: Parts>(
        &mut self,
        lowest: usize,
        mut passed: Passed,
        text: &[u8],
        cuts: &mut Vec<Cut>,
        parts: &mut Interner<'_, P>,
    ) -> Result<(), P::Error> {
        for level in lowest.. {
            if self.levels.len() <= level {
                self.levels.push(None);
            }
            let Some(slot) = self.levels.get_mut(level) else { break };
            let Passed { start, end, first_cut, hash } = passed;
            let group = slot.get_or_insert(Group { first_cut, start, elements: 0 });
            group.elements += 1;
            let whole = group.start..end;
            let inside = cuts.get(group.first_cut..).unwrap_or_default();
            if !ends(level, group.elements, hash, &whole, inside) {
                break;
            }
            let node = parts.store(text, whole.clone(), inside)?;
            let node_text = text.get(whole).unwrap_or_default();
            parts.known.nodes.add(self.setting, level, node_text, (node.id, node.hash));
            passed =
                Passed { start: group.start, end, first_cut: group.first_cut, hash: node.hash };
            *slot = None;
            cuts.truncate(passed.first_cut);
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
