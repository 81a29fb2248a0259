//! Redaction as a whole: planted secrets are gone, ordinary strings stay, JSON stays JSON.
//!
//! Secrets are made at run time from the tables and from seeds, so that no text in this repository looks like a real token.

mod contexts;
mod ordinary;
mod planted;
mod properties;
mod settings;

use std::sync::LazyLock;

use super::{FingerprintKey, RedactionSettings, Redactor};

/// Without settings; built once, as a daemon does.
fn redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| with(&RedactionSettings::default()));
    &REDACTOR
}

fn with(settings: &RedactionSettings) -> Redactor {
    Redactor::new(FingerprintKey::new([7; 32]), settings).unwrap()
}

/// Random numbers that are the same in every run (`SplitMix64`).
struct Seeds(u64);

impl Seeds {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    /// So many characters of `alphabet`.
    fn text(&mut self, alphabet: &[u8], len: usize) -> String {
        (0..len).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }
}

const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX: &[u8] = b"0123456789abcdef";
