//! `$name`, `${name…}`, `$1`, `$@`: the values of variables and parameters.

use super::super::follow::{Follower, Origin, Value};
use super::super::syntax::{name_length, subscript_length};
use super::super::word::{UNKNOWN, Word};
use super::patterns;

/// What a parameter becomes.
#[derive(Debug)]
pub(super) enum Expanded {
    Text(String, Origin),
    /// Several words, and whether they stay apart between quotes (`"$@"`, not `"$*"`).
    Words(Vec<Word>, bool),
}

impl Expanded {
    fn unknown() -> Self {
        Self::Text(UNKNOWN.to_string(), Origin::Variable)
    }
}

impl Follower<'_> {
    /// Expands what is between `${` and `}`, or behind `$`.
    pub(super) fn parameter(&mut self, inner: &str) -> Expanded {
        if let Some(name) = inner.strip_prefix('#').filter(|name| !name.is_empty()) {
            self.compute_subscript(name);
            return match self.lookup(name) {
                Some(Expanded::Text(text, Origin::Line)) if !text.contains(UNKNOWN) => {
                    Expanded::Text(text.chars().count().to_string(), Origin::Line)
                }
                Some(Expanded::Text(..) | Expanded::Words(..)) | None => Expanded::unknown(),
            };
        }
        if let Some(name) = inner.strip_prefix('!') {
            return self.indirect(name);
        }
        let Some((name, operation)) = inner.split_at_checked(parameter_length(inner)) else {
            return Expanded::unknown();
        };
        if name.is_empty() {
            return Expanded::unknown();
        }
        self.compute_subscript(name);
        let value = self.lookup(name);
        if operation.is_empty() {
            return value.unwrap_or_else(Expanded::unknown);
        }
        self.operation(name, value, operation)
    }

    /// The value of a parameter; None if the line has never assigned it and it is not known from before.
    fn lookup(&self, name: &str) -> Option<Expanded> {
        if let Some((name, index)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            return self.element(name, index);
        }
        match name {
            "@" | "*" => {
                let parameters = self.scope.parameters.as_ref()?;
                let words = parameters.get(1..).unwrap_or_default().to_vec();
                return Some(Expanded::Words(words, name == "@"));
            }
            "#" => {
                let count = self.scope.parameters.as_ref()?.len().saturating_sub(1);
                return Some(Expanded::Text(count.to_string(), Origin::Line));
            }
            // Which shell it is does not matter for what it runs.
            "SHELL" | "BASH" if self.scope.value(name).is_none() => {
                return Some(Expanded::Text("/bin/bash".to_owned(), Origin::Line));
            }
            "IFS" if self.scope.value(name).is_none() => {
                return Some(Expanded::Text(" \t\n".to_owned(), Origin::Line));
            }
            "OLDPWD" if self.scope.value(name).is_none() => {
                return Some(Expanded::Text(self.previous_directory()?, Origin::Variable));
            }
            "PWD" => return Some(Expanded::Text(self.working_directory(), Origin::Variable)),
            _ => {}
        }
        if let Ok(index) = name.parse::<usize>() {
            let parameters = self.scope.parameters.as_ref()?;
            let word = parameters.get(index).map(Word::as_str).unwrap_or_default();
            return Some(Expanded::Text(word.to_owned(), Origin::Variable));
        }
        match self.scope.value(name) {
            Some(Value::Text(text, origin)) => Some(Expanded::Text(text.to_string(), *origin)),
            Some(Value::List(words)) if words.len() == 1 && words.iter().all(Word::is_glob) => {
                Some(Expanded::Words(words.clone(), true))
            }
            Some(Value::List(words)) => {
                let first = words.first().map(Word::as_str).unwrap_or_default();
                Some(Expanded::Text(first.to_owned(), Origin::Variable))
            }
            Some(Value::Either(_)) => Some(Expanded::unknown()),
            None => {
                let value = self.start.variable(name)?;
                Some(Expanded::Text(value.to_owned(), Origin::Line))
            }
        }
    }

    /// The value of a variable as a program gets it, if all of it is known.
    pub(crate) fn known_variable(&self, name: &str) -> Option<String> {
        if name_length(name) != name.len() {
            return None;
        }
        match self.lookup(name)? {
            Expanded::Text(text, _) if !text.contains(UNKNOWN) => Some(text),
            Expanded::Text(..) | Expanded::Words(..) => None,
        }
    }

    fn element(&self, name: &str, index: &str) -> Option<Expanded> {
        let Value::List(words) = self.scope.value(name)? else {
            return self.lookup(name);
        };
        Some(match index {
            "@" | "*" => Expanded::Words(words.clone(), index == "@"),
            _ => match index.parse::<usize>() {
                Ok(at) => {
                    let word = words.get(at).map(Word::as_str).unwrap_or_default();
                    Expanded::Text(word.to_owned(), Origin::Variable)
                }
                Err(_) => Expanded::unknown(),
            },
        })
    }

    /// `${!name}`: the value of the variable that `name` names.
    fn indirect(&mut self, name: &str) -> Expanded {
        self.compute_subscript(name);
        if let Some(Expanded::Text(target, _)) = self.lookup(name) {
            self.compute_subscript(&target);
        }
        match self.lookup(name) {
            Some(Expanded::Text(target, _)) if name_length(&target) == target.len() => {
                self.lookup(&target).unwrap_or_else(Expanded::unknown)
            }
            Some(Expanded::Text(..) | Expanded::Words(..)) | None => Expanded::unknown(),
        }
    }

    /// `${name:-…}`, `${name#…}` and the like.
    fn operation(&mut self, name: &str, value: Option<Expanded>, operation: &str) -> Expanded {
        let (null_counts, rest) = match operation.strip_prefix(':') {
            Some(rest) if rest.starts_with(['-', '=', '+', '?']) => (true, rest),
            Some(_) | None => (false, operation),
        };
        let (text, origin) = match value {
            None => (None, Origin::Variable),
            Some(Expanded::Text(text, origin)) => (Some(text), origin),
            Some(words @ Expanded::Words(..)) => return words,
        };
        let set = text.as_ref().is_some_and(|text| !null_counts || !text.is_empty());
        let Some(kind) = rest.chars().next() else { return Expanded::unknown() };
        let operand = rest.get(kind.len_utf8()..).unwrap_or_default();
        match kind {
            '-' | '=' => {
                let default = self.expand_one(operand);
                if set {
                    return Expanded::Text(text.unwrap_or_default(), origin);
                }
                if kind == '=' {
                    let value = Value::text(default.word.as_str(), default.origin);
                    self.scope.set(name, value);
                }
                Expanded::Text(default.word.as_str().to_owned(), default.origin)
            }
            '+' => {
                let other = self.expand_one(operand);
                let text = if set { other.word.as_str() } else { "" };
                Expanded::Text(text.to_owned(), other.origin)
            }
            '?' => match text {
                Some(text) => Expanded::Text(text, origin),
                None => Expanded::unknown(),
            },
            '@' if operand == "P" => match text.filter(|text| !text.starts_with(UNKNOWN)) {
                Some(text) => {
                    let (text, shown) = self.prompt(&text);
                    Expanded::Text(text, shown.max(origin))
                }
                None => {
                    self.unknown_prompt();
                    Expanded::unknown()
                }
            },
            _ => {
                let operand = self.expand_one(operation);
                let changed = text
                    .filter(|text| !text.contains(UNKNOWN) && operand.word.is_known())
                    .and_then(|text| patterns::apply(&text, operand.word.as_str()));
                changed.map_or_else(Expanded::unknown, |text| Expanded::Text(text, origin))
            }
        }
    }
}

/// How long the parameter at the start of a text is, with its index.
fn parameter_length(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length = match name_length(text) {
        0 if digits > 0 => return digits,
        0 => return usize::from(text.starts_with(['@', '*', '#', '?', '-', '$', '!'])),
        length => length,
    };
    let index = text.get(length..).filter(|rest| rest.starts_with('['));
    length + index.and_then(subscript_length).unwrap_or_default()
}
