//! One alternative of a pattern, and how it is compared with an invocation.

use super::error::PatternError;
use super::outcome::Match;
use super::wanted_option::WantedOption;
use super::wildcard::{ANY, compare, shown};
use crate::shell::programs::{
    Arguments, Certainty, Operand, ParsedInvocation, Reading, Text, program,
};
use crate::shell::view::Invocation;
use crate::shell::word::UNKNOWN;

/// A pattern without `{a,b}`.
#[derive(Debug, Clone)]
pub(super) struct Alternative {
    /// Variables that must be set for the program: `HUSKY=0 git commit`.
    variables: Vec<(String, String)>,
    /// The program.
    pub(super) program: ProgramPattern,
    /// The options that must be given.
    pub(super) options: Vec<WantedOption>,
    /// The other words.
    pub(super) words: Vec<String>,
    /// Where those must be.
    pub(super) place: Place,
    /// Whether the words are compared with a subcommand's name as written (`docker r*`), not its first name.
    as_written: bool,
}

/// Which program a pattern is about.
#[derive(Debug, Clone)]
pub(super) enum ProgramPattern {
    /// The one that this name stands for.
    Name(String),
    /// Every one whose name fits.
    Wildcard(String),
    /// The one at this path, whose name is the other text.
    Path(String, String),
}

/// Where the words of a pattern must be among the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// This many at the beginning, the others anywhere behind in this order.
    Beginning(usize),
    /// Anywhere, in any order.
    Anywhere,
}

impl Alternative {
    pub(super) fn new(words: &[String]) -> Result<Self, PatternError> {
        let is_variable = |word: &&String| {
            let name = word.split_once('=').map_or("", |(name, _)| name);
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let variables = words.iter().take_while(is_variable).filter_map(|word| {
            word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let variables: Vec<_> = variables.collect();
        let Some([name, arguments @ ..]) = words.get(variables.len()..) else {
            return Err(PatternError::Empty);
        };
        if name.starts_with('-') {
            return Err(PatternError::NoProgram { option: shown(name) });
        }
        let found = program(name);
        let pattern = if name.contains('/') {
            ProgramPattern::Path(name.clone(), found.name.to_owned())
        } else if name.contains(ANY) {
            ProgramPattern::Wildcard(name.clone())
        } else {
            ProgramPattern::Name(found.name.to_owned())
        };
        let texts: Vec<Text<'_>> = arguments.iter().map(|word| Text::literal(word)).collect();
        let arguments = Arguments::read(found.spec, &texts);
        let place = match found.spec {
            Some(spec) if spec.depth > 0 => Place::Beginning(spec.depth.max(arguments.sub_words)),
            Some(_) => Place::Anywhere,
            None => Place::Beginning(0),
        };
        Ok(Self {
            variables,
            program: pattern,
            options: arguments.options.iter().map(WantedOption::new).collect(),
            as_written: arguments.sub.is_none(),
            words: arguments.operands.iter().map(|operand| operand.word.text.to_owned()).collect(),
            place,
        })
    }

    /// Compares with an invocation in all the ways in which it can be read.
    pub(super) fn matches(&self, parsed: &ParsedInvocation<'_>) -> Match {
        let readings = parsed.readings.iter();
        readings.map(|reading| self.matches_reading(parsed, reading)).max().unwrap_or(Match::No)
    }

    fn matches_reading(&self, parsed: &ParsedInvocation<'_>, reading: &Reading<'_>) -> Match {
        match self.matches_program(parsed, reading) {
            Match::No => Match::No,
            // The arguments cannot be taken apart for a program that is not known.
            Match::Maybe => Match::Maybe,
            Match::Yes => self.matches_arguments(parsed.invocation, reading),
        }
    }

    pub(super) fn matches_program(
        &self,
        parsed: &ParsedInvocation<'_>,
        reading: &Reading<'_>,
    ) -> Match {
        let written = reading.written;
        match &self.program {
            ProgramPattern::Name(name) if name == reading.name => Match::Yes,
            ProgramPattern::Name(name) if written.contains(UNKNOWN) => {
                compare(name, Text::literal(written))
            }
            ProgramPattern::Name(_) => Match::No,
            ProgramPattern::Wildcard(name) => {
                compare(name, Text::literal(reading.name)).or(compare(name, Text::literal(written)))
            }
            ProgramPattern::Path(path, _) => compare(path, Text::from(&parsed.invocation.program)),
        }
    }

    fn matches_arguments(&self, invocation: &Invocation, reading: &Reading<'_>) -> Match {
        if self.is_for_other_subcommand(&reading.arguments) {
            return Match::No;
        }
        let mut outcome = self.matches_variables(invocation);
        for option in &self.options {
            if outcome == Match::No {
                return Match::No;
            }
            outcome = outcome.and(option.matches(invocation, &reading.arguments));
        }
        if outcome == Match::No {
            Match::No
        } else {
            outcome.and(self.matches_words(invocation, reading))
        }
    }

    /// Whether a word at the beginning is another one for certain. A first look: most patterns of a program are about
    /// other subcommands.
    fn is_for_other_subcommand(&self, arguments: &Arguments<'_>) -> bool {
        let Place::Beginning(count) = self.place else { return false };
        let may_be_as_written = self.as_written && !arguments.sub_as_written.is_empty();
        let mut leading = self.words.iter().take(count).zip(&arguments.operands);
        !may_be_as_written
            && leading
                .by_ref()
                .take_while(|(_, operand)| operand.certainty == Certainty::Operand)
                .any(|(word, operand)| compare(word, operand.word) == Match::No)
    }

    fn matches_variables(&self, invocation: &Invocation) -> Match {
        let set = |(name, value): &(String, String)| {
            let given = invocation.env.iter().rev().find(|(given, _)| given == name);
            given.map_or(Match::No, |(_, given)| compare(value, Text::from(given)))
        };
        self.variables.iter().map(set).min().unwrap_or(Match::Yes)
    }

    pub(super) fn matches_words(&self, invocation: &Invocation, reading: &Reading<'_>) -> Match {
        let arguments = &reading.arguments;
        let place = |operands: &[Operand<'_>]| match self.place {
            Place::Anywhere => anywhere(&self.words, operands, invocation.more_args),
            Place::Beginning(count) => in_order(&self.words, count, operands, invocation.more_args),
        };
        if self.words.is_empty() {
            return Match::Yes;
        }
        let outcome = place(&arguments.operands);
        if outcome == Match::Yes || !self.as_written || arguments.sub_as_written.is_empty() {
            return outcome;
        }
        outcome.or(place(&[&arguments.sub_as_written, arguments.rest()].concat()))
    }
}

/// Each word must be one of the operands.
fn anywhere(words: &[String], operands: &[Operand<'_>], more_args: bool) -> Match {
    let unknown = if more_args { Match::Maybe } else { Match::No };
    let found = |word: &String| {
        let outcomes = operands.iter().map(|operand| compare(word, operand.word));
        outcomes.fold(unknown, Match::or)
    };
    words.iter().map(found).min().unwrap_or(Match::Yes)
}

/// The first `count` words must be the first operands, the others must follow in their order.
fn in_order(words: &[String], count: usize, operands: &[Operand<'_>], more_args: bool) -> Match {
    let at_end = if more_args { Match::Maybe } else { Match::No };
    // `outcomes[i]`: whether the words behind the current one are among the operands from `i` on.
    let mut outcomes = vec![Match::Yes; operands.len() + 1];
    for (index, word) in words.iter().enumerate().rev() {
        let mut row = vec![at_end; operands.len() + 1];
        for (at, operand) in operands.iter().enumerate().rev() {
            let take = compare(word, operand.word).and(outcomes[at + 1]);
            let may_skip = match (operand.certainty, index < count) {
                (Certainty::Operand, true) => Match::No,
                (Certainty::Operand | Certainty::OperandOrValue | Certainty::Anything, false) => {
                    Match::Yes
                }
                (Certainty::OperandOrValue | Certainty::Anything, true) => Match::Maybe,
            };
            // `$X` can be several words.
            let more = match operand.certainty {
                Certainty::Anything => Match::Maybe.and(outcomes[at]),
                Certainty::Operand | Certainty::OperandOrValue => Match::No,
            };
            row[at] = take.or(may_skip.and(row[at + 1])).or(more);
        }
        outcomes = row;
    }
    outcomes.first().copied().unwrap_or(Match::No)
}
