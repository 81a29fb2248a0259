//! The arguments of a program as options and operands. `read_arguments.rs` takes them apart.

use super::spec::{OptionName, Sub, spellings};
use crate::shell::word::Word;

/// A word, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// The text; unknown parts are [`UNKNOWN`](crate::shell::UNKNOWN).
    pub(crate) text: &'a str,
    /// Whether the shell matches it against files.
    pub(crate) glob: bool,
}

impl<'a> Text<'a> {
    pub(crate) const fn literal(text: &'a str) -> Self {
        Self { text, glob: false }
    }

    pub(crate) fn to_word(self) -> Word {
        if self.glob { Word::glob(self.text) } else { Word::literal(self.text) }
    }

    /// The same word, cut to this part.
    pub(crate) const fn part(self, text: &'a str) -> Self {
        Self { text, glob: self.glob }
    }
}

impl<'a> From<&'a Word> for Text<'a> {
    fn from(word: &'a Word) -> Self {
        Self { text: word.as_str(), glob: word.is_glob() }
    }
}

/// An option as given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GivenOption<'a> {
    /// The option in the table; None if the table does not know it.
    pub(crate) known: Option<&'static str>,
    /// How it is spelled.
    pub(crate) name: OptionName<'a>,
    /// Its value. For an unknown option without `=` the next word, which may be its value.
    pub(crate) value: Option<Text<'a>>,
    /// Whether the value is this option's for sure.
    pub(crate) certain: bool,
}

impl GivenOption<'_> {
    /// Whether it has this spelling, or another one of the same option.
    pub(crate) fn is(&self, name: OptionName<'_>) -> bool {
        self.name == name
            || self.known.is_some_and(|known| spellings(known).any(|each| each == name))
    }
}

/// A word that is not an option.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand<'a> {
    /// The word.
    pub(crate) word: Text<'a>,
    /// Whether it is one for sure.
    pub(crate) certainty: Certainty,
    /// Whether it is behind `--`.
    pub(crate) behind_dashes: bool,
}

/// Whether a word is an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It is.
    Operand,
    /// It may be the value of the unknown option before it.
    OperandOrValue,
    /// It begins with an unknown part, so that it may be an option, or nothing.
    Anything,
}

/// The arguments of a program, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Arguments<'a> {
    /// The options.
    pub(crate) options: Vec<GivenOption<'a>>,
    /// The operands, beginning with the words of the subcommand (its first name, if it has several).
    pub(crate) operands: Vec<Operand<'a>>,
    /// The subcommand, if the table has it.
    pub(crate) sub: Option<&'static Sub>,
    /// How many operands name that subcommand.
    pub(crate) sub_words: usize,
    /// The known beginnings of the words that may be options and are not known in full.
    pub(crate) unknown_options: Vec<&'a str>,
    /// Whether `--` was given.
    pub(crate) dashes: bool,
    /// The words that named the subcommand, if it was not by its first name.
    pub(crate) sub_as_written: Vec<Operand<'a>>,
}

impl<'a> Arguments<'a> {
    /// The operands behind the subcommand.
    pub(crate) fn rest(&self) -> &[Operand<'a>] {
        self.operands.get(self.sub_words..).unwrap_or_default()
    }
}
