//! Assignments that were encoded for a URL or for HTML: `password%3Dvalue`, `%22password%22%3A%22value%22`,
//! `&quot;password&quot;:&quot;value&quot;`.

use std::ops::Range;

use super::Look;

/// How a sign is written.
struct Sign {
    len: usize,
    is_encoded: bool,
}

const QUOTES: [&str; 8] = ["%22", "%27", "%2522", "&quot;", "&#34;", "&#39;", "&apos;", "&#x27;"];
const OPERATORS: [&str; 6] = ["%3D", "%3A", "%253D", "%253A", "&#61;", "&#58;"];
const BLANKS: [&str; 3] = ["%20", "%2520", "&nbsp;"];
/// What ends a value, besides quotes.
const ENDS: [&str; 9] = ["%26", "%2C", "%7D", "%0A", "%0D", "%20", "%3B", "%2526", "&amp;"];
const MAX_VALUE: usize = 4096;

/// The value behind a name that ends at `at`, and whether it is in quotes, if at least one sign between them is encoded.
pub(super) fn encoded_assignment(look: &mut Look<'_>, at: usize) -> Option<(Range<usize>, bool)> {
    if !matches!(look.byte(at), Some(b'%' | b'&')) {
        return None;
    }
    let (closing, mut at) = skip(look, at, &QUOTES, b"");
    at = skip(look, at, &BLANKS, b" +").1;
    let (operator, behind) = skip(look, at, &OPERATORS, b"=:");
    operator.as_ref()?;
    at = skip(look, behind, &BLANKS, b" +").1;
    let (opening, start) = skip(look, at, &QUOTES, b"");
    let is_encoded = |sign: &Option<Sign>| sign.as_ref().is_some_and(|sign| sign.is_encoded);
    if !is_encoded(&operator) && !is_encoded(&closing) {
        return None;
    }
    let rest = look.from(start);
    let rest = rest.get(..MAX_VALUE).unwrap_or(rest);
    let ends = |index: usize| {
        let rest = rest.get(index..).unwrap_or_default();
        let plain = rest.first().is_none_or(|byte| *byte <= b' ' || b"&\"'<>".contains(byte));
        plain
            || starts_with_one_of(rest, &QUOTES).is_some()
            || starts_with_one_of(rest, &ENDS).is_some()
    };
    let len = (0..rest.len()).find(|index| ends(*index)).unwrap_or(rest.len());
    look.spend(len);
    (len > 0).then_some((start..start + len, opening.is_some()))
}

/// The sign at `at`, encoded or as one of the bytes in `plain`, and where it ends.
fn skip(look: &Look<'_>, at: usize, encoded: &[&str], plain: &[u8]) -> (Option<Sign>, usize) {
    let rest = look.from(at);
    let found = match starts_with_one_of(rest, encoded) {
        Some(len) => Some(Sign { len, is_encoded: true }),
        None if rest.first().is_some_and(|byte| plain.contains(byte)) => {
            Some(Sign { len: 1, is_encoded: false })
        }
        None => None,
    };
    let len = found.as_ref().map_or(0, |sign| sign.len);
    (found, at + len)
}

fn starts_with_one_of(text: &[u8], signs: &[&str]) -> Option<usize> {
    if !matches!(text.first(), Some(b'%' | b'&')) {
        return None;
    }
    let found = signs.iter().find(|sign| {
        text.get(..sign.len()).is_some_and(|start| start.eq_ignore_ascii_case(sign.as_bytes()))
    });
    found.map(|sign| sign.len())
}
