//! One word of a shell command after the shell's own expansions, as far as they can be known without running
//! anything.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::limits;

/// Stands for a part of a word that is not known before the command runs: `$X`, `$(date)`.
pub const UNKNOWN: char = '\u{FFFC}';

/// A word: quotes removed, known variables and `~` filled in, unknown parts as [`UNKNOWN`].
#[derive(Debug, Clone, Default)]
pub struct Word {
    text: String,
    /// Whether an unquoted `*`, `?` or `[…]` is in it, which the shell matches against files.
    glob: bool,
    /// How a word that is not known is written, if it is made of variables: `$f`, `$d/x`. Two such words are the same
    /// file while the variable keeps its value.
    written: Option<Arc<str>>,
}

/// How a word is written does not matter for what it is.
impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.glob == other.glob
    }
}

impl Eq for Word {}

impl Hash for Word {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        self.glob.hash(state);
    }
}

impl Word {
    /// A word that is just this text.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), glob: false, written: None }
    }

    /// A word with wildcards that the shell expands.
    pub fn glob(text: impl Into<String>) -> Self {
        Self { text: text.into(), glob: true, written: None }
    }

    /// A word with this text, with or without wildcards.
    pub(crate) const fn new(text: String, glob: bool) -> Self {
        Self { text, glob, written: None }
    }

    /// Remembers how a word is written that is not known but made of variables only.
    pub(crate) fn remember_written(&mut self, written: &str) {
        let plain = !written.contains('`') && !written.contains("$(") && written.contains('$');
        if plain && !self.is_known() && written.len() <= limits::PATH_BYTES {
            let plain: String =
                written.chars().filter(|c| !matches!(c, '"' | '{' | '}' | '\'')).collect();
            self.written = Some(plain.into());
        }
    }

    /// What tells a file from others: its path, or, if that is not known, the variables it is made of.
    pub(crate) fn identity(&self) -> Option<&str> {
        if self.is_known() { Some(&self.text) } else { self.written.as_deref() }
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
