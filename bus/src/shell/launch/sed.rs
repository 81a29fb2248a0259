//! The scripts of `sed`: `e line` and `s/…/…/e` run shell lines, `w file` writes files, `r file` reads them.

use super::super::follow::{Arg, Call, Follower, Origin};
use super::super::view::{Access, FileUse};
use super::super::word::Word;
use super::option_lines::values;

/// How many commands of a script are read.
const COMMANDS: usize = 128;

/// What a command of a script does.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    Line(String),
    File(String, Access),
}

impl Follower<'_> {
    /// Adds the files of the script; gives the lines that it runs.
    pub(super) fn sed_lines(
        &mut self,
        args: &[Arg],
        index: usize,
        call: &Call,
    ) -> Vec<(String, Origin)> {
        let mut scripts = values(args, &["-e", "--expression"]);
        if scripts.is_empty() {
            let operand = args.iter().find(|arg| {
                let text = arg.word.as_str();
                !text.starts_with('-') && !text.is_empty()
            });
            scripts.extend(operand.map(|arg| (arg.word.as_str().to_owned(), arg.origin)));
        }
        let mut lines = Vec::new();
        for (script, origin) in scripts {
            for effect in effects(&script) {
                match effect {
                    Effect::Line(line) => lines.push((line, origin)),
                    Effect::File(path, access) => self.view.files.push(FileUse {
                        path: Word::literal(path),
                        base: call.directory.clone(),
                        access,
                        recursive: false,
                        by: Some(index),
                    }),
                }
            }
        }
        lines
    }
}

fn effects(script: &str) -> Vec<Effect> {
    let mut found = Vec::new();
    let mut rest = script;
    for _ in 0..COMMANDS {
        rest = behind_address(rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']));
        let mut chars = rest.chars();
        let Some(command) = chars.next() else { break };
        rest = chars.as_str();
        match command {
            's' | 'y' => {
                let Some((replacement, behind)) = substitution(rest) else { break };
                let flags = behind.split([';', '\n', '}']).next().unwrap_or_default();
                let (flags, file) = flags.split_once('w').unwrap_or((flags, ""));
                if command == 's' && flags.contains('e') {
                    found.push(Effect::Line(replacement.to_owned()));
                }
                add_file(file, Access::Write, &mut found);
                rest = behind.trim_start_matches(|c| !matches!(c, ';' | '\n' | '}'));
            }
            'e' | 'w' | 'W' | 'r' | 'R' | 'a' | 'i' | 'c' => {
                let (argument, behind) = rest.split_once('\n').unwrap_or((rest, ""));
                match command {
                    'e' if !argument.trim().is_empty() => {
                        found.push(Effect::Line(argument.trim().to_owned()));
                    }
                    'w' | 'W' => add_file(argument, Access::Write, &mut found),
                    'r' | 'R' => add_file(argument, Access::Read, &mut found),
                    _ => {}
                }
                rest = behind;
            }
            _ => rest = rest.trim_start_matches(|c| !matches!(c, ';' | '\n' | '}' | '{')),
        }
    }
    found
}

fn add_file(path: &str, access: Access, found: &mut Vec<Effect>) {
    let path = path.trim();
    if !path.is_empty() && !path.starts_with("/dev/std") {
        found.push(Effect::File(path.to_owned(), access));
    }
}

/// What follows the addresses of a command: `1`, `$`, `/x/`, `1,5`, `2~3`, `!`.
fn behind_address(mut text: &str) -> &str {
    loop {
        let plain = text.trim_start_matches(|c: char| {
            c.is_ascii_digit() || matches!(c, '$' | ',' | '~' | '!' | ' ' | '+')
        });
        let Some(expression) = plain.strip_prefix('/') else { return plain };
        let Some(end) = closing(expression, '/') else { return "" };
        text = expression.get(end + 1..).unwrap_or_default().trim_start_matches(['I', 'M']);
    }
}

/// The replacement of `/x/y/`, and what is behind it.
fn substitution(text: &str) -> Option<(&str, &str)> {
    let sign = text.chars().next()?;
    let pattern = text.get(sign.len_utf8()..)?;
    let replacement = pattern.get(closing(pattern, sign)? + sign.len_utf8()..)?;
    let end = closing(replacement, sign)?;
    Some((replacement.get(..end)?, replacement.get(end + sign.len_utf8()..)?))
}

/// Where a sign stands that no backslash precedes.
fn closing(text: &str, sign: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == sign && !escaped {
            return Some(at);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}
