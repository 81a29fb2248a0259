//! Parts of expressions that are known though they are no literals: the home directory, paths that are joined,
//! variables that were assigned.

use super::super::limits;
use super::super::word::UNKNOWN;
use super::literals::{Argument, Literals};

/// How deep calls and variables are followed.
const DEPTH: usize = 6;

/// What the home directory is called; `"` stands for either quote.
const HOMES: &[&str] = &[
    "os.environ[\"HOME\"]",
    "os.environ.get(\"HOME\")",
    "os.getenv(\"HOME\")",
    "environ[\"HOME\"]",
    "process.env.HOME",
    "process.env[\"HOME\"]",
    "require(\"os\").homedir()",
    "require(\"node:os\").homedir()",
    "os.homedir()",
    "homedir()",
    "Deno.env.get(\"HOME\")",
    "Bun.env.HOME",
    "ENV[\"HOME\"]",
    "ENV.fetch(\"HOME\")",
    "Dir.home",
    "$ENV{HOME}",
    "$ENV{\"HOME\"}",
    "$_SERVER[\"HOME\"]",
    "pathlib.Path.home()",
    "Path.home()",
    "getenv(\"HOME\")",
    "os.getenv(\"HOME\")",
];

/// Calls that give their argument as it is, as far as paths go.
const SAME: &[&str] = &[
    "os.path.expanduser(",
    "os.path.abspath(",
    "os.path.realpath(",
    "os.path.normpath(",
    "os.path.expandvars(",
    "expanduser(",
    "File.expand_path(",
    "File.realpath(",
    "os.fspath(",
    "str(",
    "String(",
    "Bun.file(",
    "Pathname.new(",
    "Pathname(",
    "URI.parse(",
    "URI(",
    "new URL(",
    "urllib.request.Request(",
    "Request(",
];

/// Calls that join paths.
const JOINS: &[&str] = &[
    "os.path.join(",
    "require(\"path\").join(",
    "path.posix.join(",
    "path.join(",
    "path.resolve(",
    "File.join(",
    "pathlib.Path(",
    "Path(",
    "join(",
];

/// Methods of a path that leave it as it is.
const UNCHANGED: &[&str] = &[
    ".expanduser()",
    ".resolve()",
    ".absolute()",
    ".as_posix()",
    ".toString()",
    ".to_s",
    ".strip()",
    ".trim()",
];

/// Methods that touch the file that a path names.
pub(super) const FILE_METHODS: &[&str] = &[
    ".read_text(",
    ".read_bytes(",
    ".write_text(",
    ".write_bytes(",
    ".unlink(",
    ".rmdir(",
    ".rmtree",
    ".touch(",
    ".open(",
    ".iterdir(",
    ".glob(",
    ".rglob(",
    ".delete(",
    ".text(",
    ".json(",
    ".read",
    ".write",
    ".mkdir(",
    ".chmod(",
    ".rename(",
];

impl Literals<'_> {
    /// A known part of an expression; None if there is none at the position.
    pub(super) fn known_term(&mut self) -> Option<String> {
        if let Some(rest) = HOMES.iter().find_map(|home| without(self.rest, home)) {
            self.rest = rest;
            return Some(self.context.home.unwrap_or("~").to_owned());
        }
        if let Some(rest) = SAME.iter().find_map(|call| without(self.rest, call)) {
            let arguments = self.call(rest)?;
            return Some(self.at_home(text(arguments.into_iter().next()?)));
        }
        if let Some(rest) = JOINS.iter().find_map(|call| without(self.rest, call)) {
            let mut path = String::new();
            for part in self.call(rest)? {
                let part = self.at_home(text(part));
                join(&mut path, &part);
            }
            return (!path.is_empty() && path.chars().any(|c| c != UNKNOWN && c != '/'))
                .then_some(path);
        }
        self.variable()
    }

    /// The arguments of a call, from behind its parenthesis.
    fn call(&mut self, rest: &str) -> Option<Vec<Argument>> {
        if self.depth >= DEPTH {
            return None;
        }
        let from = self.rest.len() - rest.len();
        let mut inside = self.inside(self.rest.get(from..)?);
        let arguments = inside.arguments();
        let rest = inside.rest().trim_start();
        self.rest = rest.strip_prefix(')').unwrap_or(rest);
        Some(arguments)
    }

    /// A variable that was assigned a literal.
    fn variable(&mut self) -> Option<String> {
        let name = self.rest.strip_prefix('$').unwrap_or(self.rest);
        let length = name.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let length = length.count();
        let (name, behind) = name.split_at_checked(length)?;
        let calls = behind.starts_with(['(', '[']);
        if name.is_empty()
            || calls
            || self.depth >= DEPTH
            || name.as_bytes().first()?.is_ascii_digit()
        {
            return None;
        }
        let Argument::Text(value) = self.context.assigned(name, self.depth)? else { return None };
        let from = self.rest.len() - behind.len();
        self.rest = self.rest.get(from..)?;
        Some(value)
    }

    /// Reads a method that changes a path: `.joinpath("x")`, `.expanduser()`.
    pub(super) fn path_method(&mut self, path: &mut String) -> bool {
        if let Some(rest) = UNCHANGED.iter().find_map(|method| self.rest.strip_prefix(method)) {
            self.rest = rest;
            return true;
        }
        let Some(rest) = self.rest.strip_prefix(".joinpath(") else { return false };
        for part in self.call(rest).unwrap_or_default() {
            join(path, &text(part));
        }
        true
    }

    /// Whether a method follows that touches the file.
    pub(super) fn is_file_method(&self) -> bool {
        FILE_METHODS.iter().any(|method| self.rest.starts_with(method))
    }

    /// A text with its placeholders filled in: `{x}`, `${x}`, `#{x}`. What is not known stays so.
    pub(super) fn filled(&self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(from) = rest.find('{') {
            let before = rest.get(..from).unwrap_or_default();
            result.push_str(before.strip_suffix(['$', '#']).unwrap_or(before));
            let inner = rest.get(from + 1..).unwrap_or_default();
            let Some(end) = inner.find('}') else { break };
            let value = inner.get(..end).unwrap_or_default();
            match self.placeholder(value) {
                Some(value) if result.len() + value.len() < limits::WORD_BYTES => {
                    result.push_str(&value);
                }
                Some(_) | None => result.push(UNKNOWN),
            }
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        result.push_str(rest);
        result
    }

    fn placeholder(&self, value: &str) -> Option<String> {
        if self.depth >= DEPTH {
            return None;
        }
        let mut inside = Literals { rest: value, context: self.context, depth: self.depth + 1 };
        match inside.expression() {
            Argument::Text(text) => Some(text),
            Argument::List(_) | Argument::Other(_) => None,
        }
    }

    /// A path with `~` filled in.
    fn at_home(&self, path: String) -> String {
        match (path.strip_prefix('~'), self.context.home) {
            (Some(behind), Some(home)) if behind.is_empty() || behind.starts_with('/') => {
                format!("{home}{behind}")
            }
            _ => path,
        }
    }
}

/// What is behind a prefix; `"` in it stands for either quote.
fn without<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    let same = start
        .bytes()
        .zip(prefix.bytes())
        .all(|(found, wanted)| found == wanted || wanted == b'"' && found == b'\'');
    if same { text.get(prefix.len()..) } else { None }
}

fn text(argument: Argument) -> String {
    match argument {
        Argument::Text(text) => text,
        Argument::List(_) | Argument::Other(_) => UNKNOWN.to_string(),
    }
}

/// Adds a part to a path; an absolute one replaces it.
fn join(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    if path.len() + part.len() < limits::WORD_BYTES {
        path.push_str(part);
    }
}
