//! Compares a text with `*` in it with a word of which parts may not be known.

use super::outcome::Match;
use crate::shell::programs::Text;
use crate::shell::word::UNKNOWN;

/// Stands for an unquoted `*` in a pattern, so that a quoted one remains what it is.
pub(super) const ANY: char = '\u{10FFFD}';

/// Longer words with unknown parts are not looked at closely: they may match.
const LONGEST: usize = 4096;

/// Whether the word matches the pattern. An unknown part matches `*`; anything else it may match.
pub(super) fn compare(pattern: &str, word: Text<'_>) -> Match {
    if begins_otherwise(pattern, word) {
        return Match::No;
    }
    let has_star = !pattern.is_ascii() && pattern.contains(ANY);
    if pattern == word.text || has_star && fits(pattern, word.text) {
        return Match::Yes;
    }
    if same_path(pattern, word.text) {
        return Match::Yes;
    }
    let is_open = |c: char| c == UNKNOWN || (word.glob && matches!(c, '*' | '?' | '[' | '{'));
    let may_be_open = word.glob || !word.text.is_ascii();
    if !may_be_open || !word.text.contains(is_open) {
        return Match::No;
    }
    if word.text.len() > LONGEST || overlaps(pattern, word) { Match::Maybe } else { Match::No }
}

/// Whether both begin with a known letter, and not with the same one. Tells most words apart without a closer look.
fn begins_otherwise(pattern: &str, word: Text<'_>) -> bool {
    let (Some(wanted), Some(first)) = (pattern.bytes().next(), word.text.bytes().next()) else {
        return false;
    };
    // `ANY` and `UNKNOWN` are not ASCII.
    let is_wildcard = word.glob && matches!(first, b'*' | b'?' | b'[' | b'{');
    wanted != first && wanted.is_ascii() && first.is_ascii() && !is_wildcard
}

/// The pattern as people wrote it.
pub(super) fn shown(pattern: &str) -> String {
    pattern.replace(ANY, "*")
}

/// Whether the text fits, letter by letter; `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // Where to go on if the last `*` must stand for one letter more.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let before_text = text.clone();
        match (pattern.next(), text.next()) {
            (Some(ANY), _) => {
                retry = Some((pattern.clone(), before_text.clone()));
                text = before_text;
            }
            (Some(wanted), Some(letter)) if wanted == letter => {}
            (None, None) => return true,
            (_, _) => {
                let Some((behind, mut rest)) = retry.take() else { return false };
                if rest.next().is_none() {
                    return false;
                }
                pattern = behind.clone();
                text = rest.clone();
                retry = Some((behind, rest));
            }
        }
    }
}

/// Whether they are the same path but for slashes and `/.` at the end: `/tmp/` and `/tmp`.
fn same_path(pattern: &str, text: &str) -> bool {
    fn trim(path: &str) -> &str {
        let mut rest = path;
        while rest.len() > 1 {
            rest = match rest.strip_suffix('/').or_else(|| rest.strip_suffix("/.")) {
                Some("") => return "/",
                Some(shorter) => shorter,
                None => break,
            };
        }
        rest
    }
    (text.ends_with(['/', '.']) || pattern.ends_with(['/', '.']))
        && (text.contains('/') || pattern.contains('/'))
        && (trim(pattern).len() < pattern.len() || trim(text).len() < text.len())
        && fits(trim(pattern), trim(text))
}

/// Whether some text fits both: `*` in the pattern and unknown parts and wildcards of the word stand for any text.
fn overlaps(pattern: &str, word: Text<'_>) -> bool {
    let text = word.text;
    let open = |c: char| c == UNKNOWN || (word.glob && matches!(c, '*' | '[' | '{'));
    let any_letter = |c: char| word.glob && c == '?';
    // `row[i]`: whether what is left of the word can be what is left of the pattern, from its letter `i` on.
    let pattern: Vec<char> = pattern.chars().collect();
    let mut below = end_row(&pattern);
    for letter in text.chars().rev() {
        let mut row = vec![false; pattern.len() + 1];
        for at in (0..=pattern.len()).rev() {
            let wanted = pattern.get(at).copied();
            row[at] = match wanted {
                _ if open(letter) => below[at] || (wanted.is_some() && row[at + 1]),
                Some(ANY) => row[at + 1] || below[at],
                Some(wanted) => (wanted == letter || any_letter(letter)) && below[at + 1],
                None => false,
            };
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}

/// What is left of the pattern fits the end of a word if it is only `*`.
fn end_row(pattern: &[char]) -> Vec<bool> {
    let mut row = vec![true; pattern.len() + 1];
    for at in (0..pattern.len()).rev() {
        row[at] = pattern[at] == ANY && row[at + 1];
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare_text(pattern: &str, text: &str) -> Match {
        let word = Text::literal(text);
        compare(&pattern.replace('*', &ANY.to_string()), word)
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("push", "push", Match::Yes),
            ("push", "pull", Match::No),
            ("", "", Match::Yes),
            ("*", "", Match::Yes),
            ("*", "anything", Match::Yes),
            ("mkfs*", "mkfs.ext4", Match::Yes),
            ("*.env", "config/.env", Match::Yes),
            ("*.env", "config/.envrc", Match::No),
            ("a*b*c", "a-b-b-c", Match::Yes),
            ("a*b*c", "a-c-b", Match::No),
            ("/tmp", "/tmp/", Match::Yes),
            ("/tmp/", "/tmp", Match::Yes),
            ("/", "/", Match::Yes),
            ("/", "//", Match::Yes),
            ("/", "/.", Match::Yes),
            ("/", "/tmp", Match::No),
            (".", "./", Match::Yes),
            (".", "/", Match::No),
            ("..", ".", Match::No),
        ] {
            assert_eq!(compare_text(pattern, text), expected, "{pattern} against {text}");
        }
    }

    #[test]
    fn an_unknown_part_may_match() {
        for (pattern, text, expected) in [
            ("main", "\u{FFFC}", Match::Maybe),
            ("*", "\u{FFFC}", Match::Yes),
            ("/*", "/\u{FFFC}", Match::Yes),
            ("/home", "/h\u{FFFC}", Match::Maybe),
            ("/etc", "/h\u{FFFC}", Match::No),
            ("*.pem", "key\u{FFFC}", Match::Maybe),
            ("*.pem", "key\u{FFFC}.txt", Match::No),
        ] {
            assert_eq!(compare_text(pattern, text), expected, "{pattern} against {text}");
        }
        let glob = |text| compare("/home", Text { text, glob: true });
        assert_eq!(glob("/h*"), Match::Maybe);
        assert_eq!(glob("/hom?"), Match::Maybe);
        assert_eq!(glob("/ho?"), Match::No);
        assert_eq!(glob("/e*"), Match::No);
    }
}
