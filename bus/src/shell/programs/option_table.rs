//! Looks up options by their spelling, or an abbreviation of it.

use super::spec::{OptionName, spellings};

/// The options that count at one place of a command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OptionTable {
    /// Those of the subcommand.
    pub(super) sub: &'static [&'static str],
    /// Those of the program.
    pub(super) program: &'static [&'static str],
}

impl OptionTable {
    fn options(self) -> impl Iterator<Item = &'static str> {
        self.sub.iter().chain(self.program).copied()
    }

    /// The option with this name.
    pub(super) fn find(self, name: OptionName<'_>) -> Option<&'static str> {
        self.options().find(|option| spellings(option).any(|spelling| spelling == name))
    }

    /// The option with this long name, or the one that it abbreviates. `--forc` is `--force` although
    /// `--force-with-lease` begins with it too.
    pub(super) fn find_long(self, name: &str) -> Option<&'static str> {
        self.find(OptionName::Long(name)).or_else(|| self.find_abbreviated(name))
    }

    fn find_abbreviated(self, name: &str) -> Option<&'static str> {
        let completed = |option: &'static str| {
            let mut completed = spellings(option).filter_map(|spelling| match spelling {
                OptionName::Long(long) if long.starts_with(name) => Some(long),
                OptionName::Long(_) | OptionName::Short(_) => None,
            });
            completed.next().map(|long| (option, long))
        };
        let all = || self.options().filter_map(completed);
        let (option, shortest) = all().min_by_key(|(_, long)| long.len())?;
        let is_unique = all().all(|(_, long)| long.starts_with(shortest));
        (!name.is_empty() && is_unique).then_some(option)
    }

    /// Whether it has a long option with one dash (`wget -nc`) although others are bundles.
    pub(super) fn lists_with_single_dash(self, name: &str) -> bool {
        let mut spelled = self.options().flat_map(|option| option.split(' '));
        spelled.any(|spelling| spelling.strip_prefix('-') == Some(name))
    }
}
