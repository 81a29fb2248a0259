//! Whether something of a secret is left in redacted bytes.

use super::form::Secret;

/// What was found of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leak {
    /// The value, as it was planted.
    Whole,
    /// Twelve characters in a row of its random part.
    Part,
}

const WINDOW: usize = 12;

/// Searches for the value, escaped up to three times or not, and for pieces of it.
pub fn leak(redacted: &[u8], secret: &Secret) -> Option<Leak> {
    let text = String::from_utf8_lossy(redacted);
    let mut value = secret.value.clone();
    for _ in 0..4 {
        if text.contains(&value) {
            return Some(Leak::Whole);
        }
        let escaped = serde_json::to_string(&value).expect("strings are JSON");
        escaped[1..escaped.len() - 1].clone_into(&mut value);
    }
    let part = secret.part.as_bytes();
    let pieces = part.windows(WINDOW.min(part.len()));
    let found =
        pieces.filter_map(|piece| std::str::from_utf8(piece).ok()).any(|p| text.contains(p));
    found.then_some(Leak::Part)
}
