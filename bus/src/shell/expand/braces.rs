//! Brace expansion: `{a,b}`, `{1..3}`, `{a..e}`.

use super::super::limits;
use super::super::syntax::Parser;

/// The words that braces make.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    pub(super) words: Vec<String>,
    /// Whether some were left out.
    pub(super) cut: bool,
}

/// A word longer than this is left as it is.
const WORD: usize = 2_048;
/// How many braces of one word are expanded.
const BRACES: usize = 8;

/// Expands the braces of a word; None if there are none.
pub(super) fn expand(word: &str) -> Option<Expansion> {
    if !word.contains('{') || !word.contains('}') || find(word)?.1.is_empty() {
        return None;
    }
    let mut expansion = Expansion::default();
    expand_into(word, BRACES, &mut expansion);
    Some(expansion)
}

fn expand_into(word: &str, depth: usize, to: &mut Expansion) {
    if to.words.len() >= limits::BRACE_WORDS {
        to.cut = true;
        return;
    }
    if depth == 0 || word.len() > WORD {
        to.cut = true;
        to.words.push(word.to_owned());
        return;
    }
    let Some((from, parts, end)) = find(word) else {
        to.words.push(word.to_owned());
        return;
    };
    let (before, behind) =
        (word.get(..from).unwrap_or_default(), word.get(end..).unwrap_or_default());
    for part in parts {
        expand_into(&format!("{before}{part}{behind}"), depth - 1, to);
    }
}

/// The first brace expression: where it starts, what it stands for, where it ends.
fn find(word: &str) -> Option<(usize, Vec<String>, usize)> {
    let mut parser = Parser::new(word);
    let mut at = 0;
    let mut tried = 0;
    while let Some(byte) = word.as_bytes().get(at) {
        if *byte == b'{' {
            tried += 1;
            if tried > BRACES {
                return None;
            }
            if let Some((parts, end)) = alternatives(word, at, &mut parser) {
                return Some((at, parts, end));
            }
            at += 1;
        } else {
            at = parser.word_piece_end(at).ok()?;
        }
    }
    None
}

/// What the brace at a position stands for, and where it ends; None if it is a plain brace.
fn alternatives(word: &str, from: usize, parser: &mut Parser<'_>) -> Option<(Vec<String>, usize)> {
    let mut parts = Vec::new();
    let (mut at, mut part, mut open) = (from + 1, from + 1, 0_usize);
    loop {
        match word.as_bytes().get(at)? {
            b'{' => open += 1,
            b'}' if open > 0 => open -= 1,
            b'}' => break,
            b',' if open == 0 => {
                parts.push(word.get(part..at)?.to_owned());
                part = at + 1;
            }
            _ => {
                at = parser.word_piece_end(at).ok()?;
                continue;
            }
        }
        at += 1;
    }
    let last = word.get(part..at)?;
    if parts.is_empty() {
        return range(last).map(|parts| (parts, at + 1));
    }
    parts.push(last.to_owned());
    Some((parts, at + 1))
}

/// `1..5`, `a..e`, `1..9..2`.
fn range(text: &str) -> Option<Vec<String>> {
    let mut parts = text.split("..");
    let (from, to) = (parts.next()?, parts.next()?);
    let step = parts.next().map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    let step = usize::try_from(step).ok()?;
    if let (Ok(first), Ok(last)) = (from.parse::<i32>(), to.parse::<i32>()) {
        let width =
            if from.starts_with('0') || to.starts_with('0') { from.len().max(to.len()) } else { 0 };
        let numbers: Vec<i32> = if first <= last {
            (first..=last).step_by(step).take(limits::BRACE_WORDS).collect()
        } else {
            (last..=first).rev().step_by(step).take(limits::BRACE_WORDS).collect()
        };
        return Some(numbers.into_iter().map(|number| format!("{number:0width$}")).collect());
    }
    let (mut from, mut to) = (from.chars(), to.chars());
    let (first, None, last, None) = (from.next()?, from.next(), to.next()?, to.next()) else {
        return None;
    };
    if !first.is_ascii_alphabetic() || !last.is_ascii_alphabetic() {
        return None;
    }
    let letters: Vec<char> = if first <= last {
        (first..=last).step_by(step).collect()
    } else {
        (last..=first).rev().step_by(step).collect()
    };
    Some(letters.into_iter().map(String::from).collect())
}
