//! A name and the value that is given to it, in whatever language: `name=value`, `"name": "value"`, `name := "value"`,
//! `--name value`, `<name>value</name>`, `{"name": "NAME", "value": "value"}`, `machine x login y password z`.

use std::ops::Range;

use super::super::alphabet::{ALNUM, Alphabet, DIGIT};
use super::encoded::encoded_assignment;
use super::operator::{Operator, operator};
use super::{Look, Rank};

/// A name, a value, and how they are joined.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) name: Range<usize>,
    pub(crate) operator: Operator,
    pub(crate) value: Range<usize>,
    pub(crate) quoted: bool,
}

pub(super) const NAME: Alphabet = ALNUM.and(Alphabet::of("_-."));
const MAX_NAME: usize = 64;

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
    if let Some((value, quoted)) = encoded_assignment(look, name.end) {
        return Some(Assignment { name, operator: Operator::Environment, value, quoted });
    }
    let closed = close_name(look, look.skip_colours(name.end));
    let mut at = look.skip_gap(closed, 20);
    // The value of an option follows its name, and may have a colon in it.
    if words > 0 && dashes < 2 {
        at = skip_words(look, at, words);
    }
    let (operator, start) = operator(look, &name, dashes, closed, at)?;
    let start = start_of_value(look, operator, start);
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
            // `const SET_PW: u32 = 1109422304;`
            let is_number = look.byte(found.value.start).is_some_and(|byte| byte.is_ascii_digit());
            if is_number && !found.quoted {
                return None;
            }
        }
    }
    (!found.value.is_empty()).then_some(found)
}

/// Past what may stand between an operator and its value: blanks, `**` of Markdown, an anchor of YAML, and the line break
/// behind `name:` where the value is on the next line.
fn start_of_value(look: &Look<'_>, operator: Operator, start: usize) -> usize {
    let start = look.skip_gap(start, 12);
    if !matches!(operator, Operator::Colon | Operator::Equals) {
        return start;
    }
    match look.from(start) {
        [b'*', b'*', ..] => look.skip_blanks(start + 2, 4),
        // `API_KEY: &str = "…"` of Rust.
        [b'&', rest @ ..] if rest.get(..24).is_some_and(|type_| type_.contains(&b'=')) => {
            let equals = memchr::memchr(b'=', rest).unwrap_or_default();
            look.skip_blanks(start + 2 + equals, 4)
        }
        [b'&', rest @ ..] => {
            let anchor = NAME.prefix(rest, 40);
            let behind = look.skip_blanks(start + 1 + anchor, 4);
            if anchor > 0 && behind > start + 1 + anchor { behind } else { start }
        }
        [b'|' | b'>' | b'\n' | b'\r', ..] => {
            let start = next_line(look, start).unwrap_or(start);
            // `string(12) "…"` of PHP.
            let length = look.from(start).strip_prefix(b"string(");
            let digits = length.map_or(0, |rest| DIGIT.prefix(rest, 6));
            if digits > 0 { look.skip_blanks(start + 8 + digits, 2) } else { start }
        }
        // `{"sensitive": true, "value": "…"}` of Terraform.
        [b'{', rest @ ..] => {
            let object = rest.get(..160).unwrap_or(rest);
            let end = memchr::memchr2(b'{', b'}', object).unwrap_or(object.len());
            let found = memchr::memmem::find(object.get(..end).unwrap_or_default(), b"\"value\":");
            found.map_or(start, |at| look.skip_blanks(start + 1 + at + 8, 4))
        }
        _ => start,
    }
}

/// Where the value is behind `password: |`, `password: >-` or `password:` at the end of a line: indented on the next line.
fn next_line(look: &Look<'_>, at: usize) -> Option<usize> {
    let rest = look.from(at);
    let rest = rest.get(..64).unwrap_or(rest);
    let block = Alphabet::of("|>+-123456789").prefix(rest, 4);
    let blanks = rest.get(block..)?.iter().take_while(|byte| matches!(byte, b' ' | b'\r')).count();
    let line = rest.get(block + blanks..)?.strip_prefix(b"\n")?;
    let indent = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let item = if line.get(indent..)?.starts_with(b"- ") { 2 } else { 0 };
    // `password:` and `type: string` on the next line: a map.
    let word = line.get(indent + item..)?.split(|byte| *byte <= b' ').next().unwrap_or_default();
    let is_key = word.ends_with(b":");
    (indent > 0 && !is_key).then_some(at + block + blanks + 1 + indent + item)
}

/// Past the quotes and brackets that end a name: `"password"`, `env["password"]`.
fn close_name(look: &Look<'_>, at: usize) -> usize {
    // The text of a string that `repr` of Python printed: `\\"password\\": \\"…\\"`.
    let escaped = !look.is_json && matches!(look.from(at), [b'\\', b'"' | b'\'', ..]);
    let at = at + usize::from(escaped);
    let closing = look.from(at).iter().take(3);
    let len = closing.take_while(|byte| matches!(byte, b'"' | b'\'' | b'`' | b']')).count();
    // `char password[] = …`
    if look.from(at).starts_with(b"[]") { at + 2 } else { at + len }
}

/// Past words between the name and the operator: "datadog api key: …".
fn skip_words(look: &Look<'_>, at: usize, limit: usize) -> usize {
    let len = NAME.and(Alphabet::of(" ")).prefix(look.from(at), limit + 1);
    let behind = look.byte(at + len);
    if len <= limit && matches!(behind, Some(b':' | b'=')) { at + len } else { at }
}

/// The further elements of a list whose first element is the value of `found`: `["first", "second"]`.
pub(super) fn add_rest_of_list(look: &mut Look<'_>, found: &Assignment, kind: &'static str) {
    let mut at = found.value.end + 1;
    for _ in 0..32 {
        let gap =
            look.from(at).iter().take(16).take_while(|byte| b" ,\n\r\t".contains(byte)).count();
        at += gap;
        if gap == 0 || !matches!(look.byte(at), Some(b'"' | b'\'')) {
            return;
        }
        let value = look.quoted(at);
        at = value.end + 1;
        look.add(value, kind, Rank::Named);
    }
}
