//! What flows between commands: the text, as far as it is known, and where it comes from.

use super::super::view::CodeSource;

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
    /// The text, if it can be told; unknown parts are [`UNKNOWN`](super::super::word::UNKNOWN).
    pub(crate) text: Option<String>,
    pub(crate) origin: Origin,
}

impl Flow {
    /// A text that is written in the line.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { from: Vec::new(), text: Some(text.into()), origin: Origin::Line }
    }

    /// Something that cannot be told.
    pub(crate) const fn unknown(origin: Origin) -> Self {
        Self { from: Vec::new(), text: None, origin }
    }

    /// Whether there is nothing: stdin is what the line's is.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.text.is_none() && matches!(self.origin, Origin::Line)
    }

    /// Adds what is printed after it.
    pub(crate) fn append(&mut self, next: Self) {
        self.from.extend(next.from);
        self.origin = self.origin.max(next.origin);
        match (&mut self.text, next.text) {
            (Some(text), Some(more)) => text.push_str(&more),
            (text, _) => *text = None,
        }
    }
}
