//! A closer look at the places where a keyword was found: what each rule reads around its keyword, and the candidates that
//! come of it.

mod assignment;
mod command;
mod credentials;
mod header;
mod manifest;
mod name;
mod pem;
mod plausible;
mod url;
mod value;

use std::borrow::Cow;
use std::ops::Range;

use super::unescape::Unescaped;

pub(super) use assignment::{Assignment, Operator, assignment};
pub(super) use command::{COMMANDS, Command};
pub(super) use credentials::{docker_auth, sql_password};
pub(super) use header::{authorization, bearer, cookies};
pub(super) use manifest::kubernetes_secret;
pub(super) use name::{NAME_KEYWORDS, named_secret, words};
pub(super) use pem::private_key;
pub(super) use plausible::is_placeholder;
pub(super) use url::{url_keywords, url_password};

/// How much a rule knows about what it found. Where two ranges overlap, the one that knows more names the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
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
pub(super) struct Candidate {
    pub(super) range: Range<usize>,
    pub(super) kind: Cow<'static, str>,
    pub(super) rank: Rank,
}

/// The text that is looked at, what was found in it, and how much more work may be done.
#[derive(Debug)]
pub(super) struct Look<'a> {
    pub(super) view: &'a Unescaped<'a>,
    pub(super) text: &'a [u8],
    /// Whether a bare `"` is part of the syntax around the strings rather than of a string.
    pub(super) is_json: bool,
    pub(super) found: Vec<Candidate>,
    budget: usize,
}

/// What may be read in total, as a multiple of the length of the text: enough for ordinary texts many times over, and it
/// keeps a text of nothing but keywords linear.
const READS_PER_BYTE: usize = 8;

impl<'a> Look<'a> {
    pub(super) fn new(view: &'a Unescaped<'a>, is_json: bool) -> Self {
        let text = view.text();
        let budget = text.len().saturating_mul(READS_PER_BYTE).saturating_add(64 * 1024);
        Self { view, text, is_json, found: Vec::new(), budget }
    }

    /// Counts work. At zero, the rest of the hits is no longer examined.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.budget = self.budget.saturating_sub(bytes);
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.budget == 0
    }

    pub(super) fn add(
        &mut self,
        range: Range<usize>,
        kind: impl Into<Cow<'static, str>>,
        rank: Rank,
    ) {
        if !range.is_empty() {
            self.found.push(Candidate { range, kind: kind.into(), rank });
        }
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.text.get(range).unwrap_or_default()
    }

    pub(super) fn from(&self, at: usize) -> &'a [u8] {
        self.text.get(at..).unwrap_or_default()
    }

    pub(super) fn before(&self, at: usize) -> &'a [u8] {
        self.text.get(..at).unwrap_or_default()
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// Past spaces and tabs, at most `limit` of them.
    pub(super) fn skip_blanks(&self, at: usize, limit: usize) -> usize {
        let blanks = self.from(at).iter().take(limit);
        at + blanks.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
    }
}
