//! Where a word, a quote or a substitution ends. These functions only move a position; they keep no tree.

use super::parser::{Parser, Unreadable};

/// Whether a byte ends an unquoted word.
pub(super) const fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// How long the variable name at the start of a text is; 0 if there is none.
pub(crate) fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => bytes
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .unwrap_or(bytes.len()),
        Some(_) | None => 0,
    }
}

/// An assignment in a word, split: name, index (`[1]`), whether it appends, and the value as written.
pub(crate) fn split_assignment(word: &str) -> Option<(&str, Option<&str>, bool, &str)> {
    let (name, mut rest) = word.split_at_checked(name_length(word))?;
    if name.is_empty() {
        return None;
    }
    let mut index = None;
    if let Some(inner) = rest.strip_prefix('[') {
        let length = subscript_length(rest)?;
        index = inner.get(..length - 2);
        rest = rest.get(length..)?;
    }
    if let Some(value) = rest.strip_prefix("+=") {
        return Some((name, index, true, value));
    }
    rest.strip_prefix('=').map(|value| (name, index, false, value))
}

/// How long the subscript is that a text starts with, brackets included. Those inside it count in pairs:
/// `[${b[0]}]`.
pub(crate) fn subscript_length(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => open += 1,
            b']' if open <= 1 => return Some(at + 1),
            b']' => open -= 1,
            _ => {}
        }
    }
    None
}

impl Parser<'_> {
    /// The end of the word that starts at `from`.
    pub(crate) fn word_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        let mut at = from;
        while let Some(byte) = self.byte(at) {
            self.burn()?;
            at = match byte {
                b'<' | b'>' if self.byte(at + 1) == Some(b'(') => self.substitution_end(at + 2)?,
                b'(' if at > from && self.opens_pattern(at) => self.balanced_end(at + 1)?,
                b'(' if self.opens_array(from, at) => self.balanced_end(at + 1)?,
                _ if ends_word(byte) => break,
                _ => self.piece_end(at)?,
            };
        }
        Ok(at)
    }

    /// Like [`Self::piece_end`], and knows `<(…)` and `>(…)`.
    pub(crate) fn word_piece_end(&mut self, at: usize) -> Result<usize, Unreadable> {
        match self.byte(at) {
            Some(b'<' | b'>') if self.byte(at + 1) == Some(b'(') => self.substitution_end(at + 2),
            Some(_) | None => self.piece_end(at),
        }
    }

    /// The end of the quote, substitution, escape or plain byte at `at`.
    pub(crate) fn piece_end(&mut self, at: usize) -> Result<usize, Unreadable> {
        match self.byte(at) {
            Some(b'\\') => Ok((at + 2).min(self.len())),
            Some(b'\'') => self.find(at + 1, b'\''),
            Some(b'"') => self.double_quote_end(at + 1),
            Some(b'`') => self.backquote_end(at + 1),
            Some(b'$') => self.dollar_end(at),
            Some(_) => Ok(at + 1),
            None => Err(Unreadable),
        }
    }

    /// `?(…)`, `*(…)`, `+(…)`, `@(…)`, `!(…)`: a pattern, not a subshell.
    fn opens_pattern(&self, at: usize) -> bool {
        matches!(self.byte(at - 1), Some(b'?' | b'*' | b'+' | b'@' | b'!'))
    }

    /// `name=(…)`.
    fn opens_array(&self, from: usize, at: usize) -> bool {
        self.slice(from, at)
            .strip_suffix('=')
            .map(|name| name.strip_suffix('+').unwrap_or(name))
            .is_some_and(|name| !name.is_empty() && name_length(name) == name.len())
    }

    /// The position behind the next `byte`.
    fn find(&mut self, from: usize, byte: u8) -> Result<usize, Unreadable> {
        let rest = self.bytes_from(from);
        let length = rest.iter().position(|found| *found == byte).ok_or(Unreadable)?;
        Ok(from + length + 1)
    }

    fn double_quote_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        let mut at = from;
        loop {
            self.burn()?;
            at = match self.byte(at).ok_or(Unreadable)? {
                b'"' => return Ok(at + 1),
                b'\\' => at + 2,
                b'`' => self.backquote_end(at + 1)?,
                // A single quote behind `$` is plain text between double quotes.
                b'$' if self.byte(at + 1) == Some(b'\'') => at + 1,
                b'$' if self.byte(at + 1) == Some(b'"') => at + 1,
                b'$' => self.dollar_end(at)?,
                _ => at + 1,
            };
        }
    }

    fn backquote_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        let mut at = from;
        loop {
            self.burn()?;
            match self.byte(at).ok_or(Unreadable)? {
                b'`' => return Ok(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    /// The end of what the `$` at `at` starts; of the `$` alone if it starts nothing.
    pub(crate) fn dollar_end(&mut self, at: usize) -> Result<usize, Unreadable> {
        match self.byte(at + 1) {
            Some(b'(') => {
                if self.byte(at + 2) == Some(b'(')
                    && let Ok(end) = self.arithmetic_end(at + 3)
                {
                    return Ok(end);
                }
                self.substitution_end(at + 2)
            }
            Some(b'{') => self.braced_end(at + 2),
            Some(b'[') => self.bracketed_end(at + 2),
            Some(b'\'') => self.ansi_end(at + 2),
            Some(b'"') => self.double_quote_end(at + 2),
            Some(b'$' | b'!' | b'?' | b'#' | b'@' | b'*' | b'-' | b'0'..=b'9') => Ok(at + 2),
            Some(_) | None => Ok(at + 1 + name_length(self.slice(at + 1, self.len()))),
        }
    }

    fn ansi_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        let mut at = from;
        loop {
            self.burn()?;
            match self.byte(at).ok_or(Unreadable)? {
                b'\'' => return Ok(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    /// The end of `${…}`, from behind its brace.
    fn braced_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        self.nested(|parser| {
            let mut at = from;
            loop {
                parser.burn()?;
                at = match parser.byte(at).ok_or(Unreadable)? {
                    b'}' => return Ok(at + 1),
                    _ => parser.piece_end(at)?,
                };
            }
        })
    }

    fn bracketed_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        self.nested(|parser| {
            let (mut at, mut open) = (from, 1);
            loop {
                parser.burn()?;
                at = match parser.byte(at).ok_or(Unreadable)? {
                    b']' if open == 1 => return Ok(at + 1),
                    b']' => {
                        open -= 1;
                        at + 1
                    }
                    b'[' => {
                        open += 1;
                        at + 1
                    }
                    _ => parser.piece_end(at)?,
                };
            }
        })
    }

    /// The position behind the `)` that closes an open one, by counting parentheses.
    pub(crate) fn balanced_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        self.nested(|parser| {
            let (mut at, mut open) = (from, 1_usize);
            loop {
                parser.burn()?;
                at = match parser.byte(at).ok_or(Unreadable)? {
                    b')' if open == 1 => return Ok(at + 1),
                    b')' => {
                        open -= 1;
                        at + 1
                    }
                    b'(' => {
                        open += 1;
                        at + 1
                    }
                    _ => parser.piece_end(at)?,
                };
            }
        })
    }

    /// The position behind `))`, from behind `((`. Fails if the text is a subshell in a subshell instead.
    pub(crate) fn arithmetic_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        let inner = self.balanced_end(from)?;
        if self.byte(inner) == Some(b')') { Ok(inner + 1) } else { Err(Unreadable) }
    }
}
