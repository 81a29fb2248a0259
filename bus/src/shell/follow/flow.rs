//! What flows between commands: the text, as far as it is known, and where it comes from.

use super::super::limits;
use super::super::view::CodeSource;
use super::super::word::{UNKNOWN, Word};

/// Where a text comes from. Ordered: of two origins the later one tells more about the danger of running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Origin {
    /// It is written in the line, or there is none.
    #[default]
    Line,
    /// A file that was there before.
    File,
    /// A program that is known to print harmless code: `ssh-agent -s`.
    Harmless,
    /// A variable that is not known.
    Variable,
    /// Some other program.
    Output,
    /// A program that decodes.
    Decoded,
    /// The network.
    Download,
}

impl Origin {
    /// What it means for code that comes from there; None if that is no foreign code.
    pub(crate) const fn code_source(self) -> Option<CodeSource> {
        match self {
            Self::Line | Self::File | Self::Harmless => None,
            Self::Variable => Some(CodeSource::Variable),
            Self::Output => Some(CodeSource::Output),
            Self::Decoded => Some(CodeSource::Decoded),
            Self::Download => Some(CodeSource::Download),
        }
    }
}

/// What a command prints, or reads on stdin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    /// The programs that write it.
    pub(crate) from: Vec<usize>,
    /// The text, if it can be told; unknown parts are [`UNKNOWN`].
    pub(crate) text: Option<String>,
    pub(crate) origin: Origin,
    /// The paths that it lists, one per line, if they are known better than the text: `ls -d ~/*`, `find ~`.
    pub(crate) items: Vec<Word>,
}

impl Flow {
    /// A text that is written in the line.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::unknown(Origin::Line) }
    }

    /// Something that cannot be told.
    pub(crate) const fn unknown(origin: Origin) -> Self {
        Self { from: Vec::new(), text: None, origin, items: Vec::new() }
    }

    /// Whether there is nothing: stdin is what the line's is.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.text.is_none() && matches!(self.origin, Origin::Line)
    }

    /// A list of paths.
    pub(crate) const fn listing(items: Vec<Word>) -> Self {
        Self { from: Vec::new(), text: None, origin: Origin::Output, items }
    }

    /// Adds what is printed after it.
    pub(crate) fn append(&mut self, next: Self) {
        self.from.extend(next.from);
        let (nothing, nothing_more) =
            (self.text.as_deref() == Some(""), next.text.as_deref() == Some(""));
        if !nothing_more && next.items.is_empty() || !nothing && self.items.is_empty() {
            self.items.clear();
        } else if self.items.len() + next.items.len() <= limits::WORDS {
            self.items.extend(next.items);
        }
        self.origin = self.origin.max(next.origin);
        // What is known of a text stays known beside what is not: `{ cat x; echo line; } | sh`.
        let is_blank = |text: &str| text.trim().is_empty();
        match (&mut self.text, next.text) {
            (Some(text), Some(more)) => text.push_str(&more),
            (Some(text), None) if !is_blank(text) => {
                text.push(UNKNOWN);
                text.push('\n');
            }
            (text @ None, Some(more)) if !is_blank(&more) => {
                *text = Some(format!("{UNKNOWN}\n{more}"));
            }
            (text, _) => *text = None,
        }
    }
}
