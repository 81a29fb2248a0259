//! Something wrong in a hooks file: where, what, and what to write instead.

use std::fmt;

/// A complaint about a hooks file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, ending with the way out.
    pub message: String,
    /// How far it reaches.
    pub reach: Reach,
}

/// What a problem puts out of force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nothing: the rest of the entry counts.
    Nothing,
    /// The entry: it counts as failed.
    Entry,
    /// The whole file: the last good version stays in force.
    File,
}

impl Problem {
    /// Worth a word, but nothing is lost by it.
    pub(crate) fn remark(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), reach: Reach::Nothing }
    }

    /// The entry cannot be used.
    pub(crate) fn broken_entry(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), reach: Reach::Entry }
    }

    /// The file cannot be used.
    pub(crate) fn broken_file(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), reach: Reach::File }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// What was probably meant, where something known is near enough.
pub fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let near = |name: &str| strsim::normalized_damerau_levenshtein(written, name);
    known.into_iter().filter(|name| near(name) >= 0.6).max_by(|a, b| near(a).total_cmp(&near(b)))
}
