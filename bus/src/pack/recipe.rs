//! Recipes: how a piece of a payload is put together from bytes and parts.
//!
//! A recipe is a row of operations. Each starts with a varint whose two lowest bits say what follows:
//!
//! | low bits | meaning of the other bits |
//! |---|---|
//! | 0 | a count of bytes, which follow |
//! | 1 | the part whose number is this much (zigzag) after that of the part before it in this recipe |
//! | 2 | the same, and `, ` after it, as Python separates list elements |
//! | 3 | the same, and `,` after it, as JavaScript and Rust do |

use std::ops::Range;

use super::part::PartId;
use super::varint::{self, unzigzag, zigzag};

const BYTES: u64 = 0;
const PART: u64 = 1;
const PART_COMMA_SPACE: u64 = 2;
const PART_COMMA: u64 = 3;

/// A place of the payload where a part stands.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    pub(super) span: Range<usize>,
    pub(super) id: PartId,
    /// Decides whether a list node ends here; depends on the content of the part.
    pub(super) hash: u64,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Bytes(&'a [u8]),
    Part { id: PartId, then: &'static [u8] },
}

/// Appends the recipe for `span` of `text`, of which `cuts` are parts.
pub(super) fn write(text: &[u8], span: &Range<usize>, cuts: &[Cut], out: &mut Vec<u8>) {
    let mut at = span.start;
    let mut before = 0;
    for (index, cut) in cuts.iter().enumerate() {
        write_bytes(text.get(at..cut.span.start).unwrap_or_default(), out);
        let next = cuts.get(index + 1).map_or(span.end, |next| next.span.start);
        let (operation, separator) = match text.get(cut.span.end..next).unwrap_or_default() {
            b", " => (PART_COMMA_SPACE, 2),
            b"," => (PART_COMMA, 1),
            _ => (PART, 0),
        };
        varint::write((zigzag(cut.id.as_i64() - before) << 2) | operation, out);
        before = cut.id.as_i64();
        at = cut.span.end + separator;
    }
    write_bytes(text.get(at..span.end).unwrap_or_default(), out);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.is_empty() {
        varint::write((varint::of_len(bytes.len()) << 2) | BYTES, out);
        out.extend_from_slice(bytes);
    }
}

/// Reads a recipe, one operation after the other. After an error there are no more.
#[derive(Debug, Clone)]
pub(super) struct Steps<'a> {
    left: &'a [u8],
    before: i64,
}

/// The bytes are no recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoRecipe;

impl<'a> Steps<'a> {
    pub(super) const fn of(recipe: &'a [u8]) -> Self {
        Self { left: recipe, before: 0 }
    }

    fn step(&mut self) -> Option<Step<'a>> {
        let number = varint::read(&mut self.left)?;
        let then: &[u8] = match number & 3 {
            BYTES => {
                let (bytes, left) =
                    self.left.split_at_checked(usize::try_from(number >> 2).ok()?)?;
                self.left = left;
                return Some(Step::Bytes(bytes));
            }
            PART_COMMA_SPACE => b", ",
            PART_COMMA => b",",
            _ => b"",
        };
        self.before = self.before.checked_add(unzigzag(number >> 2))?;
        Some(Step::Part { id: PartId::new(self.before)?, then })
    }
}

impl<'a> Iterator for Steps<'a> {
    type Item = Result<Step<'a>, NoRecipe>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let step = self.step();
        if step.is_none() {
            self.left = &[];
        }
        Some(step.ok_or(NoRecipe))
    }
}
