//! The paths that programs list, one per line, for `xargs` and loops that read them.

use super::super::follow::Flow;
use super::super::view::Invocation;
use super::super::word::{UNKNOWN, Word};

/// The paths that a program lists; none if they are not known, or its text tells all.
pub(super) fn items(name: &str, program: &Invocation, input: &Flow) -> Vec<Word> {
    match name {
        "ls" | "gls" | "exa" | "eza" => listed(program),
        // The shell expands the wildcards in their arguments.
        "echo" | "printf" if program.args.iter().any(Word::is_glob) => {
            let words = program.args.iter().skip(usize::from(name == "printf"));
            words.filter(|word| !word.as_str().starts_with('-')).cloned().collect()
        }
        "sort" | "uniq" | "tac" | "tr" | "shuf" | "pv" => input.items.clone(),
        "grep" | "egrep" | "fgrep" | "rg" if inverts(program) => input.items.clone(),
        "grep" | "egrep" | "fgrep" | "rg" | "head" | "tail" | "fzf" => {
            input.items.iter().map(narrowed).collect()
        }
        _ => Vec::new(),
    }
}

/// `ls -d` prints its operands; without `-d` those with wildcards, most of which are files; without operands all that is
/// there.
fn listed(program: &Invocation) -> Vec<Word> {
    let options = program.args.iter().filter(|word| word.as_str().starts_with('-'));
    let short = |letter: char| {
        options
            .clone()
            .any(|word| !word.as_str().starts_with("--") && word.as_str().contains(letter))
    };
    if short('l') || program.more_args {
        return Vec::new();
    }
    let directories = short('d') || options.clone().any(|word| word.as_str() == "--directory");
    let operands = program.args.iter().filter(|word| !word.as_str().starts_with('-'));
    if !directories && operands.clone().next().is_none() {
        return vec![Word::glob("*")];
    }
    operands.filter(|word| directories || word.is_glob()).cloned().collect()
}

fn inverts(program: &Invocation) -> bool {
    program.args.iter().map(Word::as_str).any(|arg| {
        arg == "--invert-match"
            || arg.strip_prefix('-').is_some_and(|letters| {
                letters.contains('v') && letters.chars().all(|c| c.is_ascii_alphabetic())
            })
    })
}

/// Some of the paths that a word stands for.
fn narrowed(item: &Word) -> Word {
    let text = item.as_str();
    if item.is_glob() {
        let wildcard = text.find(['*', '?', '[']).unwrap_or(text.len());
        let directory = text.get(..wildcard).and_then(|before| before.rfind('/'));
        let before = directory.and_then(|at| text.get(..=at)).unwrap_or_default();
        return Word::literal(format!("{before}{UNKNOWN}"));
    }
    if text.contains(UNKNOWN) {
        return item.clone();
    }
    Word::literal(format!("{}/{UNKNOWN}", text.strip_suffix('/').unwrap_or(text)))
}
