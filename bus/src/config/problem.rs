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
    /// The hook, the event key or the setting that it is about, as written; empty if that is the whole file.
    pub about: String,
    /// Whether what it is about stays in force as it was in the last good version of the file.
    pub kept: bool,
    /// Where in the file it is.
    pub place: Place,
}

/// How much of a hooks file a problem makes unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nothing: a remark.
    Nothing,
    /// Nothing: an example of a rule is missed. The rule counts as it is written.
    Example,
    /// The entry or setting: its last good version stays in force. If there is none, what can be read of it
    /// counts, and an entry that cannot be used counts as failed.
    Entry,
    /// The whole file: the last good version stays in force.
    File,
}

/// Where in a hooks file a problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A setting at the top level. An unknown key stands for the setting that it resembles.
    Setting(String),
    /// Everything under this key of `hooks:`.
    Event(String),
    /// One entry.
    Entry {
        /// The key that it is under; none in the list form.
        event: Option<String>,
        /// Its index in that list.
        index: usize,
    },
}

impl Place {
    /// The number of an entry in its list, counted from 1.
    pub(super) const fn number(&self) -> usize {
        match self {
            Self::Entry { index, .. } => *index + 1,
            Self::File | Self::Setting(_) | Self::Event(_) => 1,
        }
    }
}

impl Problem {
    /// A remark for the user; the entry still counts.
    pub(super) fn remark(line: usize, message: impl Into<String>) -> Self {
        Self::new(line, message, Reach::Nothing)
    }

    /// The entry or setting has a mistake.
    pub fn broken_entry(line: usize, message: impl Into<String>) -> Self {
        Self::new(line, message, Reach::Entry)
    }

    /// An example of a rule does not come out as expected.
    pub(super) fn missed_example(line: usize, message: impl Into<String>) -> Self {
        Self::new(line, message, Reach::Example)
    }

    /// The file cannot be used.
    pub(crate) fn broken_file(line: usize, message: impl Into<String>) -> Self {
        Self::new(line, message, Reach::File)
    }

    fn new(line: usize, message: impl Into<String>, reach: Reach) -> Self {
        let message = message.into();
        Self { line, message, reach, about: String::new(), kept: false, place: Place::File }
    }

    /// The same problem, about this hook, event key or setting.
    #[must_use]
    pub(super) fn about(self, about: &str, place: Place) -> Self {
        Self { about: about.to_owned(), place, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// `; did you mean …?` with the known name that is most similar, if any is; else `otherwise`.
pub(super) fn hint<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    match did_you_mean(written, known) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => otherwise.to_owned(),
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
