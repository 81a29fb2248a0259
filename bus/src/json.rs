//! A lenient JSON parser, for what agents really send.
//!
//! Python agents write `NaN`, `Infinity` and lone surrogates. A strict parser rejects the whole payload
//! because of one of them, and a rule cannot block what it cannot read. So a payload that does not parse
//! is repaired value by value and parsed again: an invalid value becomes `null`, a lone surrogate becomes
//! U+FFFD. The log keeps the original bytes. [`read_within_budget`] also bounds the memory, and names what it
//! has not kept.

mod budget;
mod fields;

use std::ops::Range;

use serde_json::Value;

use budget::note_place;
pub use budget::{PartialJson, read_within_budget};
pub use fields::read_fields;

/// A value nested deeper than this is read as `null` where a payload is repaired; `serde_json` itself fails at 128.
const MAX_DEPTH: usize = 100;

/// Why bytes are not JSON, even after repair.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// There is nothing but white space.
    #[error("the payload is empty")]
    Empty,
    /// What the strict parser says.
    #[error(transparent)]
    Invalid(#[from] serde_json::Error),
    /// It has more values than are kept, and its brackets do not match.
    #[error("the payload has more than {0} values and is not valid JSON")]
    TooManyValues(usize),
}

/// Parses `bytes` as JSON, repaired if necessary. For readers to whom it does not matter that a value which is
/// nested too deep is missing.
pub fn read_leniently(bytes: &[u8]) -> Result<Value, JsonError> {
    read_with_places(bytes).map(|read| read.value)
}

/// Parses `bytes` as JSON, repaired if necessary; names the values that are nested too deep.
fn read_with_places(bytes: &[u8]) -> Result<PartialJson, JsonError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(JsonError::Empty);
    }
    let error = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(PartialJson { value, incomplete: Vec::new() }),
        Err(error) => error,
    };
    let Repairer { out, too_deep, .. } = repair(&String::from_utf8_lossy(bytes));
    let repaired = serde_json::from_str(&out).ok();
    // A single invalid word is repaired to `null`: that is not JSON.
    match repaired.filter(|value: &Value| !value.is_null()) {
        Some(value) => Ok(PartialJson { value, incomplete: too_deep }),
        None => Err(JsonError::Invalid(error)),
    }
}

fn repair(text: &str) -> Repairer<'_> {
    let mut repairer = Repairer {
        rest: text.trim_start_matches('\u{feff}'),
        out: String::new(),
        keys: Vec::new(),
        last_string: 0..0,
        too_deep: Vec::new(),
    };
    while let Some(next) = repairer.rest.chars().next() {
        match next {
            '"' => {
                let start = repairer.out.len();
                repairer.string(Keep::Yes);
                repairer.last_string = start..repairer.out.len();
            }
            '{' | '[' if repairer.keys.len() == MAX_DEPTH => {
                repairer.note_too_deep();
                repairer.skip_nested();
                repairer.out.push_str("null");
            }
            '{' | '[' => {
                repairer.keys.push(None);
                repairer.take(Keep::Yes);
            }
            '}' | ']' => {
                repairer.keys.pop();
                repairer.take(Keep::Yes);
            }
            ':' => {
                let key = repairer.last_string.clone();
                if let Some(last) = repairer.keys.last_mut() {
                    *last = Some(key);
                }
                repairer.take(Keep::Yes);
            }
            ',' | ' ' | '\t' | '\r' | '\n' => repairer.take(Keep::Yes),
            _ => repairer.scalar(),
        }
    }
    repairer
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

struct Repairer<'a> {
    rest: &'a str,
    out: String,
    /// Where in `out` the keys on the way to the present value are, one per list or object; none for a list.
    keys: Vec<Option<Range<usize>>>,
    /// Where in `out` the last string is: a key, if a colon follows.
    last_string: Range<usize>,
    /// The places of the values that are nested too deep.
    too_deep: Vec<String>,
}

impl Repairer<'_> {
    fn note_too_deep(&mut self) {
        let keys = self.keys.iter().flatten();
        let keys: Vec<&[u8]> = keys.map(|key| self.out[key.clone()].as_bytes()).collect();
        note_place(&mut self.too_deep, &keys);
    }

    fn take(&mut self, keep: Keep) {
        if let Some(next) = self.rest.chars().next() {
            self.rest = &self.rest[next.len_utf8()..];
            if keep == Keep::Yes {
                self.out.push(next);
            }
        }
    }

    /// Characters up to the next punctuation: copied if they are a JSON scalar, else `null`.
    fn scalar(&mut self) {
        let end = self
            .rest
            .find(|c: char| {
                matches!(c, '"' | '{' | '}' | '[' | ']' | ',' | ':') || c.is_whitespace()
            })
            .unwrap_or(self.rest.len())
            .max(self.rest.chars().next().map_or(0, char::len_utf8));
        let (word, rest) = self.rest.split_at(end);
        let is_valid = serde_json::from_str::<Value>(word).is_ok();
        self.out.push_str(if is_valid { word } else { "null" });
        self.rest = rest;
    }

    fn skip_nested(&mut self) {
        let mut depth = 0_usize;
        while let Some(next) = self.rest.chars().next() {
            match next {
                '"' => {
                    self.string(Keep::No);
                    continue;
                }
                '{' | '[' => depth += 1,
                '}' | ']' => depth -= 1,
                _ => {}
            }
            self.take(Keep::No);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self, keep: Keep) {
        self.take(keep); // the opening quote
        while let Some(next) = self.rest.chars().next() {
            match next {
                '"' => return self.take(keep),
                '\\' => self.escape(keep),
                control if control < ' ' => {
                    self.take(Keep::No);
                    self.put(keep, &format!("\\u{:04x}", u32::from(control)));
                }
                _ => self.take(keep),
            }
        }
    }

    fn escape(&mut self, keep: Keep) {
        self.take(Keep::No); // the backslash
        match self.rest.chars().next() {
            Some('u') => self.unicode_escape(keep),
            Some(plain @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                self.take(Keep::No);
                self.put(keep, &format!("\\{plain}"));
            }
            Some(_) | None => self.put(keep, "\\\\"),
        }
    }

    fn unicode_escape(&mut self, keep: Keep) {
        let Some(unit) = code_unit(self.rest) else {
            return self.put(keep, "\\\\"); // not four hex digits: a literal backslash
        };
        self.rest = &self.rest[5..];
        let second = self.rest.strip_prefix('\\').and_then(code_unit);
        match (unit, second) {
            (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
                self.rest = &self.rest[6..];
                self.put(keep, &format!("\\u{unit:04x}\\u{low:04x}"));
            }
            (0xd800..=0xdfff, _) => self.put(keep, "\\ufffd"),
            _ => self.put(keep, &format!("\\u{unit:04x}")),
        }
    }

    fn put(&mut self, keep: Keep, text: &str) {
        if keep == Keep::Yes {
            self.out.push_str(text);
        }
    }
}

/// The UTF-16 code unit in `uXXXX`.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn payloads_that_a_strict_parser_rejects_are_repaired() {
        for (raw, read) in [
            (
                r#"{"a": NaN, "b": [Infinity, -Infinity], "c": "NaN"}"#,
                json!({"a": null, "b": [null, null], "c": "NaN"}),
            ),
            (
                r#"{"a": "x\ud800y", "b": "\udc00", "c": "\ud83d\ude00"}"#,
                json!({"a": "x\u{fffd}y", "b": "\u{fffd}", "c": "😀"}),
            ),
            (r#"{"a": 1e999, "b": "\x41"}"#, json!({"a": null, "b": "\\x41"})),
            ("\u{feff}{\"a\": \"tab\there\"}", json!({"a": "tab\there"})),
        ] {
            assert_eq!(read_leniently(raw.as_bytes()).ok(), Some(read), "{raw}");
        }
    }

    #[test]
    fn a_deep_value_does_not_hide_the_fields_beside_it() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let raw = format!(r#"{{"deep": {deep}, "command": "rm -rf /"}}"#);
        let value = read_leniently(raw.as_bytes()).expect("repaired JSON");
        assert_eq!(value["command"], "rm -rf /");
    }

    #[test]
    fn the_place_of_a_value_that_is_nested_too_deep_is_named() {
        let deep = |levels: usize| format!("{}\"x\"{}", "[".repeat(levels), "]".repeat(levels));
        for (input, places) in [
            (format!(r#"{{"a": 1, "b\u0062": {}, "c": 2}}"#, deep(130)), vec!["tool_input.bb"]),
            (format!(r#"{{"a": [[{{"b": {}}}]], "c": 2}}"#, deep(5000)), vec!["tool_input.a.b"]),
            (
                format!(r#"{{"a": {d}, "b": {d}}}"#, d = deep(200)),
                vec!["tool_input.a", "tool_input.b"],
            ),
            (format!(r#"{{"a": NaN, "b": {}}}"#, deep(90)), vec![]),
            (format!(r#"{{"a": {}}}"#, deep(120)), vec![]),
        ] {
            let raw = format!(r#"{{"first": {{"x": 1}}, "tool_input": {input}, "last": "y"}}"#);
            let read = read_within_budget(raw.as_bytes()).expect("JSON");
            assert_eq!(read.incomplete, places, "{raw}");
            assert_eq!(read.value["last"], "y", "{raw}");
        }
    }

    #[test]
    fn what_is_not_json_is_rejected() {
        for raw in [&b""[..], b"  \n", b"hello", b"hello {", b"{\"a\": 1} trailing"] {
            assert!(read_leniently(raw).is_err(), "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            drop(read_leniently(&bytes));
        }

        #[test]
        fn no_text_like_json_makes_the_parser_panic(text in r#"[\{\}\[\]",:\\u0-9a-fNInx\- ]{0,60}"#) {
            drop(read_leniently(text.as_bytes()));
        }
    }
}
