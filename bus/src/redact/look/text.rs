//! The text that is looked at, what was found in it, and how much more may be read.

use std::borrow::Cow;
use std::ops::Range;

use super::super::unescape::Unescaped;

/// How much a rule knows about what it found. Where two ranges overlap, the one that knows more names the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The limit of work was reached, and the whole string is replaced.
    Unexamined,
    /// A name such as `password` says so.
    Named,
    /// The place says so: a header, a URL, an option of a program.
    Placed,
    /// The name of a service, and the shape of its tokens.
    Service,
    /// The token itself shows what it is.
    Token,
    /// The user's own settings.
    Own,
}

/// A range of the text that is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) range: Range<usize>,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) rank: Rank,
}

/// The text that is looked at, what was found in it, and how much more work may be done.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    pub(crate) view: &'a Unescaped<'a>,
    pub(crate) text: &'a [u8],
    /// Whether a bare `"` is part of the syntax around the strings rather than of a string.
    pub(crate) is_json: bool,
    pub(crate) found: Vec<Candidate>,
    budget: usize,
}

/// What may be read in total, as a multiple of the length of the text: enough for ordinary texts many times over, and it
/// keeps a text of nothing but keywords linear.
const READS_PER_BYTE: usize = 8;

impl<'a> Look<'a> {
    pub(crate) fn new(view: &'a Unescaped<'a>, is_json: bool) -> Self {
        let text = view.text();
        let budget = text.len().saturating_mul(READS_PER_BYTE).saturating_add(64 * 1024);
        Self { view, text, is_json, found: Vec::new(), budget }
    }

    /// Counts work. At zero, the rest of the hits is no longer examined.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.budget = self.budget.saturating_sub(bytes);
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.budget == 0
    }

    pub(crate) fn add(
        &mut self,
        range: Range<usize>,
        kind: impl Into<Cow<'static, str>>,
        rank: Rank,
    ) {
        if !range.is_empty() {
            self.found.push(Candidate { range, kind: kind.into(), rank });
        }
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.text.get(range).unwrap_or_default()
    }

    pub(crate) fn from(&self, at: usize) -> &'a [u8] {
        self.text.get(at..).unwrap_or_default()
    }

    pub(crate) fn before(&self, at: usize) -> &'a [u8] {
        self.text.get(..at).unwrap_or_default()
    }

    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// Past spaces and tabs, at most `limit` of them.
    pub(crate) fn skip_blanks(&self, at: usize, limit: usize) -> usize {
        let blanks = self.from(at).iter().take(limit);
        at + blanks.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
    }

    /// Past blanks, and what counts as one: no-break spaces, an escaped line break of a shell, colours of a terminal.
    pub(crate) fn skip_gap(&self, mut at: usize, limit: usize) -> usize {
        for _ in 0..4 {
            let next = self.skip_colours(self.skip_blanks(at, limit));
            let next = match self.from(next) {
                [0xc2, 0xa0, ..] | [b'\\', b'\n', ..] => next + 2,
                [b'\\', b'\r', b'\n', ..] => next + 3,
                _ => next,
            };
            if next == at {
                break;
            }
            at = next;
        }
        at
    }

    /// Past colours of a terminal: `\x1b[0m`, `\x1b[K`.
    pub(crate) fn skip_colours(&self, mut at: usize) -> usize {
        for _ in 0..4 {
            let Some(codes) = self.from(at).strip_prefix(b"\x1b[") else { break };
            let digits = codes.iter().take(12);
            let len = digits.take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
            if !matches!(codes.get(len), Some(b'm' | b'K')) {
                break;
            }
            at += 2 + len + 1;
        }
        at
    }
}
