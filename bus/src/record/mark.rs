//! The mark that stands where something was left out: `[omitted:124:3f9c2ab1d04e]`, with the number of characters and a keyed
//! fingerprint, by which the same value is recognised again.

use crate::redact::FingerprintKey;

/// What every mark begins with.
const OPENING: &str = "[omitted:";

/// Marks of things that were left out.
#[derive(Debug)]
pub struct Omitted;

impl Omitted {
    /// The mark for a text.
    pub fn mark(text: &str, key: &FingerprintKey) -> String {
        format!("{OPENING}{}:{}]", text.chars().count(), key.fingerprint(text.as_bytes()))
    }
}
