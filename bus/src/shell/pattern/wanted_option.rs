//! An option in a pattern, and whether it is given.

use super::outcome::Match;
use super::wildcard::compare;
use crate::shell::programs::{Arguments, GivenOption, OptionName, spellings};
use crate::shell::view::Invocation;

/// An option in a pattern.
#[derive(Debug, Clone)]
pub(super) struct WantedOption {
    known: Option<&'static str>,
    name: WantedName,
    pub(super) value: Option<String>,
}

#[derive(Debug, Clone)]
enum WantedName {
    Short(char),
    Long(String),
}

impl WantedOption {
    pub(super) fn new(option: &GivenOption<'_>) -> Self {
        let name = match option.name {
            OptionName::Short(letter) => WantedName::Short(letter),
            OptionName::Long(name) => WantedName::Long(name.to_owned()),
        };
        let value = option.value.filter(|_| option.certain).map(|value| value.text.to_owned());
        Self { known: option.known, name, value }
    }

    fn name(&self) -> OptionName<'_> {
        match &self.name {
            WantedName::Short(letter) => OptionName::Short(*letter),
            WantedName::Long(name) => OptionName::Long(name),
        }
    }

    /// Whether it is the same option. Two short ones of different subcommands are not (`git -c`, `git commit -c`).
    pub(super) fn is(&self, given: &GivenOption<'_>) -> bool {
        match (self.known, given.known) {
            (Some(wanted), Some(known)) => {
                let is_long = |name: &OptionName<'_>| matches!(name, OptionName::Long(_));
                wanted == known || spellings(wanted).filter(is_long).any(|name| given.is(name))
            }
            (Some(wanted), None) => spellings(wanted).any(|name| name == given.name),
            (None, _) => given.is(self.name()),
        }
    }

    pub(super) fn matches(&self, invocation: &Invocation, arguments: &Arguments<'_>) -> Match {
        let given = arguments.options.iter().filter(|given| self.is(given));
        let outcome = given.map(|given| self.matches_value(given)).max().unwrap_or(Match::No);
        if outcome != Match::No {
            return outcome;
        }
        let more = invocation.more_args && !arguments.dashes;
        if more || arguments.unknown_options.iter().any(|beginning| self.may_begin(beginning)) {
            return Match::Maybe;
        }
        Match::No
    }

    fn matches_value(&self, given: &GivenOption<'_>) -> Match {
        match (&self.value, given.value) {
            // `--dry-run=false` is not `--dry-run`; programs in Go also take `0` and `f`.
            (None, Some(value))
                if given.certain
                    && ["false", "no", "none", "off", "0", "f", "n"]
                        .iter()
                        .any(|no| value.text.eq_ignore_ascii_case(no)) =>
            {
                Match::No
            }
            (None, _) => Match::Yes,
            (Some(_), None) => Match::No,
            (Some(wanted), Some(value)) => compare(wanted, value),
        }
    }

    /// Whether an option that begins like this can be this one.
    fn may_begin(&self, beginning: &str) -> bool {
        let begins = |name: OptionName<'_>| match name {
            OptionName::Short(_) => beginning.is_empty(),
            OptionName::Long(name) => name.starts_with(beginning),
        };
        begins(self.name()) || self.known.is_some_and(|known| spellings(known).any(begins))
    }

    /// As people write it.
    pub(super) fn shown(&self) -> String {
        match &self.name {
            WantedName::Short(letter) => format!("-{letter}"),
            WantedName::Long(name) => {
                let known = self.known.unwrap_or_default();
                let as_in_table =
                    known.split(' ').find(|each| each.trim_start_matches('-') == name);
                as_in_table.map_or_else(|| format!("--{name}"), str::to_owned)
            }
        }
    }
}
