//! The shape of a token: fixed text and runs of characters. Matched by hand rather than by a regex, so that a process that
//! sees one payload compiles nothing, and the cost of a match is bounded by the lengths in the table.

use std::ops::Range;

use super::alphabet::{ALNUM, Alphabet};
use super::boundary::{MAX_COLOUR, colour_len, ends_word, starts_word};
use super::look::Look;

/// A part of a token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece {
    /// This text.
    Text(&'static str),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// So many characters of an alphabet.
    Run(Alphabet, usize, usize),
}

/// A kind of token that is recognised by itself, without a name beside it.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: &'static str,
    /// The keyword, in the case that the token has it.
    pub(super) keyword: &'static str,
    /// What comes before the keyword and belongs to the token.
    pub(super) before: Option<Piece>,
    pub(super) after: Pieces,
}

#[derive(Debug)]
pub(super) enum Pieces {
    One(Piece),
    Many(&'static [Piece]),
}

/// Exactly `len` characters after the prefix.
pub(super) const fn fixed(
    kind: &'static str,
    keyword: &'static str,
    of: Alphabet,
    len: usize,
) -> Token {
    ranged(kind, keyword, of, len, len)
}

/// Between `min` and `max` characters after the prefix.
pub(super) const fn ranged(
    kind: &'static str,
    keyword: &'static str,
    of: Alphabet,
    min: usize,
    max: usize,
) -> Token {
    Token { kind, keyword, before: None, after: Pieces::One(Piece::Run(of, min, max)) }
}

/// Several parts after the prefix.
pub(super) const fn parts(
    kind: &'static str,
    keyword: &'static str,
    after: &'static [Piece],
) -> Token {
    Token { kind, keyword, before: None, after: Pieces::Many(after) }
}

/// A token whose keyword is in its middle.
pub(super) const fn around(
    kind: &'static str,
    before: Piece,
    keyword: &'static str,
    after: &'static [Piece],
) -> Token {
    Token { kind, keyword, before: Some(before), after: Pieces::Many(after) }
}

impl Token {
    pub(super) fn after(&self) -> &[Piece] {
        match &self.after {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many(pieces) => pieces,
        }
    }

    /// What can follow the keyword, for keywords that are too short to be searched for.
    pub(super) fn next(&self) -> Option<Alphabet> {
        let first = |text: &&str| Alphabet::of(text.get(..1).unwrap_or_default());
        match self.after().first()? {
            Piece::Run(alphabet, ..) => Some(*alphabet),
            Piece::Text(text) => Some(first(text)),
            Piece::OneOf(texts) => texts.iter().map(first).reduce(Alphabet::and),
        }
    }

    /// The token whose keyword is at `at`.
    pub(super) fn match_at(&self, look: &mut Look<'_>, at: usize) -> Option<Range<usize>> {
        let text = look.text;
        let behind = text.get(at..)?.strip_prefix(self.keyword.as_bytes())?;
        let before = text.get(..at)?;
        let start = match self.before {
            None => at,
            Some(Piece::Run(alphabet, min, max)) => {
                let run = alphabet.suffix(before, max + MAX_COLOUR);
                let colour = before.get(..at - run).zip(before.get(at - run..));
                let colour = colour.map_or(0, |(front, run)| colour_len(front, run));
                // If still more of them precede, the check of the boundary decides.
                let len = (run - colour).min(max);
                if len < min {
                    return None;
                }
                at - len
            }
            Some(Piece::Text(text)) => {
                before.ends_with(text.as_bytes()).then(|| at - text.len())?
            }
            Some(Piece::OneOf(texts)) => {
                at - texts.iter().find(|text| before.ends_with(text.as_bytes()))?.len()
            }
        };
        if !starts_word(text, start) {
            return None;
        }
        let (len, read) = match_pieces(self.after(), behind);
        look.spend(read);
        let len = len?;
        let end = at + self.keyword.len() + len;
        ends_word(text, start..end).then_some(start..end)
    }
}

/// How long a text is that starts with these pieces and does not go on after them; and how much of it was read.
pub(super) fn match_pieces(pieces: &[Piece], text: &[u8]) -> (Option<usize>, usize) {
    let mut len = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let rest = text.get(len..).unwrap_or_default();
        let found = match *piece {
            Piece::Text(text) => rest.starts_with(text.as_bytes()).then_some(text.len()),
            Piece::OneOf(texts) => {
                texts.iter().find(|text| rest.starts_with(text.as_bytes())).map(|text| text.len())
            }
            Piece::Run(alphabet, min, max) => {
                let is_last = index + 1 == pieces.len();
                let mut found = alphabet.prefix(rest, max + 2 * usize::from(is_last));
                // The full stop of a sentence, where tokens may have dots.
                while is_last && found > min && rest.get(found - 1) == Some(&b'.') {
                    found -= 1;
                }
                if found < min || found > max {
                    return (None, len + found);
                }
                Some(found)
            }
        };
        match found {
            Some(found) => len += found,
            None => return (None, len),
        }
    }
    let goes_on = text.get(len).is_some_and(|byte| ALNUM.has(*byte));
    ((!goes_on).then_some(len), len)
}
