//! An invocation with its arguments taken apart, once for all patterns. `python -m pip install x` can be read in two
//! ways, as `python` and as `pip`; both count.

use super::name::{base_name, program};
use super::options::{Arguments, Text};
use super::spec::{IndexedSpec, OptionName};
use crate::shell::view::Invocation;

/// An invocation, ready to be compared with many patterns.
#[derive(Debug, Clone)]
pub struct ParsedInvocation<'a> {
    /// The invocation.
    pub(crate) invocation: &'a Invocation,
    /// The ways in which it can be read; the first one is as it is written.
    pub(crate) readings: Vec<Reading<'a>>,
}

/// One way to read an invocation.
#[derive(Debug, Clone)]
pub(crate) struct Reading<'a> {
    /// The name that stands for the program.
    pub(crate) name: &'a str,
    /// The name as written, without directories.
    pub(crate) written: &'a str,
    /// How the program reads its arguments, if the tables have it.
    pub(crate) spec: Option<&'static IndexedSpec>,
    /// Its arguments.
    pub(crate) arguments: Arguments<'a>,
}

impl<'a> ParsedInvocation<'a> {
    /// Takes the arguments apart.
    pub fn new(invocation: &'a Invocation) -> Self {
        let words: Vec<Text<'a>> = invocation.args.iter().map(Text::from).collect();
        let mut readings = vec![Reading::new(invocation.program.as_str(), &words)];
        // `busybox python -m pip`: each reading may have another one inside, and none has more than two.
        for at in 0..3 {
            let inner = readings.get(at).and_then(|reading: &Reading<'a>| reading.inner(&words));
            let Some((name, words)) = inner else { break };
            readings.push(Reading::new(name, &words));
        }
        Self { invocation, readings }
    }

    /// Whether the program's name is known. If not, every pattern may match.
    pub fn is_program_known(&self) -> bool {
        self.invocation.program.is_known()
    }

    /// The names under which patterns for this invocation can be indexed; see
    /// [`CommandPattern::program_names`](crate::shell::CommandPattern::program_names).
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.readings.iter().map(|reading| reading.name)
    }
}

impl<'a> Reading<'a> {
    fn new(path: &'a str, words: &[Text<'a>]) -> Self {
        let program = program(path);
        Self {
            name: program.name,
            written: base_name(path),
            spec: program.spec,
            arguments: Arguments::read(program.spec, words),
        }
    }

    /// The program inside this one, and its arguments: `python -m pip`, `uv pip`, `docker compose`, `busybox rm`.
    fn inner(&self, words: &[Text<'a>]) -> Option<(&'a str, Vec<Text<'a>>)> {
        let operands = &self.arguments.operands;
        let from = |start: usize| operands.iter().skip(start).map(|operand| operand.word).collect();
        // All words behind this one, options too.
        let behind = |word: &str| {
            let at = words.iter().position(|each| each.text == word)?;
            words.get(at + 1..).map(<[_]>::to_vec)
        };
        match self.name {
            "python" => {
                let module = self.value("m").filter(|module| module.text == "pip")?;
                Some((module.text, from(0)))
            }
            "uv" if self.first() == Some("pip") => Some(("pip", behind("pip")?)),
            "docker" if self.first() == Some("compose") => {
                Some(("docker-compose", behind("compose")?))
            }
            "busybox" | "toybox" => Some((operands.first()?.word.text, from(1))),
            _ => None,
        }
    }

    fn first(&self) -> Option<&'a str> {
        self.arguments.operands.first().map(|operand| operand.word.text)
    }

    /// The operands behind the subcommand.
    pub(crate) fn operands(&self) -> Vec<Text<'a>> {
        self.arguments.rest().iter().map(|operand| operand.word).collect()
    }

    /// Whether the subcommand is this one, by its first name.
    pub(crate) fn is_sub(&self, name: &str) -> bool {
        let operands = &self.arguments.operands;
        let words = operands.iter().take(self.arguments.sub_words).map(|operand| operand.word.text);
        words.eq(name.split(' '))
    }

    /// The value of the last option with this name, without dashes.
    pub(crate) fn value(&self, name: &str) -> Option<Text<'a>> {
        self.values(name).last()
    }

    /// The values of all options with this name, without dashes.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = Text<'a>> {
        let name = OptionName::from_single_dash(name);
        let given = self.arguments.options.iter().filter(move |option| option.is(name));
        given.filter(|option| option.certain).filter_map(|option| option.value)
    }

    /// Whether the option with this name, without dashes, is given.
    pub(crate) fn has(&self, name: &str) -> bool {
        let name = OptionName::from_single_dash(name);
        self.arguments.options.iter().any(|option| option.is(name))
    }
}
