//! Says in one sentence why a pattern does not match.

use super::alternative::{Alternative, Place};
use super::command_pattern::CommandPattern;
use super::outcome::Match;
use super::wanted_option::WantedOption;
use super::wildcard::shown;
use crate::shell::programs::{Arguments, ParsedInvocation, Reading};

impl CommandPattern {
    /// Why the pattern does not match, in one short sentence. Of several alternatives it is about the first one for
    /// this program.
    pub fn explain(&self, parsed: &ParsedInvocation<'_>) -> String {
        match self.matches(parsed) {
            Match::Yes => return "it matches".to_owned(),
            Match::Maybe => {
                return "it depends on a part that is not known before the command runs".to_owned();
            }
            Match::No => {}
        }
        for alternative in &self.alternatives {
            for reading in &parsed.readings {
                if alternative.matches_program(parsed, reading) == Match::Yes {
                    return alternative.explain_arguments(parsed, reading);
                }
            }
        }
        format!("the program is `{}`", parsed.invocation.program)
    }
}

impl Alternative {
    fn explain_arguments(&self, parsed: &ParsedInvocation<'_>, reading: &Reading<'_>) -> String {
        let invocation = parsed.invocation;
        if self.matches_words(invocation, reading) == Match::No {
            return self.explain_words(reading);
        }
        let missing =
            |option: &&WantedOption| option.matches(invocation, &reading.arguments) == Match::No;
        self.options.iter().find(missing).map_or_else(
            || "a variable that it needs is not set".to_owned(),
            |option| option.explain(&reading.arguments),
        )
    }

    fn explain_words(&self, reading: &Reading<'_>) -> String {
        let operands = &reading.arguments.operands;
        let has = |word: &str| operands.iter().any(|operand| operand.word.text == word);
        let in_subcommand = match self.place {
            Place::Beginning(count) => count,
            Place::Anywhere => 0,
        };
        for (index, word) in self.words.iter().enumerate() {
            let given = operands.get(index).map(|operand| operand.word.to_word());
            match given {
                Some(given) if index < in_subcommand && given.as_str() != word => {
                    return format!("it has `{given}`, not `{}`", shown(word));
                }
                _ if !has(word) => return format!("it has no `{}`", shown(word)),
                _ => {}
            }
        }
        "its words are in another order".to_owned()
    }
}

impl WantedOption {
    fn explain(&self, arguments: &Arguments<'_>) -> String {
        let name = self.shown();
        let given = arguments.options.iter().find(|given| self.is(given));
        match (given.and_then(|given| given.value), &self.value) {
            (Some(value), Some(wanted)) => {
                format!("its `{name}` is `{}`, not `{}`", value.to_word(), shown(wanted))
            }
            _ => format!("it has no `{name}`"),
        }
    }
}
