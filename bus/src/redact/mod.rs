//! Finds secrets in the raw bytes of a payload and replaces them by marks.
//!
//! [`Redactor::redact`] is the map: remove escapes ([`unescape`]), search for keywords ([`keywords`]), look closer where one was
//! found ([`look`], with the tables in [`detectors`]), lead the ranges back to the raw bytes and put marks there ([`replace`]).
//! Pure: the key of the fingerprints and the settings are handed in. A payload without secrets is borrowed, not copied.
//!
//! What is found and what is not: `bus/docs/redaction.md`.

mod alphabet;
mod boundary;
mod clean;
mod detectors;
mod fingerprint;
mod glob;
mod json_walk;
mod keywords;
mod known;
mod look;
mod mark;
mod own;
mod redactor;
mod repeats;
mod replace;
mod rules;
mod settings;
mod shape;
mod unescape;

#[cfg(test)]
mod tests;

pub use clean::CleanPayload;
pub use fingerprint::{Fingerprint, FingerprintKey};
pub use known::{KnownSecrets, SecretText};
pub use mark::Mark;
pub use redactor::{Redacted, Redactor};
pub use replace::FoundSecret;
pub use settings::{Allowed, OwnPattern, RedactionSettings, SettingsError};
