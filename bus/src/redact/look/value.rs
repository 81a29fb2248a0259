//! Where a value starts and ends: in quotes, or bare as in `KEY=value`, a URL query, YAML and a connection string.

use std::ops::Range;

use super::Look;
use super::assignment::NAME;

/// A value and how it was written.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) range: Range<usize>,
    pub(super) quoted: bool,
}

/// A bare value that is longer than this is cut off; what follows belongs to the same range of bytes anyway.
const MAX_BARE: usize = 16 * 1024;

impl Look<'_> {
    /// The value that starts at `at`.
    pub(super) fn value_at(&mut self, at: usize) -> Value {
        // Python's `b"…"` and `f'…'`, C#'s `@"…"`; the first element of a list.
        let open = match self.from(at) {
            [b'[', b'"' | b'\'', ..] => Some(at + 1),
            [b'\\', b'"' | b'\'', ..] if !self.is_json => Some(at + 1),
            [b'"' | b'\'' | b'`', ..] => Some(at),
            [b'b' | b'r' | b'u' | b'f' | b'B' | b'R' | b'L' | b'@', b'"' | b'\'', ..] => {
                Some(at + 1)
            }
            _ => None,
        };
        match open {
            Some(open) => {
                let mut range = self.quoted(open);
                let is_escaped = self.byte(at) == Some(b'\\');
                range.end -= usize::from(is_escaped && self.slice(range.clone()).ends_with(b"\\"));
                Value { range, quoted: true }
            }
            None => Value { range: self.bare(at), quoted: false },
        }
    }

    /// What is between the quote at `open` and the one that ends it.
    pub(super) fn quoted(&mut self, open: usize) -> Range<usize> {
        let quote = self.byte(open).unwrap_or(b'"');
        let level = self.view.quote_level(open);
        // `"""` of Python and TOML.
        let triple = [quote; 3];
        let start = if self.from(open).starts_with(&triple) { open + 3 } else { open + 1 };
        let mut at = start;
        loop {
            let rest = self.from(at);
            let next = if quote == b'"' {
                memchr::memchr(b'"', rest)
            } else {
                memchr::memchr3(quote, b'"', b'\n', rest)
            };
            let Some(found) = next.map(|next| at + next) else {
                self.spend(self.text.len() - start);
                return start..self.text.len();
            };
            let is_end = match self.byte(found) {
                Some(b'\n') => true,
                Some(byte) if byte == quote => self.view.quote_level(found) <= level,
                // A bare `"` ends the JSON string around a `'…`.
                Some(_) | None => self.is_json && self.view.quote_level(found) == 0,
            };
            if is_end {
                self.spend((found - start) / 8 + 1);
                return start..found;
            }
            at = found + 1;
        }
    }

    fn bare(&mut self, start: usize) -> Range<usize> {
        let rest = self.from(start);
        let rest = rest.get(..MAX_BARE).unwrap_or(rest);
        let len = rest.iter().enumerate().find(|(index, _)| self.ends_bare(start + index));
        let mut end = start + len.map_or(rest.len(), |(index, _)| index);
        self.spend(end - start);
        // `password: abc, user: x` and `(password=abc)`: what closes something that the value did not open.
        while let Some((last, front)) = self.slice(start..end).split_last() {
            let opened = |open: u8| front.contains(&open);
            let closes = match last {
                b',' | b';' | b'\\' => true,
                b')' => !opened(b'('),
                b']' => !opened(b'['),
                b'}' => !opened(b'{'),
                _ => false,
            };
            if !closes {
                break;
            }
            end -= 1;
        }
        start..end
    }

    /// Whether a bare value ends in front of the byte at `at`.
    fn ends_bare(&self, at: usize) -> bool {
        let rest = self.from(at);
        let Some((byte, behind)) = rest.split_first() else { return true };
        match byte {
            0..=b' ' | b'<' | b'>' => true,
            b'"' if self.is_json && self.view.quote_level(at) == 0 => true,
            // A quote inside a value (`PASSWORD=ab'cd`), unless what follows shows that it ends a string.
            b'"' | b'\'' | b'`' => behind.first().is_none_or(|next| {
                matches!(
                    next,
                    0..=b' ' | b',' | b'}' | b']' | b')' | b':' | b';' | b'"' | b'\'' | b'|'
                )
            }),
            b'&' => behind.first() == Some(&b'&') || is_assignment(behind),
            b';' => behind.first().is_none_or(|next| *next <= b' ') || is_assignment(behind),
            b',' => is_assignment(behind),
            b'|' => behind.first() == Some(&b'|'),
            _ => false,
        }
    }
}

/// `name=` after `&`, `;` or `,`: the next of several assignments.
fn is_assignment(text: &[u8]) -> bool {
    let blanks = text.iter().take(2).take_while(|byte| **byte == b' ').count();
    let text = text.get(blanks..).unwrap_or_default();
    // Connection strings have names of two words: `User Id=…`.
    let first = NAME.prefix(text, 40);
    let rest = text.get(first..).unwrap_or_default();
    let second = rest.strip_prefix(b" ").map_or(0, |rest| 1 + NAME.prefix(rest, 40));
    let is_equals = |at: usize| rest.get(at).is_some_and(|byte| matches!(byte, b'=' | b':'));
    first > 0 && (is_equals(0) || is_equals(second))
}
