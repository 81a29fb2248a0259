//! A command pattern: parsed once, compared with many invocations.

use std::fmt;
use std::str::FromStr;

use super::alternative::{Alternative, ProgramPattern};
use super::error::PatternError;
use super::outcome::Match;
use super::wildcard::shown;
use super::words::alternatives;
use crate::shell::programs::ParsedInvocation;

/// A pattern for commands, written as people write commands.
///
/// - The first word is the program: without directories, with `*` if wanted (`mkfs*`). With a path it must be at that
///   path. `NAME=value` before it must be set for the program.
/// - Options must be given, in any order, spelling and bundle: `rm -rf` matches `rm --recursive x -f`. An option with
///   a value compares that too (`git -c core.hooksPath=*`).
/// - For a program with subcommands the other words are the beginning of its operands (`docker system prune`); those
///   behind the subcommand can have others between them. For others each word must be one of the operands.
/// - `*` stands for any text, `{a,b}` for either; quotes take both literally.
#[derive(Debug, Clone)]
pub struct CommandPattern {
    text: String,
    pub(super) alternatives: Vec<Alternative>,
}

impl CommandPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let alternatives: Result<Vec<_>, _> =
            alternatives(text)?.iter().map(|words| Alternative::new(words)).collect();
        Ok(Self { text: text.trim().to_owned(), alternatives: alternatives? })
    }

    /// Whether the invocation matches.
    pub fn matches(&self, parsed: &ParsedInvocation<'_>) -> Match {
        self.alternatives.iter().map(|each| each.matches(parsed)).max().unwrap_or(Match::No)
    }

    /// The names of the programs that it is about, each in the form of [`ParsedInvocation::names`]. A name with `*`
    /// in it must be compared with every program.
    pub fn program_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for alternative in &self.alternatives {
            let name = match &alternative.program {
                ProgramPattern::Name(name) | ProgramPattern::Path(_, name) => name.clone(),
                ProgramPattern::Wildcard(pattern) => shown(pattern),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for CommandPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Two patterns are the same if their texts are.
impl PartialEq for CommandPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for CommandPattern {}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
