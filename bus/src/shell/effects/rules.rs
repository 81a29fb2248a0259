//! The files of programs that have one simple rule; see `rules_table.rs` for the rules.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::rules_table::RULES;
use super::uses::{Below, Uses, is_url, looks_like_path};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;

/// Which files a program uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The programs, with `|` between them.
    pub(super) names: &'static str,
    /// What happens to the operands.
    pub(super) operands: Operands,
    /// The options whose values are files, and what happens to those.
    pub(super) options: &'static [(&'static str, Access)],
    /// The options that make it affect everything below; `*`: it always does.
    pub(super) recursive: &'static [&'static str],
}

/// What happens to the operands of a program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operands {
    /// They are not files.
    None,
    /// All are files.
    All(Access),
    /// All are files but the first ones, this many.
    Behind(usize, Access),
    /// Those that look like paths are files; URLs are hosts.
    Paths(Access),
    /// The first one is a file that is read: a script. What follows is its own.
    Script,
    /// The first one is read, the second one written.
    InputOutput,
}

static BY_NAME: LazyLock<HashMap<&'static str, &'static Rule>> = LazyLock::new(|| {
    let names = |rule: &'static Rule| rule.names.split('|').map(move |name| (name, rule));
    RULES.iter().flat_map(names).collect()
});

/// The rule for a program.
pub(super) fn rule(name: &str) -> Option<&'static Rule> {
    BY_NAME.get(name).copied()
}

/// What an unknown program does with its operands: it reads those that look like paths.
pub(super) const UNKNOWN_PROGRAM: Rule =
    Rule { names: "", operands: Operands::Paths(Access::Read), options: &[], recursive: &[] };

impl Rule {
    pub(super) fn apply(&self, reading: &Reading<'_>, uses: &mut Uses) {
        let always = self.recursive == ["*"];
        let below = Below::from(always || self.recursive.iter().any(|name| reading.has(name)));
        for (option, access) in self.options {
            for value in reading.values(option) {
                uses.file(value, *access, Below::No);
            }
        }
        let operands = reading.arguments.rest().iter().map(|operand| operand.word);
        match self.operands {
            Operands::None => {}
            Operands::All(access) => uses.files(operands, access, below),
            Operands::Behind(count, access) => {
                uses.files(operands.skip(count), access, below);
            }
            Operands::Paths(access) => {
                operands.for_each(|word| path_or_url(word, access, below, uses));
            }
            Operands::Script => uses.reads(operands.take(1)),
            Operands::InputOutput => {
                for (path, access) in operands.zip([Access::Read, Access::Write]) {
                    uses.file(path, access, below);
                }
            }
        }
    }
}

/// A word that is a file if it looks like a path, and a host if it is a URL.
pub(super) fn path_or_url(word: Text<'_>, access: Access, below: Below, uses: &mut Uses) {
    if let Some(path) = word.text.strip_prefix("file://") {
        uses.file(word.part(path), access, below);
    } else if is_url(word.text) {
        uses.url(word, "");
    } else if looks_like_path(word.text) || !word.to_word().is_known() {
        uses.file(word, access, below);
    }
}
