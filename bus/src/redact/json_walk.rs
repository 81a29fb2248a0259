//! Walks through JSON without building values: where its strings and numbers are, and under which path. Stops where the text is
//! not JSON any more; a string that is cut off reaches to the end.

use std::ops::Range;

use memchr::memchr2;

/// A string or another value without members.
#[derive(Debug)]
pub(super) struct Node<'p> {
    pub(super) what: What,
    /// The content of a string, without its quotes; or the whole of a number, `true`, `false` or `null`.
    pub(super) range: Range<usize>,
    pub(super) path: &'p [Segment],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Key,
    Text,
    Number,
    Word,
}

/// A step into a value: the raw bytes of a key, or a position in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Key(Range<usize>),
    Index(usize),
}

/// Whether a payload begins as JSON does; `[INFO] …` and Python's `{'a': 1}` do not.
pub(super) fn starts_like_json(raw: &[u8]) -> bool {
    let Some((first, rest)) = raw.trim_ascii_start().split_first() else { return false };
    let next = rest.trim_ascii_start().first();
    match first {
        b'"' => true,
        b'{' => next.is_none_or(|byte| b"\"}".contains(byte)),
        b'[' => next.is_none_or(|byte| b"\"]{[-tfn".contains(byte) || byte.is_ascii_digit()),
        _ => false,
    }
}

/// Calls `visit` for every string and scalar. Returns how far the text was JSON.
pub(super) fn walk(raw: &[u8], mut visit: impl FnMut(Node<'_>)) -> usize {
    // One segment per open object or list. An object's key is empty until it was read.
    let mut path: Vec<Segment> = Vec::new();
    let mut keyed = false;
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' | b':' => at += 1,
            b'{' => {
                path.push(Segment::Key(at..at));
                (keyed, at) = (false, at + 1);
            }
            b'[' => {
                path.push(Segment::Index(0));
                (keyed, at) = (true, at + 1);
            }
            b'}' | b']' => {
                if path.pop().is_none() {
                    return at;
                }
                (keyed, at) = (true, at + 1);
            }
            b',' => {
                match path.last_mut() {
                    Some(Segment::Index(index)) => *index += 1,
                    Some(Segment::Key(_)) => keyed = false,
                    None => return at,
                }
                at += 1;
            }
            b'"' => {
                let content = at + 1..end_of_string(raw, at + 1);
                at = content.end + 1;
                let is_key = !keyed && matches!(path.last(), Some(Segment::Key(_)));
                if is_key && let Some(last) = path.last_mut() {
                    *last = Segment::Key(content.clone());
                    keyed = true;
                }
                let what = if is_key { What::Key } else { What::Text };
                visit(Node { what, range: content, path: &path });
            }
            _ => {
                let rest = raw.get(at..).unwrap_or_default();
                let len = rest
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                    .count();
                let Some(what) = scalar(rest.get(..len).unwrap_or_default()) else { return at };
                visit(Node { what, range: at..at + len, path: &path });
                at += len;
            }
        }
    }
    raw.len()
}

fn end_of_string(raw: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = memchr2(b'"', b'\\', raw.get(at..).unwrap_or_default()) {
        at += found;
        if raw.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    raw.len()
}

/// Which kind of scalar a run of letters and digits is, if it is one.
fn scalar(text: &[u8]) -> Option<What> {
    match text {
        b"true" | b"false" | b"null" | b"NaN" | b"Infinity" | b"-Infinity" => Some(What::Word),
        [first, rest @ ..] if first.is_ascii_digit() || (*first == b'-' && !rest.is_empty()) => {
            let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
            rest.iter().all(is_number).then_some(What::Number)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_their_path() {
        let raw = br#"{"a":[1,{"b":"x\"y"}],"c":true,"d":"cut"#;
        let mut seen = Vec::new();
        let end = walk(raw, |node| {
            let path: Vec<String> = node
                .path
                .iter()
                .map(|segment| match segment {
                    Segment::Key(key) => String::from_utf8_lossy(&raw[key.clone()]).into_owned(),
                    Segment::Index(index) => index.to_string(),
                })
                .collect();
            if node.what != What::Key {
                seen.push((path.join("."), String::from_utf8_lossy(&raw[node.range]).into_owned()));
            }
        });
        let expected = [("a.0", "1"), ("a.1.b", r#"x\"y"#), ("c", "true"), ("d", "cut")];
        let expected: Vec<_> =
            expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(seen, expected);
        assert_eq!(end, raw.len());
        assert_eq!(walk(b"[INFO] x", |_| {}), 1);
    }
}
