//! What a program of a shell line is compared with: a command as people write it (`git push --force`), or what makes a
//! line hard to judge (`opaque`, `code_from`).

use std::fmt;
use std::ops::Deref;

use super::commands::CommandFact;
use super::facts::Facts;
use crate::shell::{CodeSource, CommandPattern, Match, OpaqueKind, ParsedInvocation};

/// One comparison of a program.
#[derive(Debug, Clone)]
pub enum ProgramMatch {
    /// It is this command, of one of these programs.
    Command(CommandPattern, ProgramNames),
    /// A part of the line cannot be understood: for this reason, or for any.
    Opaque(Option<OpaqueKind>),
    /// It runs code that is not in the line, from this source.
    CodeFrom(CodeSource),
}

/// Comparisons of which one must match.
#[derive(Debug, Clone)]
pub struct ProgramMatches {
    any_of: Vec<ProgramMatch>,
    /// The programs that they are about.
    names: ProgramNames,
    /// Whether some are not about a program.
    has_others: bool,
}

/// A program of a line, and its names.
#[derive(Debug)]
pub(super) struct ProgramFact<'a> {
    pub(super) invocation: ParsedInvocation<'a>,
    names: ProgramNames,
}

/// A set of program names that may hold others too: one bit for each name. Most patterns are about other programs than
/// those of a line, and this tells so without a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramNames([u64; WORDS]);

/// Enough bits that the ninety programs of one rule of the packs leave most of them free.
const WORDS: usize = 16;

impl ProgramNames {
    /// The programs that a pattern is about.
    fn of_pattern(pattern: &CommandPattern) -> Self {
        let names = pattern.program_names();
        if names.iter().any(|name| name.contains('*')) {
            return Self([u64::MAX; WORDS]);
        }
        names.iter().fold(Self::default(), |set, name| set.with(Self::one(name)))
    }

    /// FNV-1a, folded to a bit.
    fn one(name: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
        let (word, bit) = ((hash >> 32) % WORDS as u64, 1 << ((hash ^ (hash >> 40)) & 63));
        Self(std::array::from_fn(|at| if at as u64 == word { bit } else { 0 }))
    }

    /// Both sets.
    pub(super) fn with(self, other: Self) -> Self {
        let (mut all, Self(others)) = (self, other);
        all.0.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
        all
    }

    /// Whether both may hold the same name.
    pub(super) fn may_share(self, other: Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |common, (word, other)| common | (word & other)) != 0
    }
}

impl<'a> ProgramFact<'a> {
    pub(super) fn new(invocation: ParsedInvocation<'a>) -> Self {
        let names = invocation.names().map(ProgramNames::one);
        let names = names.fold(ProgramNames::default(), ProgramNames::with);
        Self { invocation, names }
    }

    /// Its names.
    pub(super) const fn names(&self) -> ProgramNames {
        self.names
    }
}

impl ProgramMatches {
    /// One of these must match.
    pub fn new(any_of: Vec<ProgramMatch>) -> Self {
        let of = |it: &ProgramMatch| match it {
            ProgramMatch::Command(_, names) => Some(*names),
            ProgramMatch::Opaque(_) | ProgramMatch::CodeFrom(_) => None,
        };
        let names = any_of.iter().filter_map(of).fold(ProgramNames::default(), ProgramNames::with);
        let has_others = any_of.iter().any(|it| of(it).is_none());
        Self { any_of, names, has_others }
    }

    /// Whether one may match in the lines of a call.
    pub(super) fn may_match(&self, facts: &Facts<'_>) -> bool {
        self.names.may_share(facts.program_names()) || self.has_others && facts.has_opaque_parts()
    }

    /// Whether one matches.
    pub(super) fn matches(
        &self,
        subject: RunSubject,
        command: &CommandFact,
        programs: &[ProgramFact<'_>],
    ) -> bool {
        if let RunSubject::Program(index) = subject
            && !programs.get(index).is_some_and(|it| self.names.may_share(it.names))
        {
            return false;
        }
        self.any_of.iter().any(|it| it.matches(subject, command, programs))
    }
}

impl Deref for ProgramMatches {
    type Target = [ProgramMatch];

    fn deref(&self) -> &[ProgramMatch] {
        &self.any_of
    }
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
    /// The command of this pattern.
    pub fn command(pattern: CommandPattern) -> Self {
        let names = ProgramNames::of_pattern(&pattern);
        Self::Command(pattern, names)
    }

    /// Whether `subject` matches. What depends on a word that is not known matches nothing.
    fn matches(
        &self,
        subject: RunSubject,
        command: &CommandFact,
        programs: &[ProgramFact<'_>],
    ) -> bool {
        match (self, subject) {
            (Self::Command(pattern, names), RunSubject::Program(index)) => {
                programs.get(index).is_some_and(|it| {
                    names.may_share(it.names) && pattern.matches(&it.invocation) == Match::Yes
                })
            }
            (Self::Opaque(kind), RunSubject::Opaque(index)) => command
                .view
                .opaque
                .get(index)
                .is_some_and(|opaque| kind.is_none_or(|kind| kind == opaque.kind)),
            (Self::CodeFrom(source), RunSubject::Code(index)) => {
                command.view.foreign_code.get(index).is_some_and(|code| code.source == *source)
            }
            (Self::Command(..) | Self::Opaque(_) | Self::CodeFrom(_), _) => false,
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
            Self::Command(pattern, _) => write!(f, "`{pattern}`"),
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
