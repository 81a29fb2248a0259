//! What a program of a shell line is compared with: a command as people write it (`git push --force`), or what makes a
//! line hard to judge (`opaque`, `code_from`).

use std::fmt;

use super::commands::CommandFact;
use crate::shell::{CodeSource, CommandPattern, Match, OpaqueKind, ParsedInvocation};

/// One comparison of a program.
#[derive(Debug, Clone)]
pub enum ProgramMatch {
    /// It is this command.
    Command(CommandPattern),
    /// A part of the line cannot be understood: for this reason, or for any.
    Opaque(Option<OpaqueKind>),
    /// It runs code that is not in the line, from this source.
    CodeFrom(CodeSource),
}

/// What a [`ProgramMatch`] is asked about: each program of a line, and each part of it that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSubject {
    /// The program with this index.
    Program(usize),
    /// The opaque part with this index.
    Opaque(usize),
    /// The code from elsewhere with this index.
    Code(usize),
}

impl RunSubject {
    /// All of them in a line.
    pub(super) fn all(command: &CommandFact) -> impl Iterator<Item = Self> {
        let view = &command.view;
        (0..view.programs.len())
            .map(Self::Program)
            .chain((0..view.opaque.len()).map(Self::Opaque))
            .chain((0..view.foreign_code.len()).map(Self::Code))
    }

    /// As a person reads it.
    pub fn shown(self, command: &CommandFact) -> String {
        let view = &command.view;
        match self {
            Self::Program(index) => {
                let Some(program) = view.programs.get(index) else { return String::new() };
                let mut text = program.program.to_string();
                for word in &program.args {
                    text.push(' ');
                    text.push_str(&word.to_string());
                }
                text
            }
            Self::Opaque(index) => {
                view.opaque.get(index).map_or_else(String::new, |it| it.text.clone())
            }
            Self::Code(index) => {
                let by = view.foreign_code.get(index).map(|code| code.by);
                by.map_or_else(String::new, |by| Self::Program(by).shown(command))
            }
        }
    }
}

impl ProgramMatch {
    /// Whether `subject` matches. What depends on a word that is not known matches nothing.
    pub(super) fn matches(
        &self,
        subject: RunSubject,
        command: &CommandFact,
        programs: &[ParsedInvocation<'_>],
    ) -> bool {
        match (self, subject) {
            (Self::Command(pattern), RunSubject::Program(index)) => {
                programs.get(index).is_some_and(|it| pattern.matches(it) == Match::Yes)
            }
            (Self::Opaque(kind), RunSubject::Opaque(index)) => command
                .view
                .opaque
                .get(index)
                .is_some_and(|opaque| kind.is_none_or(|kind| kind == opaque.kind)),
            (Self::CodeFrom(source), RunSubject::Code(index)) => {
                command.view.foreign_code.get(index).is_some_and(|code| code.source == *source)
            }
            (Self::Command(_) | Self::Opaque(_) | Self::CodeFrom(_), _) => false,
        }
    }
}

/// The name of a source in a policy.
pub const SOURCES: [(&str, CodeSource); 4] = [
    ("download", CodeSource::Download),
    ("decoded", CodeSource::Decoded),
    ("output", CodeSource::Output),
    ("variable", CodeSource::Variable),
];

/// The name of a reason in a policy.
pub const REASONS: [(&str, OpaqueKind); 3] =
    [("syntax", OpaqueKind::Syntax), ("program", OpaqueKind::Program), ("code", OpaqueKind::Code)];

impl fmt::Display for ProgramMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(pattern) => write!(f, "`{pattern}`"),
            Self::Opaque(kind) => {
                let name = REASONS.iter().find(|(_, it)| Some(*it) == *kind).map(|(name, _)| *name);
                write!(f, "opaque{}{}", if name.is_some() { " " } else { "" }, name.unwrap_or(""))
            }
            Self::CodeFrom(source) => {
                let name =
                    SOURCES.iter().find(|(_, it)| it == source).map_or("", |(name, _)| *name);
                write!(f, "code from {name}")
            }
        }
    }
}
