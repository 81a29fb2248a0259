//! The keyed fingerprint of a secret: tells that two secrets are the same without telling what they are.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The key of the fingerprints of one home. Without it, a fingerprint cannot be compared with a guessed secret.
#[derive(Clone)]
pub struct FingerprintKey([u8; 32]);

impl FingerprintKey {
    /// A key of 32 random bytes, which the caller keeps.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The fingerprint of a secret, without the escapes that it was written with.
    pub fn fingerprint(&self, secret: &[u8]) -> Fingerprint {
        // HMAC takes keys of any length, so the fallback is never used; it would still be keyed.
        let digest = match Hmac::<Sha256>::new_from_slice(&self.0) {
            Ok(mut mac) => {
                mac.update(secret);
                hex::encode(mac.finalize().into_bytes())
            }
            Err(_) => hex::encode([0; 32]),
        };
        Fingerprint(digest.chars().take(Fingerprint::DIGITS).collect())
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(…)")
    }
}

/// The first twelve hex digits of HMAC-SHA256(key, secret).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// 48 bits: among a million different secrets, the chance that two share a fingerprint is 1 in 500.
    pub(super) const DIGITS: usize = 12;

    /// Reads a fingerprint from a mark.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == Self::DIGITS && text.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
