//! Who recorded a row: the machine, the user, the home, and the readable name of the bus.
//!
//! A row does not repeat these texts: its `context` holds the [`IdentityKey`], a hash of them, and the log holds each
//! identity once. The hash chain covers the context, so an identity cannot be changed unnoticed.

use std::fmt;

use sha2::{Digest, Sha256};

use super::plain_text::one_line;

/// The most characters of each part.
const MAX_NAME: usize = 64;
const MAX_HOST: usize = 255;
const MAX_USER: usize = 255;
const MAX_HOME: usize = 4096;

/// Who recorded a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BusIdentity {
    /// The machine or container, as its kernel calls it.
    pub host: String,
    /// The user, by the password database.
    pub user: String,
    /// The home of the bus: the directory with its log.
    pub home: String,
    /// What people call the bus: `name:` in `hookbus.yaml`, or `user@host`.
    pub name: String,
}

impl BusIdentity {
    /// An identity of plain text: each part is one line, without invisible characters, and not longer than it can be.
    pub fn new(host: &str, user: &str, home: &str, name: Option<&str>) -> Self {
        let (host, user) = (one_line(host, MAX_HOST), one_line(user, MAX_USER));
        let name = name.map_or_else(|| format!("{user}@{host}"), str::to_owned);
        Self { name: one_line(&name, MAX_NAME), home: one_line(home, MAX_HOME), host, user }
    }

    /// Why this cannot be the name of a bus; none if it can.
    pub fn refuse_name(name: &str) -> Option<String> {
        if name.is_empty() || one_line(name, MAX_NAME) != name {
            return Some(format!(
                "the name of a bus is one line of 1 to {MAX_NAME} visible characters; write `name: build server 2`"
            ));
        }
        None
    }

    /// The key that rows refer to it by.
    pub fn key(&self) -> IdentityKey {
        let mut hash = Sha256::new();
        hash.update(b"hookbus identity 1\0");
        for part in [&self.host, &self.user, &self.home, &self.name] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let mut key = [0; 8];
        key.copy_from_slice(&digest[..8]);
        IdentityKey(key)
    }
}

/// The first eight bytes of the SHA-256 of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdentityKey([u8; 8]);

impl IdentityKey {
    /// Reads sixteen hex digits.
    pub fn parse(digits: &str) -> Option<Self> {
        let is_lower = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let bytes = hex::decode(digits).ok().filter(|_| is_lower)?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_plain_text_of_limited_length() {
        let hostile = "a\u{1b}[2J\n\u{202e}b";
        let identity = BusIdentity::new(hostile, hostile, &"x".repeat(9999), Some(hostile));
        for text in [&identity.host, &identity.user, &identity.name] {
            assert!(text.chars().all(crate::event::is_plain), "{text:?}");
        }
        assert_eq!(identity.home.chars().count(), MAX_HOME);
    }

    #[test]
    fn a_key_tells_each_part_from_the_one_beside_it() {
        let key = |host, user, name| BusIdentity::new(host, user, "/h", Some(name)).key();
        assert_eq!(key("a", "b", "c"), key("a", "b", "c"));
        assert_ne!(key("ab", "", "c"), key("a", "b", "c"));
        let default = BusIdentity::new("laptop", "anna", "/h", None);
        assert_eq!(default.name, "anna@laptop");
        let written = default.key().to_string();
        assert_eq!(IdentityKey::parse(&written), Some(default.key()));
        assert_eq!(
            IdentityKey::parse(&written.to_uppercase().replace(char::is_numeric, "A")),
            None
        );
        assert_eq!(IdentityKey::parse(&written[1..]), None);
    }
}
