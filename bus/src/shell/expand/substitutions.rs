//! `$…`, `$(…)`, `` `…` ``, `<(…)`: what runs in a word, and what it becomes.

use super::super::follow::{Flow, Follower, Origin};
use super::super::syntax::{Parser, name_length};
use super::super::word::{UNKNOWN, Word};
use super::fields::Fields;
use super::parameters::Expanded;
use super::quotes;

impl Follower<'_> {
    /// Expands what the `$` at a position starts; gives its end.
    pub(super) fn dollar(
        &mut self,
        word: &str,
        at: usize,
        quoted: bool,
        parser: &mut Parser<'_>,
        fields: &mut Fields,
    ) -> Result<usize, ()> {
        let slice = |from: usize, to: usize| word.get(from..to).unwrap_or_default();
        let next = word.as_bytes().get(at + 1).copied();
        if quoted && matches!(next, Some(b'\'' | b'"')) {
            fields.push_quoted("$", Origin::Line);
            return Ok(at + 1);
        }
        let end = parser.dollar_end(at).map_err(drop)?;
        match next {
            Some(b'(') => {
                let calculation = slice(at, at + 3) == "$(("
                    && parser.arithmetic_end(at + 3).is_ok_and(|found| found == end);
                if calculation {
                    self.calculation(slice(at + 3, end - 2), quoted, fields);
                } else {
                    self.substitute(slice(at + 2, end - 1), quoted, fields);
                }
            }
            Some(b'[') => self.calculation(slice(at + 2, end - 1), quoted, fields),
            Some(b'{') => {
                let inner = slice(at + 2, end - 1);
                let expanded = self.parameter(inner);
                let list = inner == "@" || inner.ends_with("[@]");
                fields.more |=
                    list && matches!(&expanded, Expanded::Text(text, _) if text.contains(UNKNOWN));
                push(expanded, quoted, fields);
            }
            Some(b'\'') => {
                fields.push_quoted(&quotes::unescape_ansi(slice(at + 2, end - 1)), Origin::Line);
            }
            Some(b'"') => {
                fields.push_quoted("", Origin::Line);
                self.double_quoted(slice(at + 2, end - 1), false, fields);
            }
            Some(b'@') if self.scope.parameters.is_none() => {
                // Any number of words, even between quotes.
                fields.push_quoted(&UNKNOWN.to_string(), Origin::Variable);
                fields.more = true;
            }
            Some(_) if end > at + 1 => {
                let expanded = self.parameter(slice(at + 1, end));
                push(expanded, quoted, fields);
            }
            Some(_) | None => fields.push("$"),
        }
        Ok(end)
    }

    fn calculation(&mut self, text: &str, quoted: bool, fields: &mut Fields) {
        let (expanded, _) = self.expand_quoted(text);
        self.compute(&expanded);
        self.arithmetic_assignments(&expanded);
        let value = super::arithmetic::evaluate(&expanded, &|name| self.number(name));
        let text = value.map_or_else(|| UNKNOWN.to_string(), |value| value.to_string());
        push(Expanded::Text(text, Origin::Line), quoted, fields);
    }

    fn arithmetic_assignments(&mut self, text: &str) {
        if text.contains('=') || text.contains("++") || text.contains("--") {
            self.arithmetic(text);
        }
    }

    /// Runs code and adds what it prints.
    pub(super) fn substitute(&mut self, code: &str, quoted: bool, fields: &mut Fields) {
        let flow = self.substitute_flow(code);
        if !flow.items.is_empty() && !quoted {
            let paths: Vec<&str> = flow.items.iter().map(Word::as_str).collect();
            fields.push_value(&paths.join("\n"), flow.origin);
            return;
        }
        let expanded = match flow.text {
            Some(text) => Expanded::Text(text.trim_end_matches('\n').to_owned(), flow.origin),
            None => Expanded::Text(UNKNOWN.to_string(), flow.origin.max(Origin::File)),
        };
        push(expanded, quoted, fields);
    }

    /// Runs code in a subshell; gives what it prints.
    pub(crate) fn substitute_flow(&mut self, code: &str) -> Flow {
        if code.trim().is_empty() {
            return Flow::text("");
        }
        // A word of many braces has its substitutions once per expansion.
        if !self.count(code) {
            return Flow::unknown(Origin::Output);
        }
        let stdin = self.stdin.clone();
        self.in_subshell(|follower| follower.run_text(code, &stdin))
    }

    /// `<(…)` and `>(…)`: the program gets the name of a pipe.
    pub(super) fn process_substitution(&mut self, kind: u8, code: &str, fields: &mut Fields) {
        let mut origin = Origin::Line;
        if kind == b'<' {
            let flow = self.substitute_flow(code);
            self.remember_stream(&flow);
            origin = flow.origin;
            fields.stream = true;
        } else {
            fields.readers.push(code.to_owned());
        }
        fields.push_quoted("/dev/fd/63", origin);
    }

    /// Whether a text between quotes is `$@` of parameters that are known to be none.
    pub(super) fn is_empty_list(&self, text: &str) -> bool {
        matches!(text, "$@" | "${@}")
            && self.scope.parameters.as_ref().is_some_and(|parameters| parameters.len() <= 1)
    }

    /// A variable as a number.
    fn number(&self, name: &str) -> Option<i64> {
        if name_length(name) != name.len() {
            return None;
        }
        match self.scope.value(name)? {
            super::super::follow::Value::Text(text, _) => text.trim().parse().ok(),
            super::super::follow::Value::Either(_) | super::super::follow::Value::List(_) => None,
        }
    }
}

/// Adds an expansion to the words.
fn push(expanded: Expanded, quoted: bool, fields: &mut Fields) {
    match expanded {
        Expanded::Text(text, origin) if quoted => fields.push_quoted(&text, origin),
        Expanded::Text(text, origin) => fields.push_value(&text, origin),
        Expanded::Words(words, true) if quoted => fields.push_words(&words),
        Expanded::Words(words, _) => {
            let joined: Vec<&str> = words.iter().map(Word::as_str).collect();
            let joined = joined.join(" ");
            if quoted {
                fields.push_quoted(&joined, Origin::Line);
            } else {
                fields.push_value(&joined, Origin::Line);
            }
        }
    }
}
