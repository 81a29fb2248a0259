//! How a program reads its arguments: [`Spec`], one per program, and [`Sub`], one per subcommand. The tables in
//! `tables/` are written with these.
//!
//! An option is one text, written as in `--help`: its spellings, then what it takes.
//!
//! | text | meaning |
//! |---|---|
//! | `-f --force` | a flag with two spellings |
//! | `-o --output =` | takes a value: `-o x`, `-ox`, `--output x`, `--output=x` |
//! | `-i --in-place [=]` | takes a value only if it is attached: `-i.bak`, `--in-place=.bak` |
//! | `-m =!` | takes a value; every word behind it is an operand (`python -m module …`) |
//! | `--arg ==` | takes two words, the second of which is its value (`jq --slurpfile name file`) |
//! | `-exec ;` | takes a command up to `;` or `+` |

use std::ops::Deref;

/// A program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    /// Its names, with `|` between them. The first one stands for all: a pattern with one of them matches all.
    pub(crate) names: &'static str,
    /// Other programs with the same syntax, with `|` between them.
    pub(crate) like: &'static str,
    /// How options are written.
    pub(crate) style: Style,
    /// The options; for a program with subcommands those that may be before the subcommand.
    pub(crate) options: &'static [&'static str],
    /// Whether these options may also be behind the subcommand.
    pub(crate) anywhere: bool,
    /// Where options end.
    pub(crate) ends: Ends,
    /// How many words name a subcommand, if it is not in `subs`. 0: the program has no subcommands.
    pub(crate) depth: usize,
    /// The subcommands with options or synonyms of their own.
    pub(crate) subs: &'static [Sub],
    /// Words that mean the same behind the subcommand, each group with `|` between them (`namespace|ns`).
    pub(crate) synonyms: &'static [&'static str],
}

/// A subcommand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sub {
    /// Its names, with `|` between them: `container rm|rm`. The first one stands for all.
    pub(crate) names: &'static str,
    /// Its options.
    pub(crate) options: &'static [&'static str],
    /// Where its options end.
    pub(crate) ends: Ends,
}

/// How options are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `-abc` is three options; long ones have two dashes and can be abbreviated.
    Gnu,
    /// Long options have one dash (or two): `find -delete`, `terraform -auto-approve`.
    SingleDash,
    /// `key=value`, as in `dd if=a of=b`.
    KeyValue,
    /// As `Gnu`, and the first word can be a bundle without a dash: `tar xzf a.tgz`.
    Tar,
}

/// Where options end, apart from `--`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Nowhere: options may be behind operands.
    Never,
    /// Behind this many operands (`sudo [options] command …` : 1). A subcommand's name does not count.
    After(usize),
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing: it is a flag.
    Nothing,
    /// A value, attached or as the next word.
    Value,
    /// A value, only if it is attached.
    Attached,
    /// A value; no options follow.
    ValueAndEnd,
    /// Two words, the second of which is the value.
    NameAndValue,
    /// A command up to `;` or `+`.
    Command,
}

impl Spec {
    /// A program without options and subcommands.
    pub(crate) const fn new(names: &'static str) -> Self {
        Self {
            names,
            like: "",
            style: Style::Gnu,
            options: &[],
            anywhere: false,
            ends: Ends::Never,
            depth: 0,
            subs: &[],
            synonyms: &[],
        }
    }

    pub(crate) const fn like(mut self, like: &'static str) -> Self {
        self.like = like;
        self
    }

    pub(crate) const fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    pub(crate) const fn options(mut self, options: &'static [&'static str]) -> Self {
        self.options = options;
        self
    }

    /// The options may also be behind the subcommand.
    pub(crate) const fn anywhere(mut self) -> Self {
        self.anywhere = true;
        self
    }

    pub(crate) const fn ends_after(mut self, operands: usize) -> Self {
        self.ends = Ends::After(operands);
        self
    }

    /// It has subcommands, which are usually this many words.
    pub(crate) const fn subs(mut self, depth: usize, subs: &'static [Sub]) -> Self {
        self.depth = depth;
        self.subs = subs;
        self
    }

    pub(crate) const fn synonyms(mut self, synonyms: &'static [&'static str]) -> Self {
        self.synonyms = synonyms;
        self
    }

    /// The word that stands for this one and its synonyms.
    pub(crate) fn synonym(&self, word: &str) -> Option<&'static str> {
        let group = self.synonyms.iter().find(|group| group.split('|').any(|name| name == word))?;
        group.split('|').next()
    }
}

/// A [`Spec`] whose subcommands can be found by name without a walk through all of them.
#[derive(Debug)]
pub(crate) struct IndexedSpec {
    spec: &'static Spec,
    /// Every name of every subcommand, sorted.
    subs: Vec<(&'static str, &'static Sub)>,
}

impl IndexedSpec {
    pub(crate) fn new(spec: &'static Spec) -> Self {
        let names = |sub: &'static Sub| sub.names.split('|').map(move |name| (name, sub));
        let mut subs: Vec<_> = spec.subs.iter().flat_map(names).collect();
        // Stable: of two with the same name the first one in the table is found.
        subs.sort_by_key(|(name, _)| *name);
        subs.dedup_by_key(|(name, _)| *name);
        Self { spec, subs }
    }

    /// The subcommand that these words name.
    pub(crate) fn sub(&self, words: &[&str]) -> Option<&'static Sub> {
        let joined;
        let name = match words {
            [word] => *word,
            words => {
                joined = words.join(" ");
                &joined
            }
        };
        let at = self.subs.binary_search_by_key(&name, |(name, _)| name).ok()?;
        self.subs.get(at).map(|(_, sub)| *sub)
    }
}

impl Deref for IndexedSpec {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        self.spec
    }
}

impl Sub {
    /// A subcommand with these options.
    pub(crate) const fn new(names: &'static str, options: &'static [&'static str]) -> Self {
        Self { names, options, ends: Ends::Never }
    }

    pub(crate) const fn ends_after(mut self, operands: usize) -> Self {
        self.ends = Ends::After(operands);
        self
    }

    /// The words of the name that stands for all.
    pub(crate) fn words(&self) -> std::str::Split<'static, char> {
        self.names.split('|').next().unwrap_or_default().split(' ')
    }
}

/// What the option takes, from its text in a table.
pub(crate) fn takes(option: &str) -> Takes {
    match option.rsplit(' ').next() {
        Some("=") => Takes::Value,
        Some("[=]") => Takes::Attached,
        Some("=!") => Takes::ValueAndEnd,
        Some("==") => Takes::NameAndValue,
        Some(";") => Takes::Command,
        _ => Takes::Nothing,
    }
}

/// The spellings of the option, from its text in a table.
pub(crate) fn spellings(option: &'static str) -> impl Iterator<Item = OptionName<'static>> {
    option
        .split(' ')
        .filter(|part| !matches!(*part, "=" | "[=]" | "=!" | "==" | ";"))
        .map(OptionName::from_spelling)
}

/// The name of an option, without dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionName<'a> {
    /// `-f`.
    Short(char),
    /// `--force`, `-delete`, `of=`.
    Long(&'a str),
}

impl<'a> OptionName<'a> {
    /// `-f` is short; everything else is long.
    pub(crate) fn from_spelling(spelling: &'a str) -> Self {
        match (spelling.strip_prefix("--"), spelling.strip_prefix('-')) {
            (None, Some(name)) => Self::from_single_dash(name),
            (Some(name), _) => Self::Long(name),
            (None, None) => Self::Long(spelling),
        }
    }

    /// One letter is a short option; more are a long one.
    pub(crate) fn from_single_dash(name: &'a str) -> Self {
        let mut letters = name.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Self::Short(letter),
            _ => Self::Long(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_written_as_in_help() {
        assert_eq!(takes("-f --force"), Takes::Nothing);
        assert_eq!(takes("-o --output ="), Takes::Value);
        assert_eq!(takes("-i --in-place [=]"), Takes::Attached);
        assert_eq!(takes("-m =!"), Takes::ValueAndEnd);
        let names: Vec<_> = spellings("-o --output -delete of =").collect();
        let long = OptionName::Long;
        assert_eq!(names, [OptionName::Short('o'), long("output"), long("delete"), long("of")]);
    }

    #[test]
    fn a_subcommand_has_several_names() {
        static SUBS: [Sub; 1] = [Sub::new("container rm|rm", &[])];
        static DOCKER: Spec = Spec::new("docker").subs(2, &SUBS);
        let docker = IndexedSpec::new(&DOCKER);
        for words in [vec!["rm"], vec!["container", "rm"]] {
            let sub = docker.sub(&words).expect("a subcommand");
            assert_eq!(sub.words().collect::<Vec<_>>(), ["container", "rm"]);
        }
        assert!(docker.sub(&["container"]).is_none());
    }
}
