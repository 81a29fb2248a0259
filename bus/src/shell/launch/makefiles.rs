//! Makefiles that are written in the line: their recipes are shell lines.

use super::super::word::UNKNOWN;

/// How many lines of a makefile are read.
const LINES: usize = 256;

/// The shell lines in a makefile: recipes (behind a tab, or `target: ; line`), `$(shell line)` and `x != line`.
pub(super) fn lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().take(LINES) {
        for (at, call) in line.match_indices("$(shell ").take(8) {
            let inside = line.get(at + call.len()..).unwrap_or_default();
            found.push(plain(balanced(inside)));
        }
        if let Some(recipe) = line.strip_prefix('\t') {
            found.push(plain(recipe.trim_start_matches(['@', '-', '+', ' '])));
        } else if let Some((_, value)) = line.split_once("!=") {
            found.push(plain(value));
        } else if let Some((target, recipe)) = line.split_once(';')
            && target.contains(':')
        {
            found.push(plain(recipe.trim().trim_start_matches(['@', '-', '+'])));
        }
    }
    found
}

/// The text up to the parenthesis that closes it.
fn balanced(text: &str) -> &str {
    let mut open = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' if open == 0 => return text.get(..at).unwrap_or_default(),
            ')' => open -= 1,
            _ => {}
        }
    }
    text
}

/// A recipe as the shell gets it: `$$` is `$`, and what make fills in is not known.
fn plain(recipe: &str) -> String {
    let mut result = String::with_capacity(recipe.len());
    let mut rest = recipe;
    while let Some((before, behind)) = rest.split_once('$') {
        result.push_str(before);
        if let Some(behind) = behind.strip_prefix('$') {
            result.push('$');
            rest = behind;
            continue;
        }
        result.push(UNKNOWN);
        rest = match behind.strip_prefix('(').map(balanced) {
            Some(inner) => behind.get(inner.len() + 2..).unwrap_or_default(),
            None => {
                let mut chars = behind.chars();
                chars.next();
                chars.as_str()
            }
        };
    }
    result.push_str(rest);
    result
}
