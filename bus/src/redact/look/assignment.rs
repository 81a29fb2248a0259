//! A name and the value that is given to it, in whatever language: `name=value`, `"name": "value"`, `name := "value"`,
//! `--name value`, `<name>value</name>`, `{"name": "NAME", "value": "value"}`, `machine x login y password z`.

use std::ops::Range;

use super::super::alphabet::{ALNUM, Alphabet, UPPER_ALNUM};
use super::Look;

/// A name, a value, and how they are joined.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) name: Range<usize>,
    pub(crate) operator: Operator,
    pub(crate) value: Range<usize>,
    pub(crate) quoted: bool,
}

/// What joins a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `NAME=value` as in an environment or a `.env` file.
    Environment,
    /// `=`, `:=`, `=>`.
    Equals,
    /// `==`, `!=`: a comparison.
    Compares,
    /// `:`.
    Colon,
    /// `--name value`, `ENV NAME value`, `set name value`, `.netrc`.
    Blank,
    /// `<name>value<`.
    Tag,
    /// `("name", "value")` and `name("value")`.
    Argument,
    /// `{"name": "NAME", "value": "value"}`.
    Pair,
    /// "the password is value".
    Is,
}

const NAME: Alphabet = ALNUM.and(Alphabet::of("_-."));
const MAX_NAME: usize = 64;
/// Words after which `name value` is an assignment.
const SETTERS: [&str; 6] = ["ENV", "ARG", "set", "setx", "config", "export"];

/// The assignment whose name the keyword at `keyword` is part of. `words` is how many bytes of further words may stand
/// between the name and the operator.
pub(crate) fn assignment(
    look: &mut Look<'_>,
    keyword: Range<usize>,
    words: usize,
) -> Option<Assignment> {
    let left = NAME.suffix(look.before(keyword.start), MAX_NAME);
    let right = NAME.prefix(look.from(keyword.end), MAX_NAME);
    look.spend(left + right + 8);
    if left == MAX_NAME || right == MAX_NAME {
        return None;
    }
    let full = keyword.start - left..keyword.end + right;
    let dashes = look.slice(full.clone()).iter().take_while(|byte| **byte == b'-').count();
    let name = full.start + dashes..full.end;
    let closed = close_name(look, name.end);
    let mut at = look.skip_blanks(closed, 20);
    if words > 0 {
        at = skip_words(look, at, words);
    }
    let (operator, start) = operator(look, &name, dashes, closed, at)?;
    let start = look.skip_blanks(start, 12);
    let value = look.value_at(start);
    let mut found = Assignment { name, operator, value: value.range, quoted: value.quoted };
    // `password: str = "…"`: the first value is a type.
    if operator == Operator::Colon && !found.quoted {
        let next = look.skip_blanks(found.value.end, 4);
        if let Some((b'=', rest)) = look.from(next).split_first()
            && !rest.starts_with(b"=")
        {
            let value = look.value_at(look.skip_blanks(next + 1, 4));
            found = Assignment {
                value: value.range,
                quoted: value.quoted,
                operator: Operator::Equals,
                ..found
            };
        }
    }
    (!found.value.is_empty()).then_some(found)
}

/// Past the quotes and brackets that end a name: `"password"`, `env["password"]`.
fn close_name(look: &Look<'_>, at: usize) -> usize {
    let closing = look.from(at).iter().take(3);
    at + closing.take_while(|byte| matches!(byte, b'"' | b'\'' | b'`' | b']')).count()
}

/// Past words between the name and the operator: "datadog api key: …".
fn skip_words(look: &Look<'_>, at: usize, limit: usize) -> usize {
    let len = NAME.and(Alphabet::of(" ")).prefix(look.from(at), limit + 1);
    let behind = look.byte(at + len);
    if len <= limit && matches!(behind, Some(b':' | b'=')) { at + len } else { at }
}

fn operator(
    look: &Look<'_>,
    name: &Range<usize>,
    dashes: usize,
    closed: usize,
    at: usize,
) -> Option<(Operator, usize)> {
    let quoted_name = closed > name.end;
    match look.from(at) {
        [b'=', b'=' | b'~', ..] | [b'!', b'=', ..] => {
            let len = look.from(at).iter().take(3).take_while(|byte| b"=!~".contains(byte)).count();
            Some((Operator::Compares, at + len))
        }
        [b':', b':', ..] => None,
        [b':' | b'?', b'=', ..] | [b'=', b'>', ..] => Some((Operator::Equals, at + 2)),
        [b'=', next, ..]
            if at == name.end
                && *next > b' '
                && (dashes == 2 || is_environment_name(look, name)) =>
        {
            Some((Operator::Environment, at + 1))
        }
        [b'=', ..] => Some((Operator::Equals, at + 1)),
        [b':', ..] => Some((Operator::Colon, at + 1)),
        [b'|', b'|', b'=', ..] => Some((Operator::Equals, at + 3)),
        [b'>', ..] if look.before(name.start).ends_with(b"<") => Some((Operator::Tag, at + 1)),
        [b'(', b'"' | b'\'', ..] => Some((Operator::Argument, at + 1)),
        [b',', ..] if quoted_name => {
            let start = look.skip_blanks(at + 1, 4);
            if matches!(look.byte(start), Some(b'"' | b'\'')) && !is_value_key(look.from(start)) {
                Some((Operator::Argument, start))
            } else {
                pair(look, closed)
            }
        }
        [b'i' | b'w', b's', b' ' | b':', ..] if at > name.end => Some((Operator::Is, at + 3)),
        // `CREATE USER x WITH PASSWORD 'secret'`, and prose: password 'secret'.
        [b'\'', ..] if at > name.end && !quoted_name => match look.slice(name.clone()) {
            b"PASSWORD" => Some((Operator::Blank, at)),
            _ if may_be_blank(look, name, dashes) => Some((Operator::Blank, at)),
            _ => Some((Operator::Is, at)),
        },
        [_, ..] if at > name.end && !quoted_name && may_be_blank(look, name, dashes) => {
            Some((Operator::Blank, at))
        }
        _ => pair(look, closed),
    }
}

/// `", "value": "…"`, `\n  value: …`, `" value="…"`: the name is itself a value, and its value follows.
fn pair(look: &Look<'_>, closed: usize) -> Option<(Operator, usize)> {
    let rest = look.from(closed);
    let gap = rest
        .iter()
        .take(40)
        .take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b','))
        .count();
    let key = rest.get(gap..)?;
    if gap == 0 || !is_value_key(key) {
        return None;
    }
    let quotes = |text: &[u8]| text.iter().take(1).take_while(|byte| b"\"'".contains(byte)).count();
    let open = quotes(key);
    let mut at = open + b"value".len();
    at += quotes(key.get(at..)?);
    at += key.get(at..)?.iter().take(3).take_while(|byte| **byte == b' ').count();
    matches!(key.get(at), Some(b':' | b'=')).then_some((Operator::Pair, closed + gap + at + 1))
}

fn is_value_key(text: &[u8]) -> bool {
    let bare = text.strip_prefix(b"\"").or_else(|| text.strip_prefix(b"'")).unwrap_or(text);
    bare.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"value"))
}

/// `DB_PASSWORD`, or a name in lower case at the start of a line: what an environment and `.env` files have.
fn is_environment_name(look: &Look<'_>, name: &Range<usize>) -> bool {
    let text = look.slice(name.clone());
    UPPER_ALNUM.and(Alphabet::of("_")).prefix(text, text.len()) == text.len()
}

/// Whether `name value` is an assignment: an option, a word such as `ENV` in front of it, or a `.netrc`.
fn may_be_blank(look: &Look<'_>, name: &Range<usize>, dashes: usize) -> bool {
    if dashes > 0 {
        return dashes == 2 || name.len() > 2;
    }
    let before = look.before(name.start);
    let line = before.get(before.len().saturating_sub(200)..).unwrap_or_default();
    let mut words = line
        .rsplit(|byte| *byte <= b' ' || matches!(byte, b'"' | b'\'' | b'`'))
        .filter(|word| !word.is_empty());
    let is_redis = matches!(look.slice(name.clone()), b"requirepass" | b"masterauth");
    let Some(last) = words.next() else { return is_redis };
    let is_setter = SETTERS.iter().any(|setter| last == setter.as_bytes());
    is_redis || is_setter || words.take(8).any(|word| word == b"login" || word == b"machine")
}
