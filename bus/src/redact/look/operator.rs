//! What joins a name and its value.

use std::ops::Range;

use super::super::alphabet::{ALNUM, Alphabet, LOWER, UPPER_ALNUM};
use super::Look;

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
    /// "use password value": nothing but a blank in a sentence.
    Beside,
}

/// Words after which `name value` is an assignment.
const SETTERS: [&str; 11] =
    ["ENV", "ARG", "set", "setx", "setenv", "SetEnv", "config", "export", "#define", "def", "(def"];

/// The operator at `at`, and where its value starts. The name may have been closed by a quote at `closed`.
pub(super) fn operator(
    look: &Look<'_>,
    name: &Range<usize>,
    dashes: usize,
    closed: usize,
    at: usize,
) -> Option<(Operator, usize)> {
    let quoted_name = closed > name.end && look.byte(closed - 1) != Some(b'm');
    if matches!(look.from(at), [b':', b':', next, ..] if *next != b' ') {
        return None;
    }
    sign(look, name, dashes, at)
        .or_else(|| markup(look, name, quoted_name, at))
        .or_else(|| list(look, quoted_name, closed, at))
        .or_else(|| if at > name.end { word(look, at) } else { None })
        .or_else(|| blank(look, name, dashes, at).filter(|_| at > name.end && !quoted_name))
        .or_else(|| pair(look, closed))
        .or_else(|| {
            let goes_on = !matches!(look.byte(at), None | Some(b'\n' | b'\r'));
            let is_beside = at > name.end && !quoted_name && goes_on;
            is_beside.then_some((Operator::Beside, at))
        })
}

/// `=`, `:` and what is made of them.
fn sign(
    look: &Look<'_>,
    name: &Range<usize>,
    dashes: usize,
    at: usize,
) -> Option<(Operator, usize)> {
    Some(match look.from(at) {
        [b'=', b'=' | b'~', ..] | [b'!', b'=', ..] => {
            let len = look.from(at).iter().take(3).take_while(|byte| b"=!~".contains(byte)).count();
            (Operator::Compares, at + len)
        }
        [b':', b':', ..] => (Operator::Colon, at + 2),
        [b':' | b'?', b'=', ..] | [b'=', b'>', ..] => (Operator::Equals, at + 2),
        [b'=', next, ..]
            if at == name.end
                && *next > b' '
                && (dashes == 2 || is_environment_name(look, name)) =>
        {
            (Operator::Environment, at + 1)
        }
        [b'=', ..] => (Operator::Equals, at + 1),
        [b':', ..] => (Operator::Colon, at + 1),
        // The colon of Chinese and Japanese text.
        [0xef, 0xbc, 0x9a, ..] => (Operator::Colon, at + 3),
        [b'|', b'|', b'=', ..] => (Operator::Equals, at + 3),
        // `process.env.TOKEN || "…"`: what counts if the variable is not set.
        [b'|', b'|', ..] | [b'?', b'?', ..] => (Operator::Argument, at + 2),
        _ => return None,
    })
}

/// Tables, elements of XML and HTML, forms.
fn markup(
    look: &Look<'_>,
    name: &Range<usize>,
    quoted_name: bool,
    at: usize,
) -> Option<(Operator, usize)> {
    match look.from(at) {
        // A row of a table, with `|` or a line of box drawing.
        [b'|', b' ', ..] if at > name.end => Some((Operator::Is, at + 2)),
        [0xe2, 0x94, 0x82, ..] => Some((Operator::Is, at + 3)),
        [b'>', ..] if is_tag(look, name) => Some((Operator::Tag, at + 1)),
        [_, ..] if at > name.end && !quoted_name && is_tag(look, name) => {
            let attributes = look.from(at);
            let attributes = attributes.get(..256).unwrap_or(attributes);
            memchr::memchr2(b'>', b'\n', attributes).map(|len| (Operator::Tag, at + len + 1))
        }
        // A part of a form that a browser sends.
        [b'\r', b'\n', b'\r', b'\n', ..] if is_key_attribute(look, name) => {
            Some((Operator::Pair, at + 4))
        }
        [b'>', ..] if quoted_name && is_key_attribute(look, name) => {
            Some((Operator::Argument, at + 1))
        }
        [b'<', b'/', ..] => next_element(look, at).map(|start| (Operator::Pair, start)),
        _ => None,
    }
}

/// Arguments of a function, a pair in a list, a block of HCL.
fn list(look: &Look<'_>, quoted_name: bool, closed: usize, at: usize) -> Option<(Operator, usize)> {
    match look.from(at) {
        [b'(', b'"' | b'\'', ..] => Some((Operator::Argument, at + 1)),
        [b',', ..] if quoted_name => {
            let start = look.skip_blanks(at + 1, 16);
            if matches!(look.byte(start), Some(b'"' | b'\'')) && !is_value_key(look.from(start)) {
                Some((Operator::Argument, start))
            } else {
                pair(look, closed)
            }
        }
        // `variable "db_password" { default = "…" }`.
        [b'{', ..] if quoted_name => {
            let block = look.from(at);
            let block = block.get(..200).unwrap_or(block);
            let default = memchr::memmem::find(block, b"default")?;
            let equals = memchr::memchr(b'=', block.get(default..default + 12)?)?;
            Some((Operator::Equals, at + default + equals + 1))
        }
        _ => None,
    }
}

/// Words that join a name and its value: "is", "was", "to", "for … is", `As String =`.
fn word(look: &Look<'_>, at: usize) -> Option<(Operator, usize)> {
    match look.from(at) {
        [b'i' | b'w', b's', b' ' | b':', ..] => Some((Operator::Is, at + 3)),
        [b't', b'o', b' ', ..] => Some((Operator::Is, at + 3)),
        [b'f' | b'F', b'o' | b'O', b'r' | b'R', b' ', ..] => behind_purpose(look, at),
        // `Dim password As String = "…"`.
        [b'A' | b'a', b's', b' ', ..] => {
            let line = look.from(at);
            let line = line.get(..40).unwrap_or(line);
            memchr::memmem::find(line, b" = ").map(|len| (Operator::Equals, at + len + 3))
        }
        _ => None,
    }
}

/// `--name value`, `ENV NAME value`, `CREATE USER x WITH PASSWORD 'secret'`, and prose: password 'secret'.
fn blank(
    look: &Look<'_>,
    name: &Range<usize>,
    dashes: usize,
    at: usize,
) -> Option<(Operator, usize)> {
    let is_quote = look.byte(at) == Some(b'\'');
    if is_quote && look.slice(name.clone()) == b"PASSWORD" || may_be_blank(look, name, dashes) {
        return Some((Operator::Blank, at));
    }
    is_quote.then_some((Operator::Is, at))
}

/// "password for the staging server is …": past the words, within a line.
fn behind_purpose(look: &Look<'_>, at: usize) -> Option<(Operator, usize)> {
    let rest = look.from(at);
    let rest = rest.get(..48).unwrap_or(rest);
    let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let rest = rest.get(..line)?;
    let is = memchr::memmem::find(rest, b" is ").map(|found| found + 4);
    let colon = memchr::memmem::find(rest, b": ").map(|found| found + 2);
    let equals = memchr::memmem::find(rest, b" = ").map(|found| found + 3);
    is.or(colon).or(equals).map(|len| (Operator::Is, at + len))
}

/// `<password>`, `<wsse:Password …>`.
fn is_tag(look: &Look<'_>, name: &Range<usize>) -> bool {
    let before = look.before(name.start);
    let prefix = match before.strip_suffix(b":") {
        Some(front) => ALNUM.suffix(front, 16) + 1,
        None => 0,
    };
    // `https://<user>:<password>@host` is no element of XML.
    let front = before.get(..before.len() - prefix).and_then(|front| front.strip_suffix(b"<"));
    front.is_some_and(|front| !front.ends_with(b":"))
}

/// `<entry key="password">`, `<param name="password">`.
fn is_key_attribute(look: &Look<'_>, name: &Range<usize>) -> bool {
    let before = look.before(name.start);
    let before = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'"));
    before.is_some_and(|before| before.ends_with(b"key=") || before.ends_with(b"name="))
}

/// `</key><string>`: behind the next opening tag.
fn next_element(look: &Look<'_>, at: usize) -> Option<usize> {
    let rest = look.from(at + 2);
    let close = LOWER.prefix(rest, 20);
    let rest = rest.get(close..)?.strip_prefix(b">")?;
    let gap = rest.iter().take(40).take_while(|byte| **byte <= b' ').count();
    let open = rest.get(gap..)?.strip_prefix(b"<")?;
    let tag = LOWER.prefix(open, 20);
    let is_value = matches!(open.get(..tag)?, b"string" | b"value" | b"val");
    (is_value && open.get(tag) == Some(&b'>')).then_some(at + 2 + close + 1 + gap + 1 + tag + 1)
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
    let letters = key.get(open..)?.iter().take(8).take_while(|byte| byte.is_ascii_alphabetic());
    let mut at = open + letters.count();
    at += quotes(key.get(at..)?);
    at += key.get(at..)?.iter().take(3).take_while(|byte| **byte == b' ').count();
    matches!(key.get(at), Some(b':' | b'=')).then_some((Operator::Pair, closed + gap + at + 1))
}

fn is_value_key(text: &[u8]) -> bool {
    let quoted = text.strip_prefix(b"\"").or_else(|| text.strip_prefix(b"'"));
    let bare = quoted.unwrap_or(text);
    let is_val = quoted.is_some() && (bare.starts_with(b"val\"") || bare.starts_with(b"val'"));
    let is_word = bare.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"value"));
    is_word || is_val || bare.starts_with(b"content=")
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
    let Some(mut last) = words.next() else { return is_redis };
    // `set -x NAME value`, `npm config set //host/:_authToken value`.
    if last.starts_with(b"-") || last.ends_with(b":") {
        last = words.next().unwrap_or(last);
    }
    let is_setter = SETTERS.iter().any(|setter| last == setter.as_bytes());
    // `machine host login user password secret`, `nmcli device wifi connect name password secret`.
    let is_login = words.next().is_some_and(|word| matches!(word, b"login" | b"machine"));
    is_redis || is_setter || is_login || words.take(8).any(|word| word == b"nmcli")
}
