//! The payload as one text without its escapes, and the way back to the raw bytes.
//!
//! A secret may sit in a JSON string, in JSON inside a JSON string, or in a shell word inside that. Rather than parse each
//! level, this removes the escapes of all levels at once: a run of backslashes and the character after it become that
//! character. This works for broken and truncated JSON too. Each removed escape remembers where it was in the raw bytes, and
//! how deep it was: the level tells the quote that ends a string from a quote inside the string.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

/// The text, and what was removed to get it.
#[derive(Debug)]
pub(super) struct Unescaped<'a> {
    text: Cow<'a, [u8]>,
    escapes: Vec<Escape>,
}

/// One escape: `len` bytes of the text at `at`, written as the raw bytes `raw`.
#[derive(Debug)]
struct Escape {
    at: usize,
    len: usize,
    raw: Range<usize>,
    level: u32,
}

impl<'a> Unescaped<'a> {
    pub(super) fn new(raw: &'a [u8]) -> Self {
        let Some(first) = memchr(b'\\', raw) else {
            return Self { text: Cow::Borrowed(raw), escapes: Vec::new() };
        };
        let mut out = Writer {
            raw,
            text: Vec::with_capacity(raw.len()),
            escapes: Vec::with_capacity(raw.len() / 64),
        };
        let (mut copied, mut next) = (0, Some(first));
        while let Some(at) = next {
            out.text.extend_from_slice(raw.get(copied..at).unwrap_or_default());
            copied = out.escape(at);
            next = memchr(b'\\', raw.get(copied..).unwrap_or_default()).map(|found| copied + found);
        }
        out.text.extend_from_slice(raw.get(copied..).unwrap_or_default());
        Self { text: Cow::Owned(out.text), escapes: out.escapes }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The raw bytes that a range of the text was written as; an escape belongs to it whole.
    pub(super) fn raw_range(&self, text: Range<usize>) -> Range<usize> {
        let start = self.raw_position(text.start).start;
        let end = match text.end.checked_sub(1) {
            Some(last) if last >= text.start => self.raw_position(last).end,
            Some(_) | None => start,
        };
        start..end.max(start)
    }

    /// How many levels of strings the quote at `at` is inside of: 0 for a bare quote, 1 for `\"`, 2 for `\\\"`.
    pub(super) fn quote_level(&self, at: usize) -> u32 {
        let index = self.escapes.partition_point(|escape| escape.at < at);
        self.escapes.get(index).filter(|escape| escape.at == at).map_or(0, |escape| escape.level)
    }

    fn raw_position(&self, at: usize) -> Range<usize> {
        let index = self.escapes.partition_point(|escape| escape.at <= at);
        let Some(escape) = index.checked_sub(1).and_then(|before| self.escapes.get(before)) else {
            return at..at + 1;
        };
        let behind = escape.at + escape.len;
        if at < behind {
            return escape.raw.clone();
        }
        let start = escape.raw.end + (at - behind);
        start..start + 1
    }
}

struct Writer<'a> {
    raw: &'a [u8],
    text: Vec<u8>,
    escapes: Vec<Escape>,
}

impl Writer<'_> {
    /// Writes what the run of backslashes at `at` and the character after it mean. Returns where to go on.
    fn escape(&mut self, at: usize) -> usize {
        let rest = self.raw.get(at..).unwrap_or_default();
        let run = rest.iter().take_while(|byte| **byte == b'\\').count();
        let after = at + run;
        let letter = rest.get(run).copied();
        // A character that needs one backslash at level 0 needs 2 at level 1 and 4 at level 2; a quote needs 1, 3, 7.
        // Backslashes beyond that were content of the string in front of it.
        let (own, level, meaning) = match letter {
            Some(quote @ (b'"' | b'\'' | b'`')) => {
                let level = run.trailing_ones().min(16);
                ((1_usize << level) - 1, level, Some(quote))
            }
            Some(b'u') => match unicode(rest.get(run + 1..).unwrap_or_default()) {
                Some(unit) => return self.character(at, run, unit),
                None => (0, 0, None),
            },
            Some(letter) => match control(letter) {
                Some(meaning) => (lowest_bit(run), 0, Some(meaning)),
                None => (0, 0, None),
            },
            None => (0, 0, None),
        };
        if own < run {
            self.push(b"\\", at..after - own, 0);
        }
        let Some(meaning) = meaning else { return after };
        self.push(&[meaning], after - own..after + 1, level);
        after + 1
    }

    /// `\u0041`, or two of them where the character needs a surrogate pair.
    fn character(&mut self, at: usize, run: usize, unit: u16) -> usize {
        let end = at + run + 5;
        let own = lowest_bit(run);
        if own < run {
            self.push(b"\\", at..at + run - own, 0);
        }
        let start = at + run - own;
        let second = self.raw.get(end..).and_then(|rest| {
            let low = rest.strip_prefix(self.raw.get(at..=at + run)?)?;
            unicode(low)
        });
        let units = [Some(unit), second].into_iter().flatten();
        let (found, end) = match char::decode_utf16(units).next() {
            Some(Ok(found)) if found.len_utf16() == 2 => (found, end + run + 5),
            Some(Ok(found)) => (found, end),
            Some(Err(_)) | None => (char::REPLACEMENT_CHARACTER, end),
        };
        // An escaped quote is content at any level: it never ends a string.
        let mut buffer = [0; 4];
        self.push(found.encode_utf8(&mut buffer).as_bytes(), start..end, u32::MAX);
        end
    }

    fn push(&mut self, bytes: &[u8], raw: Range<usize>, level: u32) {
        self.escapes.push(Escape { at: self.text.len(), len: bytes.len(), raw, level });
        self.text.extend_from_slice(bytes);
    }
}

/// What a letter after a backslash means.
const fn control(letter: u8) -> Option<u8> {
    match letter {
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        b'b' => Some(8),
        b'f' => Some(12),
        b'/' => Some(b'/'),
        _ => None,
    }
}

const fn lowest_bit(run: usize) -> usize {
    run & run.wrapping_neg()
}

/// The UTF-16 unit that four hex digits name.
fn unicode(text: &[u8]) -> Option<u16> {
    let digits = text.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> String {
        String::from_utf8_lossy(Unescaped::new(raw.as_bytes()).text()).into_owned()
    }

    #[test]
    fn escapes_of_all_levels_are_removed() {
        let cases = [
            (r"a\nb", "a\nb"),
            (r"a\\nb", "a\nb"),
            (r"a\\\\nb", "a\nb"),
            (r"a\\\nb", "a\\\nb"),
            (r"\u0041KIA\u003d", "AKIA="),
            (r"\\u0041", "A"),
            (r#"{\"a\":\"b\\\"c\"}"#, r#"{"a":"b"c"}"#),
            (r"C:\\Users", r"C:\Users"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"end\", r"end\"),
            (r"\u00", r"\u00"),
        ];
        for (raw, expected) in cases {
            assert_eq!(text(raw), expected, "{raw}");
        }
    }

    #[test]
    fn a_range_leads_back_to_whole_escapes() {
        let raw = r"x\n\u0041b\\ny";
        let unescaped = Unescaped::new(raw.as_bytes());
        assert_eq!(unescaped.text(), b"x\nAb\ny");
        assert_eq!(&raw[unescaped.raw_range(2..3)], r"\u0041");
        assert_eq!(&raw[unescaped.raw_range(1..5)], r"\n\u0041b\\n");
        assert_eq!(&raw[unescaped.raw_range(5..6)], "y");
    }

    #[test]
    fn the_level_of_a_quote_is_the_number_of_strings_around_it() {
        let raw = r#""a\"b\\\"c\\"d"#;
        let unescaped = Unescaped::new(raw.as_bytes());
        assert_eq!(unescaped.text(), br#""a"b"c\"d"#);
        assert_eq!([0, 2, 4, 7].map(|at| unescaped.quote_level(at)), [0, 1, 2, 0]);
    }
}
