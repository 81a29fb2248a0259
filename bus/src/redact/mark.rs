//! The mark that stands where a secret was: `[redacted:aws-access-key:20:3f9c2ab1d04e]`.
//!
//! It has no quotes, backslashes or spaces, so it is valid in a JSON string, in JSON inside a JSON string and in a shell word.

use std::fmt;
use std::ops::Range;

use memchr::memmem;

use super::fingerprint::Fingerprint;

/// What every mark begins with.
pub(super) const OPENING: &str = "[redacted:";
const MAX_KIND: usize = 64;
/// A mark is never longer.
pub(super) const MAX_LEN: usize = OPENING.len() + MAX_KIND + 40;

/// What a mark says about the secret that it replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// What the secret is, such as `aws-access-key`: the name of the detector or of the own pattern.
    pub kind: String,
    /// How many characters it had, without escapes.
    pub chars: usize,
    /// Which secret it is.
    pub fingerprint: Fingerprint,
}

impl Mark {
    /// All marks in a text, with their place in it.
    pub fn find_all(text: &str) -> Vec<(Range<usize>, Self)> {
        let starts = memmem::find_iter(text.as_bytes(), OPENING);
        starts.filter_map(|start| Self::at(text, start)).collect()
    }

    /// Whether `kind` can stand in a mark: lower-case letters, digits and hyphens.
    pub(super) fn is_kind(kind: &str) -> bool {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        (1..=MAX_KIND).contains(&kind.len()) && kind.bytes().all(allowed)
    }

    fn at(text: &str, start: usize) -> Option<(Range<usize>, Self)> {
        let inner = text.get(start + OPENING.len()..)?;
        let end = inner.bytes().take(MAX_KIND + 32).position(|byte| byte == b']')?;
        let mut fields = inner.get(..end)?.split(':');
        let (kind, chars, print) = (fields.next()?, fields.next()?, fields.next()?);
        let is_number = !chars.is_empty() && chars.bytes().all(|byte| byte.is_ascii_digit());
        if fields.next().is_some() || !Self::is_kind(kind) || !is_number {
            return None;
        }
        let mark = Self {
            kind: kind.to_owned(),
            chars: chars.parse().ok()?,
            fingerprint: Fingerprint::parse(print)?,
        };
        Some((start..start + OPENING.len() + end + 1, mark))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{OPENING}{}:{}:{}]", self.kind, self.chars, self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_lookalikes_are_not() {
        let mark = "[redacted:aws-access-key:20:3f9c2ab1d04e]";
        let found = Mark::find_all(mark);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 0..mark.len());
        assert_eq!(found[0].1.to_string(), mark);
        for other in
            ["[redacted]", "[redacted:a:b:c]", "[redacted:a:1:3f9c2ab1d04e:x]", "[redacted:a:1:3f"]
        {
            assert_eq!(Mark::find_all(other), [], "{other}");
        }
    }
}
