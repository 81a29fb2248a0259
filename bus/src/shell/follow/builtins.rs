//! Builtins that change the state of the shell: directories, variables, aliases, parameters.

use super::super::view::Directory;
use super::super::word::{UNKNOWN, Word};
use super::flow::{Flow, Origin};
use super::follower::Follower;
use super::scope::{Value, join};
use super::simple::Arg;

impl Follower<'_> {
    /// Applies a builtin; false if the name is none that changes state.
    pub(crate) fn builtin(&mut self, name: &str, args: &[Arg], input: &Flow) -> bool {
        if !matches!(name, "cd" | "chdir" | "pushd" | "popd" | "alias" | "set" | "shift") {
            for arg in args.iter().filter(|arg| arg.word.as_str().contains('[')) {
                self.compute_subscript(arg.word.as_str());
            }
        }
        match name {
            "cd" | "chdir" => self.change_directory(args),
            "pushd" => {
                let before = self.scope.directory.clone();
                self.change_directory(args);
                self.scope.stack.push(before);
            }
            "popd" => {
                let target = self.scope.stack.pop().unwrap_or(Directory::Unknown);
                self.scope.enter(target);
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(args),
            "unset" => {
                for arg in operands(args) {
                    self.scope.set(arg.word.as_str(), Value::text("", Origin::Line));
                }
            }
            "read" => self.read_variables(args, input),
            "compgen" => self.callbacks(args),
            "mapfile" | "readarray" if args.iter().any(|arg| arg.word.as_str() == "-C") => {
                self.callbacks(args);
            }
            "mapfile" | "readarray" if !input.items.is_empty() => {
                for arg in operands(args) {
                    self.scope.set(arg.word.as_str(), Value::List(input.items.clone()));
                }
            }
            "mapfile" | "readarray" | "getopts" | "let" | "wait" => {
                for arg in operands(args) {
                    self.scope.set(arg.word.as_str(), Value::unknown(Origin::Variable));
                }
            }
            "alias" => self.alias(args),
            "unalias" => self.scope.aliases.clear(),
            "set" => self.set_parameters(args),
            "shift" => {
                if let Some(parameters) = &mut self.scope.parameters
                    && parameters.len() > 1
                {
                    parameters.remove(1);
                }
            }
            "printf" => self.print_to_variable(args),
            _ => return false,
        }
        true
    }

    fn change_directory(&mut self, args: &[Arg]) {
        let mut targets = args.iter().filter(|arg| !is_option(arg) || arg.word.as_str() == "-");
        let directory = match targets.next().map(|arg| &arg.word) {
            None => match &self.start.home {
                Some(home) => Directory::Path(home.clone()),
                None => Directory::Unknown,
            },
            Some(target) if target.as_str() == "-" => {
                self.scope.previous.clone().unwrap_or(Directory::Unknown)
            }
            Some(target) if !target.is_known() => Directory::Unknown,
            Some(target) if target.as_str().is_empty() => self.scope.directory.clone(),
            Some(target) => join(&self.scope.directory, target.as_str()),
        };
        self.scope.enter(directory);
    }

    fn declare(&mut self, args: &[Arg]) {
        for arg in operands(args) {
            let text = arg.word.as_str();
            let Some((name, value)) = text.split_once('=') else { continue };
            self.run_variable(name, &Arg { word: Word::literal(value), ..arg.clone() });
            let (name, append) = match name.strip_suffix('+') {
                Some(name) => (name, true),
                None => (name, false),
            };
            if let Some(list) = value.strip_prefix('(').and_then(|list| list.strip_suffix(')')) {
                let words = list.split_whitespace().map(Word::literal).collect();
                self.scope.set(name, Value::List(words));
            } else if append && let Some(Value::Text(old, origin)) = self.scope.value(name) {
                let value = Value::text(format!("{old}{value}"), arg.origin.max(*origin));
                self.scope.set(name, value);
            } else {
                self.scope.set(name, Value::text(value, arg.origin));
            }
        }
    }

    fn read_variables(&mut self, args: &[Arg], input: &Flow) {
        let mut names = Vec::new();
        let mut words = args.iter().map(|arg| arg.word.as_str());
        while let Some(word) = words.next() {
            match word {
                "-p" | "-d" | "-n" | "-N" | "-t" | "-u" | "-i" => {
                    words.next();
                }
                _ if word.starts_with('-') => {}
                _ => names.push(word),
            }
        }
        if let (Some(item), [name, rest @ ..]) = (input.items.first(), names.as_slice()) {
            self.scope.set(name, Value::path(item, input.origin));
            for name in rest {
                self.scope.set(name, Value::unknown(input.origin));
            }
            return;
        }
        let line = input.text.as_deref().and_then(|text| text.lines().next());
        match (names.as_slice(), line) {
            ([name], Some(line)) => {
                self.scope.set(name, Value::text(line.trim(), input.origin));
            }
            (names, Some(line)) => {
                let mut rest = line.trim();
                for (at, name) in names.iter().enumerate() {
                    let (word, behind) = match rest.split_once(char::is_whitespace) {
                        Some(parts) if at + 1 < names.len() => parts,
                        Some(_) | None => (rest, ""),
                    };
                    self.scope.set(name, Value::text(word, input.origin));
                    rest = behind.trim_start();
                }
            }
            (names, None) => {
                for name in names {
                    self.scope.set(name, Value::unknown(input.origin.max(Origin::Variable)));
                }
            }
        }
    }

    fn alias(&mut self, args: &[Arg]) {
        for arg in operands(args) {
            if let Some((name, text)) = arg.word.as_str().split_once('=') {
                self.scope.aliases.retain(|(known, _)| known != name);
                self.scope.aliases.push((name.to_owned(), text.to_owned()));
            }
        }
    }

    /// `set -- a b`.
    fn set_parameters(&mut self, args: &[Arg]) {
        let Some(dashes) = args.iter().position(|arg| arg.word.as_str() == "--") else { return };
        let zero = Word::literal(UNKNOWN.to_string());
        let rest = args.iter().skip(dashes + 1).map(|arg| arg.word.clone());
        self.scope.parameters = Some(std::iter::once(zero).chain(rest).collect());
    }

    /// `printf -v name format …`.
    fn print_to_variable(&mut self, args: &[Arg]) {
        let [option, name, rest @ ..] = args else { return };
        if option.word.as_str() != "-v" {
            return;
        }
        let words: Vec<&str> = rest.iter().map(|arg| arg.word.as_str()).collect();
        let value = match super::super::code::printf(&words) {
            Some(text) => Value::text(text, Origin::Line),
            None => Value::unknown(Origin::Variable),
        };
        self.scope.set(name.word.as_str(), value);
    }
}

fn is_option(arg: &Arg) -> bool {
    arg.word.as_str().starts_with(['-', '+'])
}

/// The arguments that are no options.
fn operands(args: &[Arg]) -> impl Iterator<Item = &Arg> {
    args.iter().filter(|arg| !is_option(arg))
}
