//! The words that one written word becomes while it is expanded.

use std::rc::Rc;

use super::super::follow::{Arg, Origin};
use super::super::limits;
use super::super::word::{UNKNOWN, Word};

/// Collects the words.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a fact of its own about the word or the list"
)]
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) args: Vec<Arg>,
    text: String,
    glob: bool,
    /// Whether there is a word even if its text is empty: a quote was seen.
    present: bool,
    quoted: bool,
    origin: Origin,
    pub(super) stream: bool,
    /// Whether a word may be any number of words.
    pub(super) more: bool,
    /// The code of `>(…)`, which reads what the program writes there.
    pub(super) readers: Vec<String>,
    /// How many bytes all words have together.
    pub(super) bytes: usize,
    /// Whether words were left out because there are too many.
    pub(super) cut: bool,
    /// The characters that split values, if the line has set `IFS`.
    pub(super) separators: Option<Rc<str>>,
    /// Whether unquoted values are split into words.
    pub(super) splits: bool,
}

impl Fields {
    /// Adds text that is not split.
    pub(super) fn push(&mut self, text: &str) {
        self.present = true;
        if self.text.len() + text.len() <= limits::WORD_BYTES {
            self.text.push_str(text);
        } else if !self.text.ends_with(UNKNOWN) {
            self.text.push(UNKNOWN);
        }
    }

    /// Adds text from between quotes.
    pub(super) fn push_quoted(&mut self, text: &str, origin: Origin) {
        self.quoted = true;
        self.origin = self.origin.max(origin);
        self.push(text);
    }

    /// Adds a wildcard.
    pub(super) fn push_glob(&mut self, text: &str) {
        self.glob = true;
        self.push(text);
    }

    /// Adds the value of an unquoted expansion, which the shell splits at blanks.
    pub(super) fn push_value(&mut self, text: &str, origin: Origin) {
        self.origin = self.origin.max(origin);
        if !self.splits {
            self.push(text);
            return;
        }
        if text.contains(['*', '?', '[']) {
            self.glob = true;
        }
        let separators = self.separators.clone();
        let mut pieces = text.split(|c| is_separator(separators.as_deref(), c));
        if let Some(first) = pieces.next()
            && !first.is_empty()
        {
            self.push(first);
        }
        for piece in pieces {
            if self.is_full() {
                break;
            }
            if self.present {
                self.end_word();
            }
            self.origin = self.origin.max(origin);
            if !piece.is_empty() {
                self.push(piece);
            }
        }
    }

    /// Adds several words, the first and the last of which join what is around them (`"$@"`).
    pub(super) fn push_words(&mut self, words: &[Word]) {
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                self.end_word();
            }
            self.glob |= word.is_glob();
            self.push_quoted(word.as_str(), Origin::Line);
        }
    }

    /// Whether no more words are taken.
    pub(super) fn is_full(&self) -> bool {
        self.args.len() >= limits::WORDS || self.bytes > limits::LINE_BYTES * 2
    }

    /// Ends the word that is being collected.
    pub(super) fn end_word(&mut self) {
        if !self.present {
            return;
        }
        if !self.quoted && self.splits && is_unknown(&self.text) {
            self.more = true;
        }
        let word = Word::new(std::mem::take(&mut self.text), self.glob);
        let stream = std::mem::take(&mut self.stream);
        self.bytes += word.as_str().len() + 64;
        if self.is_full() {
            self.cut = true;
            self.more = true;
        } else {
            self.args.push(Arg { word, origin: self.origin, stream });
        }
        self.glob = false;
        self.present = false;
        self.quoted = false;
        self.origin = Origin::Line;
    }
}

/// Whether a character splits values.
fn is_separator(separators: Option<&str>, c: char) -> bool {
    separators.map_or(matches!(c, ' ' | '\t' | '\n'), |separators| separators.contains(c))
}

fn is_unknown(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == UNKNOWN)
}
