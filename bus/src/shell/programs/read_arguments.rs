//! Splits the arguments of a program into options and operands, as the program would, by its [`Spec`](super::spec::Spec).
//! Unknown options are flags; whether the word behind one is its value is then in doubt, and recorded as such.

use std::collections::BTreeSet;

use super::option_table::OptionTable;
use super::options::{Arguments, Certainty, GivenOption, Operand, Text};
use super::spec::{Ends, IndexedSpec, OptionName, Style, Takes, takes};
use crate::shell::word::UNKNOWN;

impl<'a> Arguments<'a> {
    /// Takes the arguments apart. Without a spec `-abc` counts as a bundle, and `-longer` as one option.
    pub(crate) fn read(spec: Option<&'static IndexedSpec>, words: &[Text<'a>]) -> Self {
        let arguments = Self {
            options: Vec::new(),
            operands: Vec::new(),
            sub: None,
            sub_words: 0,
            unknown_options: Vec::new(),
            dashes: false,
            sub_as_written: Vec::new(),
        };
        let state = State { spec, words, next: 0, ended: false, in_doubt: false, arguments };
        state.read()
    }
}

struct State<'w, 'a> {
    spec: Option<&'static IndexedSpec>,
    words: &'w [Text<'a>],
    next: usize,
    /// Whether options have ended.
    ended: bool,
    /// Whether the last word was an unknown option, whose value may follow.
    in_doubt: bool,
    arguments: Arguments<'a>,
}

/// Longer words with one dash are not bundles if the program is not known.
const LONGEST_UNKNOWN_BUNDLE: usize = 4;

impl<'a> State<'_, 'a> {
    fn read(mut self) -> Arguments<'a> {
        let style = self.style();
        while let Some(word) = self.take() {
            let text = word.text;
            if self.ended {
                self.operand(word, Certainty::Operand);
            } else if text == "--" {
                (self.ended, self.arguments.dashes, self.in_doubt) = (true, true, false);
            } else if text.starts_with(UNKNOWN) {
                self.arguments.unknown_options.push("");
                self.operand(word, Certainty::Anything);
            } else if style == Style::KeyValue && !text.starts_with('-') && text.contains('=') {
                self.long(word, text);
            } else if style == Style::Tar && self.next == 1 && !text.starts_with('-') {
                self.bundle(word, text, Rest::NextWords);
            } else if let Some(name) = text.strip_prefix("--") {
                self.long(word, name);
            } else if let Some(name) = text.strip_prefix('-').filter(|name| !name.is_empty()) {
                self.single_dash(style, word, name);
            } else if text.starts_with('+') && self.takes_toolchain() {
                self.push(Some("+toolchain"), OptionName::Long("toolchain"), Some(word));
            } else {
                let certainty =
                    if self.in_doubt { Certainty::OperandOrValue } else { Certainty::Operand };
                self.operand(word, certainty);
            }
        }
        self.use_first_name();
        self.arguments
    }

    fn style(&self) -> Style {
        self.spec.map_or(Style::Gnu, |spec| spec.style)
    }

    fn take(&mut self) -> Option<Text<'a>> {
        let word = self.words.get(self.next).copied();
        self.next += usize::from(word.is_some());
        word
    }

    /// The options that count here.
    fn table(&self) -> OptionTable {
        let Some(spec) = self.spec else { return OptionTable::default() };
        let before = spec.depth == 0 || spec.anywhere || self.arguments.operands.is_empty();
        OptionTable {
            sub: self.arguments.sub.map_or(&[][..], |sub| sub.options),
            program: if before { spec.options } else { &[] },
        }
    }

    fn takes_toolchain(&self) -> bool {
        self.table().program.contains(&"+toolchain")
    }

    fn operand(&mut self, word: Text<'a>, certainty: Certainty) {
        let behind_dashes = self.arguments.dashes && self.ended;
        self.arguments.operands.push(Operand { word, certainty, behind_dashes });
        self.in_doubt = false;
        if !behind_dashes {
            self.find_sub();
        }
        let ends = match (self.arguments.sub, self.spec) {
            (Some(sub), _) => sub.ends,
            (None, Some(spec)) => spec.ends,
            (None, None) => Ends::Never,
        };
        let behind_sub = self.arguments.operands.len() - self.arguments.sub_words;
        if let Ends::After(limit) = ends
            && behind_sub >= limit
        {
            self.ended = true;
        }
    }

    /// Looks whether the operands so far name a subcommand, with and without those that are in doubt.
    fn find_sub(&mut self) {
        const LONGEST: usize = 3;
        let operands = &self.arguments.operands;
        let Some(spec) = self.spec.filter(|spec| !spec.subs.is_empty()) else { return };
        if operands.len() > LONGEST {
            return;
        }
        let mut texts = [""; LONGEST];
        texts.iter_mut().zip(operands).for_each(|(text, operand)| *text = operand.word.text);
        let all = texts.get(..operands.len()).unwrap_or_default();
        let is_certain = |operand: &&Operand<'_>| operand.certainty == Certainty::Operand;
        let certain = || {
            operands.last().filter(is_certain)?;
            let certain = operands.iter().filter(is_certain);
            spec.sub(&certain.map(|operand| operand.word.text).collect::<Vec<_>>())
        };
        if let Some(sub) = spec.sub(all).or_else(certain) {
            self.arguments.sub = Some(sub);
            self.arguments.sub_words = operands.len();
        }
    }

    /// Replaces the subcommand's name by its first name, and synonyms of operands by the first of them.
    fn use_first_name(&mut self) {
        let Some(spec) = self.spec else { return };
        let Arguments { operands, sub, sub_words, sub_as_written, .. } = &mut self.arguments;
        if let Some(sub) = sub {
            let certain = |text| Operand {
                word: Text::literal(text),
                certainty: Certainty::Operand,
                behind_dashes: false,
            };
            let named: Vec<_> = operands.drain(..*sub_words).collect();
            let unknown =
                named.iter().filter(|each| each.certainty == Certainty::Anything).copied();
            let words: Vec<_> = unknown.chain(sub.words().map(certain)).collect();
            *sub_words = words.len();
            operands.splice(0..0, words);
            *sub_as_written = named;
        }
        if spec.synonyms.is_empty() {
            return;
        }
        let split = |operand: Operand<'a>| {
            let parts = operand.word.text.split(['/', ',']);
            parts.map(move |part| {
                let text = spec.synonym(part).unwrap_or(part);
                Operand { word: operand.word.part(text), ..operand }
            })
        };
        if let Some(kind) = operands.get(*sub_words).copied() {
            operands.splice(*sub_words..=*sub_words, split(kind));
        }
    }

    fn push(&mut self, known: Option<&'static str>, name: OptionName<'a>, value: Option<Text<'a>>) {
        self.arguments.options.push(GivenOption { known, name, value, certain: true });
        self.in_doubt = false;
    }

    /// An option that the table does not have: a flag, or the next word is its value.
    fn push_unknown(&mut self, name: OptionName<'a>) {
        let next = self.words.get(self.next).copied().filter(|word| !word.text.starts_with('-'));
        self.arguments.options.push(GivenOption { known: None, name, value: next, certain: false });
        self.in_doubt = next.is_some();
    }

    /// `--name`, `--name=value`.
    fn long(&mut self, word: Text<'a>, text: &'a str) {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(word.part(value))),
            None => (text, None),
        };
        if let Some((beginning, _)) = name.split_once(UNKNOWN) {
            self.arguments.unknown_options.push(beginning);
            return;
        }
        let known = self.table().find_long(name);
        self.given(known, OptionName::Long(name), value);
    }

    fn given(
        &mut self,
        known: Option<&'static str>,
        name: OptionName<'a>,
        attached: Option<Text<'a>>,
    ) {
        match (known.map(takes), attached) {
            (None, None) => self.push_unknown(name),
            (Some(Takes::Nothing | Takes::Attached), None) => self.push(known, name, None),
            (Some(Takes::Value), None) => {
                let value = self.take();
                self.push(known, name, value);
            }
            (Some(Takes::ValueAndEnd), _) => {
                let value = attached.or_else(|| self.take());
                self.push(known, name, value);
                self.ended = true;
            }
            (Some(Takes::NameAndValue), _) => {
                let name_of_value = attached.or_else(|| self.take());
                let value = name_of_value.and_then(|_| self.take());
                self.push(known, name, value);
            }
            (Some(Takes::Command), _) => {
                self.push(known, name, None);
                while self.take().is_some_and(|word| !matches!(word.text, ";" | "\\;" | "+")) {}
            }
            (None | Some(Takes::Nothing | Takes::Value | Takes::Attached), Some(_)) => {
                self.push(known, name, attached);
            }
        }
    }

    /// `-abc`, `-delete`, `-20`.
    fn single_dash(&mut self, style: Style, word: Text<'a>, name: &'a str) {
        let is_number = name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_digit());
        let is_long = self.spec.is_none() && name.len() > LONGEST_UNKNOWN_BUNDLE;
        let is_listed = name.len() > 1 && self.table().lists_with_single_dash(name);
        if is_number && style != Style::SingleDash && !is_listed {
            self.push(None, OptionName::Long(name), None);
        } else if style == Style::SingleDash || is_long || is_listed {
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(word.part(value))),
                None => (name, None),
            };
            if name.contains(UNKNOWN) {
                self.arguments.unknown_options.push("");
                return;
            }
            let known = self.table().find(OptionName::from_single_dash(name));
            self.given(known, OptionName::from_single_dash(name), value);
        } else {
            self.bundle(word, name, Rest::IsValue);
        }
    }

    /// Several short options in one word.
    fn bundle(&mut self, word: Text<'a>, text: &'a str, rest_is: Rest) {
        // A flag counts once, however often it is repeated: `-rrrr…f` is looked up twice.
        let mut seen = BTreeSet::new();
        for (at, letter) in text.char_indices() {
            if !seen.insert(letter) && at + letter.len_utf8() < text.len() {
                continue;
            }
            let rest = &text[at + letter.len_utf8()..];
            if letter == UNKNOWN {
                self.arguments.unknown_options.push("");
                return;
            }
            let known = self.table().find(OptionName::Short(letter));
            let name = OptionName::Short(letter);
            let has_subs = self.spec.is_some_and(|spec| spec.depth > 0);
            let attached = if rest.is_empty() || rest_is == Rest::NextWords {
                None
            } else {
                Some(word.part(rest.strip_prefix('=').filter(|_| has_subs).unwrap_or(rest)))
            };
            match known.map(takes) {
                Some(Takes::Nothing) => self.push(known, name, None),
                None if rest.is_empty() => self.push_unknown(name),
                None if rest.starts_with('=') => {
                    self.push(None, name, Some(word.part(&rest[1..])));
                    return;
                }
                None => self.push(None, name, None),
                Some(
                    Takes::Value
                    | Takes::Attached
                    | Takes::ValueAndEnd
                    | Takes::NameAndValue
                    | Takes::Command,
                ) => {
                    self.given(known, name, attached);
                    if rest_is == Rest::IsValue {
                        return;
                    }
                }
            }
        }
    }
}

/// What follows an option with a value in a bundle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// The rest of the word is the value.
    IsValue,
    /// The value is the next word (`tar xfC a.tgz dir`).
    NextWords,
}
