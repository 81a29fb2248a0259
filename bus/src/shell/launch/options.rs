//! Options before the program that a wrapper starts.

use super::super::follow::Arg;

/// How many arguments are options. An option in `values` takes the next argument too; an unknown one does not.
pub(super) fn leading(args: &[Arg], values: &[&str]) -> usize {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.word.as_str();
        if text == "--" {
            return at + 1;
        }
        if !text.starts_with('-') || text.len() == 1 {
            break;
        }
        at += if values.contains(&text) { 2 } else { 1 };
    }
    at.min(args.len())
}

/// The value of the first of these options: `-c x`, `--command x`, `--command=x`.
pub(super) fn value<'a>(args: &'a [Arg], names: &[&str]) -> Option<&'a Arg> {
    let at = args.iter().position(|arg| names.contains(&arg.word.as_str()))?;
    args.get(at + 1)
}

/// The value of `--name=value`.
pub(super) fn joined_value<'a>(args: &'a [Arg], name: &str) -> Option<&'a str> {
    args.iter().find_map(|arg| arg.word.as_str().strip_prefix(name)?.strip_prefix('='))
}

/// Arguments joined to a shell line, and the gravest origin among them.
pub(super) fn joined(args: &[Arg]) -> (String, super::super::follow::Origin) {
    let words: Vec<&str> = args.iter().map(|arg| arg.word.as_str()).collect();
    let origin = args.iter().map(|arg| arg.origin).max().unwrap_or_default();
    (words.join(" "), origin)
}
