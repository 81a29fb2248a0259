//! Whether a shell hook of Hermes calls the bus: by itself, inside of `sh -c '…'`, or in a shell script of somebody's
//! own. Then it is a wire, and a second one beside the bridge. What else it does is told apart from what only leads
//! to that call (`command -v hookbus`, `|| true`).

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::bridge::NAME;

/// What a command has to do with the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// It does not call it.
    Nothing,
    /// That is all it does.
    Only,
    /// It calls it, and does something else too.
    AndMore,
}

const SHELLS: [&str; 6] = ["bash", "dash", "fish", "ksh", "sh", "zsh"];

/// Words of a shell that stand before a command or between two.
const KEYWORDS: [&str; 14] = [
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}", "time",
    "exec",
];

/// Commands that change nothing outside of their shell.
const IDLE: [&str; 16] = [
    ":", "[", "[[", "cd", "export", "false", "hash", "set", "shopt", "test", "true", "type",
    "ulimit", "umask", "unset", "which",
];

/// Nobody's wrapper is longer.
const LONGEST_SCRIPT: u64 = 64 << 10;

/// Lines inside of lines are looked into this deep.
const DEEPEST: usize = 4;

/// What an entry of Hermes' hooks has to do with the bus.
pub(super) fn calls(entry: &Value) -> Calls {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let words = shlex::split(command)
        .unwrap_or_else(|| command.split_whitespace().map(str::to_owned).collect());
    by_words(&words, DEEPEST)
}

fn by_words(words: &[String], deeper: usize) -> Calls {
    if is_call(words) {
        return Calls::Only;
    }
    if deeper == 0 {
        return Calls::Nothing;
    }
    let line = match words.iter().position(|word| SHELLS.contains(&name_of(word))) {
        Some(shell) => line_of(&words[shell + 1..]),
        None if words.first().is_some_and(|word| word == "eval") => Some(words[1..].join(" ")),
        None => words.iter().find_map(|word| script(word)).filter(|text| is_for_a_shell(text)),
    };
    line.map_or(Calls::Nothing, |line| by_line(&line, deeper - 1))
}

/// Whether these words run `hookbus hook hermes`, whatever stands before them.
fn is_call(words: &[String]) -> bool {
    let is_us = |word: &String| {
        let named_by_variable = word.contains('$') && word.to_lowercase().contains(NAME);
        name_of(word) == NAME || named_by_variable
    };
    words.iter().position(is_us).is_some_and(|place| {
        let mut rest = words[place + 1..].iter().filter(|word| !word.starts_with('-'));
        rest.next().is_some_and(|verb| verb == "hook") && rest.any(|agent| agent == "hermes")
    })
}

fn name_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// What a shell with these words runs: the line after `-c`, or what is in a script.
fn line_of(words: &[String]) -> Option<String> {
    let gives_a_line = |word: &String| {
        word.strip_prefix('-').is_some_and(|letters| {
            letters.contains('c') && letters.bytes().all(|letter| letter.is_ascii_alphabetic())
        })
    };
    match words.iter().position(gives_a_line) {
        Some(place) => words.get(place + 1).cloned(),
        None => words.iter().find(|word| !word.starts_with('-')).and_then(|word| script(word)),
    }
}

/// What is in the script that a word names. Where Hermes will stand nobody knows, so only whole paths count.
fn script(word: &str) -> Option<String> {
    let path = match word.strip_prefix("~/") {
        Some(rest) => std::env::home_dir()?.join(rest),
        None => PathBuf::from(word),
    };
    if !path.is_absolute() || !Path::new(&path).is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(LONGEST_SCRIPT).read_to_end(&mut text).ok()?;
    String::from_utf8(text).ok()
}

fn is_for_a_shell(text: &str) -> bool {
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    first.is_some_and(|line| line.split_whitespace().any(|word| SHELLS.contains(&name_of(word))))
}

fn by_line(line: &str, deeper: usize) -> Calls {
    let (mut called, mut more) = (false, false);
    for command in commands(line) {
        match by_words(&command.words, deeper) {
            Calls::Only => called = true,
            Calls::AndMore => return Calls::AndMore,
            Calls::Nothing if command.is_idle() => {}
            Calls::Nothing => {
                more = true;
                called |= command.words.iter().any(|word| holds_a_call(word));
            }
        }
    }
    match (called, more) {
        (true, false) => Calls::Only,
        (true, true) => Calls::AndMore,
        (false, _) => Calls::Nothing,
    }
}

/// Whether a word that a shell puts together runs us: `"$(hookbus hook hermes)"`.
fn holds_a_call(word: &str) -> bool {
    let inner = word.split_once("$(").or_else(|| word.split_once('`')).map(|(_, inner)| inner);
    let words = |inner: &str| {
        inner.split([' ', ')', '`', ';', '|', '&']).map(str::to_owned).collect::<Vec<_>>()
    };
    inner.is_some_and(|inner| is_call(&words(inner)))
}

/// One simple command of a line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Simple {
    words: Vec<String>,
    /// Its output goes to a file.
    writes: bool,
}

impl Simple {
    /// Whether nothing would be missed without it.
    fn is_idle(&self) -> bool {
        let is_setting = |word: &&String| word.contains('=') && !word.starts_with('=');
        let before = |word: &&String| KEYWORDS.contains(&word.as_str()) || is_setting(word);
        let words: Vec<&str> = self.words.iter().skip_while(before).map(String::as_str).collect();
        match words.as_slice() {
            [] => true,
            ["command", option, ..] => option.starts_with("-v") || option.starts_with("-V"),
            // Another code, or another answer, is one of its own.
            ["exit" | "return"] | ["exit" | "return", "0"] => true,
            ["cat" | "echo" | "printf"] | ["echo" | "printf", "{}" | "{}\\n"] => !self.writes,
            [program, ..] => IDLE.contains(program) && !self.writes,
        }
    }
}

/// The simple commands of a line for a shell, as far as they have to be known here.
fn commands(line: &str) -> Vec<Simple> {
    let mut reader = Reader::default();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (reader.quote, letter) {
            (None | Some('"'), '\\') => match letters.next() {
                Some('\n') | None => {}
                Some(escaped) => reader.put(escaped),
            },
            (Some(open), _) if letter == open => reader.quote = None,
            (Some(_), _) => reader.put(letter),
            (None, '"' | '\'') => {
                reader.quote = Some(letter);
                reader.word.get_or_insert_default();
            }
            (None, '#') if reader.word.is_none() => {
                while letters.next_if(|letter| *letter != '\n').is_some() {}
            }
            (None, '<' | '>') => {
                let mut writes = letter == '>';
                while let Some(more) = letters.next_if(|letter| "<>&|".contains(*letter)) {
                    writes |= more == '>';
                }
                reader.redirect(writes);
            }
            (None, ';' | '|' | '&' | '(' | ')' | '\n') => reader.end_command(),
            (None, ' ' | '\t' | '\r') => reader.end_word(),
            (None, _) => reader.put(letter),
        }
    }
    reader.end_command();
    reader.commands
}

#[derive(Default)]
struct Reader {
    commands: Vec<Simple>,
    command: Simple,
    word: Option<String>,
    quote: Option<char>,
    /// The next word is where something goes to or comes from; whether it is written.
    target: Option<bool>,
}

impl Reader {
    fn put(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn redirect(&mut self, writes: bool) {
        // The number in `2>` is part of it.
        let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        self.target = Some(writes);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.target.take() {
            Some(writes) => {
                let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
                self.command.writes |= writes && !is_number && word != "/dev/null";
            }
            None => self.command.words.push(word),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.target = None;
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() {
            self.commands.push(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(command: &str) -> Calls {
        calls(&json!({"command": command}))
    }

    #[test]
    fn a_call_is_found_wherever_it_stands() {
        for command in [
            "hookbus hook hermes",
            "/opt/bin/hookbus --json hook --deadline 20 hermes",
            "env A=1 timeout 5 ~/bin/hookbus hook hermes",
            "sh -c 'command -v hookbus >/dev/null && exec hookbus hook hermes || true'",
            "bash -o pipefail -ec '[ -x /x ] || exit 0; \"${HOOKBUS:-hookbus}\" hook hermes 2>&1'",
            "sh -c 'cat | hookbus hook hermes || echo {}'",
            "sh -c 'if hookbus hook hermes; then :; fi # and no more'",
            "sh -c \"bash -c 'hookbus hook hermes'\"",
            "sh -c 'eval \"hookbus hook hermes\"'",
        ] {
            assert_eq!(of(command), Calls::Only, "{command}");
        }
    }

    #[test]
    fn what_a_command_does_besides_is_not_overlooked() {
        for command in [
            "sh -c 'tee -a /tmp/x | hookbus hook hermes'",
            "sh -c 'hookbus hook hermes || exit 2'",
            "sh -c 'echo {} > /tmp/x; hookbus hook hermes'",
            "sh -c 'out=$(hookbus hook hermes); echo \"$out\"'",
            "sh -c 'echo \"$(hookbus hook hermes)\"'",
            "bash -c 'notify-send x & hookbus hook hermes'",
        ] {
            assert_eq!(of(command), Calls::AndMore, "{command}");
        }
    }

    #[test]
    fn what_only_has_the_words_is_no_call() {
        for command in [
            "",
            "hookbus status",
            "hookbus hook gemini",
            "hookbus-guard hook hermes",
            "sh -c 'true # hookbus hook hermes'",
            "sh -c 'echo hookbus >> /tmp/hook; true hermes'",
            "sh 'unclosed",
            "sh -c",
        ] {
            assert_eq!(of(command), Calls::Nothing, "{command}");
        }
    }
}
