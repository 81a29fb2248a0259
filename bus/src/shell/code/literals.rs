//! Literals in code of other languages: strings, and lists of strings.

use super::super::word::UNKNOWN;

/// Reads literals from a position on.
#[derive(Debug, Clone)]
pub(super) struct Literals<'a> {
    rest: &'a str,
    home: Option<&'a str>,
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

/// What the home directory is called.
const HOMES: &[&str] = &[
    "os.environ['HOME']",
    "os.environ[\"HOME\"]",
    "os.getenv('HOME')",
    "os.getenv(\"HOME\")",
    "process.env.HOME",
    "os.homedir()",
    "ENV['HOME']",
    "ENV[\"HOME\"]",
    "Dir.home",
    "$ENV{HOME}",
    "Path.home()",
    "getenv('HOME')",
    "getenv(\"HOME\")",
];

impl<'a> Literals<'a> {
    pub(super) const fn new(rest: &'a str, home: Option<&'a str>) -> Self {
        Self { rest, home }
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

    /// Strings joined by `+`, `.` or nothing, up to a comma or a closing bracket.
    fn expression(&mut self) -> Argument {
        let mut text = String::new();
        let mut literal = false;
        let whole = self.rest;
        loop {
            // A literal at the end of a line goes on only if the next line starts with one, or joins one.
            let next = self.rest.trim_start();
            let blank = self.rest.get(..self.rest.len() - next.len()).unwrap_or_default();
            if literal && blank.contains('\n') && !next.starts_with(['\'', '"', '+', '.']) {
                break;
            }
            self.rest = next;
            if let Some(string) = self.string() {
                literal = true;
                text.push_str(&string);
            } else if let Some(home) = self.home_directory() {
                literal = true;
                text.push_str(&home);
            } else {
                match self.rest.chars().next() {
                    None | Some(',' | ')' | ']' | ';' | '}' | '\n') => break,
                    Some('+' | '.') => self.rest = self.rest.get(1..).unwrap_or_default(),
                    Some(_) => {
                        self.skip_other();
                        text.push(UNKNOWN);
                    }
                }
            }
        }
        let used = whole.len() - self.rest.len();
        if literal {
            Argument::Text(text)
        } else {
            Argument::Other(whole.get(..used).unwrap_or_default().trim().to_owned())
        }
    }

    /// `os.path.expanduser(…)` is what it holds; `os.environ["HOME"]` and the like are the home directory.
    fn home_directory(&mut self) -> Option<String> {
        for call in ["os.path.expanduser(", "Path(", "pathlib.Path(", "File.expand_path(", "str("] {
            if let Some(rest) = self.rest.strip_prefix(call) {
                self.rest = rest;
                let text = self.string();
                self.rest = self.rest.trim_start().strip_prefix(')').unwrap_or(self.rest);
                return text.map(|text| match (text.strip_prefix('~'), self.home) {
                    (Some(behind), Some(home)) => format!("{home}{behind}"),
                    _ => text,
                });
            }
        }
        let found = HOMES.iter().find_map(|home| self.rest.strip_prefix(home))?;
        self.rest = found;
        Some(self.home.map_or_else(|| "~".to_owned(), str::to_owned))
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
        let end = closing(inner, close)?;
        self.rest = inner.get(end + close.len()..).unwrap_or_default();
        let text = inner.get(..end)?;
        let text = if raw { text.to_owned() } else { super::super::expand::unescape_ansi(text) };
        Some(if formatted { without_placeholders(&text) } else { text })
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
        for (at, c) in self.rest.char_indices() {
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' if open > 0 => open -= 1,
                ',' | ')' | ']' | '}' | '+' | ';' | '\n' | '\'' | '"' if open == 0 && at > 0 => {
                    self.rest = self.rest.get(at..).unwrap_or_default();
                    return;
                }
                _ => {}
            }
        }
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

/// `{x}` and `${x}` in a formatted string are not known.
fn without_placeholders(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(from) = rest.find('{') {
        let before = rest.get(..from).unwrap_or_default();
        result.push_str(before.strip_suffix('$').unwrap_or(before));
        let Some(end) = rest.get(from..).and_then(|inner| inner.find('}')) else { break };
        result.push(UNKNOWN);
        rest = rest.get(from + end + 1..).unwrap_or_default();
    }
    result.push_str(rest);
    result
}
