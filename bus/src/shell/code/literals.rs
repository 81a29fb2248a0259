//! Literals in code of other languages: strings, and lists of strings.

use super::super::limits;
use super::super::word::UNKNOWN;
use super::context::Context;

/// Reads literals from a position on.
#[derive(Debug, Clone)]
pub(super) struct Literals<'a> {
    pub(super) rest: &'a str,
    pub(super) context: &'a Context<'a>,
    /// How deep calls are nested.
    pub(super) depth: usize,
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    /// A string; parts that are not literal are [`UNKNOWN`].
    Text(String),
    List(Vec<String>),
    /// Anything else, as written.
    Other(String),
}

/// How many arguments of a call, or elements of a list, are read.
const ARGUMENTS: usize = 64;

impl<'a> Literals<'a> {
    pub(super) const fn new(rest: &'a str, context: &'a Context<'a>) -> Self {
        Self { rest, context, depth: 0 }
    }

    /// Reads what is inside something else.
    pub(super) const fn inside(&self, rest: &'a str) -> Self {
        Self { rest, context: self.context, depth: self.depth + 1 }
    }

    /// What has not been read.
    pub(super) const fn rest(&self) -> &'a str {
        self.rest
    }

    /// The arguments of a call, from behind its parenthesis (or its name, where none is needed).
    pub(super) fn arguments(&mut self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        while arguments.len() < ARGUMENTS {
            self.skip_blanks();
            let Some(next) = self.rest.chars().next() else { break };
            if matches!(next, ')' | ';' | '}') {
                break;
            }
            arguments.push(if next == '[' { self.list() } else { self.expression() });
            self.skip_blanks();
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None => break,
            }
        }
        arguments
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn list(&mut self) -> Argument {
        self.rest = self.rest.get(1..).unwrap_or_default();
        let mut words = Vec::new();
        while words.len() < ARGUMENTS {
            self.skip_blanks();
            if self.rest.is_empty() {
                break;
            }
            if let Some(rest) = self.rest.strip_prefix(']') {
                self.rest = rest;
                break;
            }
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            match self.expression() {
                Argument::Text(text) => words.push(text),
                Argument::List(_) => {}
                Argument::Other(_) => words.push(UNKNOWN.to_string()),
            }
        }
        Argument::List(words)
    }

    /// Strings joined by `+`, `.`, `/` or nothing, up to a comma or a closing bracket.
    pub(super) fn expression(&mut self) -> Argument {
        let mut text = String::new();
        let mut literal = false;
        let whole = self.rest;
        loop {
            // A literal at the end of a line goes on only if the next line starts with one, or joins one.
            let next = self.rest.trim_start();
            let blank = self.rest.get(..self.rest.len() - next.len()).unwrap_or_default();
            if literal && blank.contains('\n') && !next.starts_with(['\'', '"', '+', '.', '/']) {
                break;
            }
            self.rest = next;
            if literal && self.is_file_method() {
                break;
            }
            if literal && self.path_method(&mut text) {
                continue;
            }
            if let Some(string) = self.string() {
                literal = true;
                text.push_str(&string);
            } else if let Some(known) = self.known_term() {
                literal = true;
                text.push_str(&known);
            } else {
                match self.rest.chars().next() {
                    None | Some(',' | ')' | ']' | ';' | '}' | '\n') => break,
                    Some('+' | '.') => self.rest = self.rest.get(1..).unwrap_or_default(),
                    // `Path.home() / "x"`
                    Some('/') if literal => {
                        self.rest = self.rest.get(1..).unwrap_or_default();
                        if !text.ends_with('/') {
                            text.push('/');
                        }
                    }
                    Some(_) => {
                        self.skip_other();
                        text.push(UNKNOWN);
                    }
                }
            }
            if text.len() > limits::WORD_BYTES {
                break;
            }
        }
        let used = whole.len() - self.rest.len();
        if literal {
            Argument::Text(text)
        } else {
            Argument::Other(whole.get(..used).unwrap_or_default().trim().to_owned())
        }
    }

    /// A string literal, unescaped; None if there is none at the position.
    fn string(&mut self) -> Option<String> {
        let prefix = self
            .rest
            .chars()
            .take_while(|c| matches!(c, 'r' | 'b' | 'f' | 'u' | 'R' | 'B' | 'F' | 'U'))
            .count();
        let body = self.rest.get(prefix..)?;
        if prefix > 2 {
            return None;
        }
        if prefix == 0
            && let Some(found) = self.perl_quote()
        {
            return Some(found);
        }
        let quote = body.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
        let triple = body.get(..3).filter(|start| start.chars().all(|c| c == quote));
        let close: &str = triple.or_else(|| body.get(..1))?;
        let inner = body.get(close.len()..)?;
        let raw = self.rest.get(..prefix).is_some_and(|prefix| prefix.contains(['r', 'R']));
        let formatted = quote == '`'
            || self.rest.get(..prefix).is_some_and(|prefix| prefix.contains(['f', 'F']));
        if self.context.is_spent() {
            return None;
        }
        let end = closing(inner, close);
        self.context.spend(end.unwrap_or(inner.len()));
        let end = end?;
        let interpolated = quote == '"' && inner.get(..end)?.contains("#{");
        self.rest = inner.get(end + close.len()..).unwrap_or_default();
        let text = inner.get(..end)?;
        let text = if raw { text.to_owned() } else { super::super::expand::unescape_ansi(text) };
        let text = if formatted || interpolated { self.filled(&text) } else { text };
        Some(match self.context.home {
            Some(home) if quote == '"' => text.replace("$ENV{HOME}", home),
            Some(_) | None => text,
        })
    }

    /// `q(…)`, `qq{…}`, `%w[…]` are strings too.
    fn perl_quote(&mut self) -> Option<String> {
        let body =
            ["qq", "qx", "q", "%q", "%Q"].iter().find_map(|name| self.rest.strip_prefix(name))?;
        let close = match body.chars().next()? {
            '(' => ')',
            '{' => '}',
            '[' => ']',
            '/' => '/',
            '|' => '|',
            _ => return None,
        };
        let inner = body.get(1..)?;
        let end = inner.find(close)?;
        self.rest = inner.get(end + 1..)?;
        inner.get(..end).map(str::to_owned)
    }

    /// Skips a name, a number or an operator with the brackets behind it.
    fn skip_other(&mut self) {
        let mut open = 0_usize;
        let rest = if self.context.is_spent() { "" } else { self.rest };
        for (at, c) in rest.char_indices() {
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' if open > 0 => open -= 1,
                ',' | ')' | ']' | '}' | '+' | ';' | '\n' | '\'' | '"' if open == 0 && at > 0 => {
                    self.context.spend(at);
                    self.rest = self.rest.get(at..).unwrap_or_default();
                    return;
                }
                _ => {}
            }
        }
        self.context.spend(rest.len());
        self.rest = "";
    }
}

/// Where a string ends.
fn closing(text: &str, close: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if text.get(at..).is_some_and(|rest| rest.starts_with(close)) {
            return Some(at);
        }
    }
    None
}
