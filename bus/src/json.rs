//! Reading JSON that agents really send.
//!
//! Python agents write `NaN` and `Infinity`, and halves of surrogate pairs; strict readers refuse
//! the whole payload over one of them, and a policy that cannot read cannot block. So a payload
//! that does not parse is mended value by value and read again: what cannot be a JSON value
//! becomes `null`, half a character becomes U+FFFD. The bytes kept in the log stay as they came.

use serde_json::Value;

/// Nested deeper than this, a value is read as `null`; `serde_json` itself stops at 128.
const DEPTH: usize = 100;

/// The JSON value in `bytes`, mended where that is needed.
pub fn read_leniently(bytes: &[u8]) -> Result<Value, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("the payload is empty".to_owned());
    }
    serde_json::from_slice(bytes).or_else(|strict| {
        let mended = serde_json::from_str(&mend(&String::from_utf8_lossy(bytes))).ok();
        // A lone word is mended to `null`, which is no reading of it.
        mended.filter(|value: &Value| !value.is_null()).ok_or_else(|| strict.to_string())
    })
}

fn mend(text: &str) -> String {
    let mut mender = Mender { rest: text.trim_start_matches('\u{feff}'), out: String::new() };
    let mut depth = 0_usize;
    while let Some(next) = mender.rest.chars().next() {
        match next {
            '"' => mender.string(Keep::Yes),
            '{' | '[' if depth == DEPTH => {
                mender.skip_nested();
                mender.out.push_str("null");
            }
            '{' | '[' => {
                depth += 1;
                mender.take(Keep::Yes);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                mender.take(Keep::Yes);
            }
            ',' | ':' | ' ' | '\t' | '\r' | '\n' => mender.take(Keep::Yes),
            _ => mender.scalar(),
        }
    }
    mender.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

struct Mender<'a> {
    rest: &'a str,
    out: String,
}

impl Mender<'_> {
    fn take(&mut self, keep: Keep) {
        if let Some(next) = self.rest.chars().next() {
            self.rest = &self.rest[next.len_utf8()..];
            if keep == Keep::Yes {
                self.out.push(next);
            }
        }
    }

    /// A run of anything that is no punctuation: copied if it is a JSON scalar, else `null`.
    fn scalar(&mut self) {
        let end = self
            .rest
            .find(|c: char| {
                matches!(c, '"' | '{' | '}' | '[' | ']' | ',' | ':') || c.is_whitespace()
            })
            .unwrap_or(self.rest.len())
            .max(self.rest.chars().next().map_or(0, char::len_utf8));
        let (word, rest) = self.rest.split_at(end);
        let sound = serde_json::from_str::<Value>(word).is_ok();
        self.out.push_str(if sound { word } else { "null" });
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
            return self.put(keep, "\\\\"); // `\uXY`: a backslash and some text
        };
        self.rest = &self.rest[5..];
        let follower = self.rest.strip_prefix('\\').and_then(code_unit);
        match (unit, follower) {
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

/// The number in `uXXXX`.
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
    fn what_strict_readers_refuse_is_read_all_the_same() {
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
            assert_eq!(read_leniently(raw.as_bytes()), Ok(read), "{raw}");
        }
    }

    #[test]
    fn depth_hides_nothing_that_stands_beside_it() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let raw = format!(r#"{{"deep": {deep}, "command": "rm -rf /"}}"#);
        let value = read_leniently(raw.as_bytes()).expect("mended");
        assert_eq!(value["command"], "rm -rf /");
    }

    #[test]
    fn what_is_no_json_says_why() {
        for raw in [&b""[..], b"  \n", b"hello", b"hello {", b"{\"a\": 1} trailing"] {
            assert!(read_leniently(raw).is_err(), "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            drop(read_leniently(&bytes));
        }

        #[test]
        fn json_like_text_is_read_or_refused(text in r#"[\{\}\[\]",:\\u0-9a-fNInx\- ]{0,60}"#) {
            drop(read_leniently(text.as_bytes()));
        }
    }
}
