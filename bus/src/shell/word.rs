//! One word of a shell command after the shell's own expansions, as far as they can be known without running
//! anything.

use std::fmt;

/// Stands for a part of a word that is not known before the command runs: `$X`, `$(date)`.
pub const UNKNOWN: char = '\u{FFFC}';

/// A word: quotes removed, known variables and `~` filled in, unknown parts as [`UNKNOWN`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Word {
    text: String,
    /// Whether an unquoted `*`, `?` or `[…]` is in it, which the shell matches against files.
    glob: bool,
}

impl Word {
    /// A word that is just this text.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), glob: false }
    }

    /// A word with wildcards that the shell expands.
    pub fn glob(text: impl Into<String>) -> Self {
        Self { text: text.into(), glob: true }
    }

    /// A word with this text, with or without wildcards.
    pub(crate) const fn new(text: String, glob: bool) -> Self {
        Self { text, glob }
    }

    /// A word of which nothing is known.
    pub fn unknown() -> Self {
        Self::literal(UNKNOWN.to_string())
    }

    /// Its text; unknown parts are [`UNKNOWN`].
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether all of it is known.
    pub fn is_known(&self) -> bool {
        !self.text.contains(UNKNOWN)
    }

    /// Whether the shell expands it to the files that match.
    pub const fn is_glob(&self) -> bool {
        self.glob
    }
}

/// Unknown parts are shown as `…`.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text.replace(UNKNOWN, "…"))
    }
}
