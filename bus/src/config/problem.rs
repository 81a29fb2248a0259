//! A problem in a hooks file: its line, what is wrong, and what to write instead.

use std::fmt;

/// A problem in a hooks file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, ending with what to write instead.
    pub message: String,
    /// How much of the file it makes unusable.
    pub reach: Reach,
}

/// How much of a hooks file a problem makes unusable.
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
    /// A remark for the user; the entry still counts.
    pub(super) fn remark(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), reach: Reach::Nothing }
    }

    /// The entry cannot be used.
    pub(super) fn broken_entry(line: usize, message: impl Into<String>) -> Self {
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

/// The known name that is most similar to the written one, if any is similar enough.
pub fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let similarity = |name: &str| strsim::normalized_damerau_levenshtein(written, name);
    let similar = known.into_iter().filter(|name| similarity(name) >= 0.6);
    similar.max_by(|a, b| similarity(a).total_cmp(&similarity(b)))
}
