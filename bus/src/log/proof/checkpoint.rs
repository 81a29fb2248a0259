//! A checkpoint, the bytes that are signed, and its form as JSON. `bus/README.md` documents both, so that other programs can
//! check one.

use std::fmt;
use std::str::FromStr;

use chrono::DateTime;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::{Value, json};

use crate::event::{BusId, Seq, Time};
use crate::log::chain::Hash;

/// The first bytes of what is signed, and the word in the JSON form.
const FORMAT: &str = "hookbus checkpoint 1";

/// The public half of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// What is said about a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The bus.
    pub bus: BusId,
    /// Its last row.
    pub seq: Seq,
    /// The hash of that row, which covers all rows before it.
    pub hash: Hash,
    /// When.
    pub time: Time,
    /// How many rows the log held, without those that were removed on purpose.
    pub rows: u64,
    /// The key that it is signed with.
    pub key: PublicKey,
}

/// A checkpoint and its signature, which may be wrong: see [`SignedCheckpoint::check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedCheckpoint {
    /// What is said.
    pub checkpoint: Checkpoint,
    pub(super) signature: [u8; 64],
}

/// Why something is not a checkpoint, or not one to rely on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// It is something else, or a part is missing.
    #[error("it is no checkpoint: it was edited or cut off, or hookbus did not write it")]
    Malformed,
    /// The signature is not that of the key that it names.
    #[error("its signature does not fit: the checkpoint was edited or forged")]
    WrongSignature,
    /// It is signed with a key that is not to be relied on.
    #[error(
        "it is signed with the key {found} and not with {expected}: the key was replaced, or the checkpoint is forged"
    )]
    OtherKey {
        /// The key that it is signed with.
        found: PublicKey,
        /// The key that was expected.
        expected: PublicKey,
    },
}

impl Checkpoint {
    /// The bytes that are signed.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(160);
        bytes.extend_from_slice(FORMAT.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(self.bus.as_bytes());
        bytes.extend_from_slice(&self.seq.as_i64().to_be_bytes());
        bytes.extend_from_slice(&self.hash);
        bytes.extend_from_slice(&self.time.micros().to_be_bytes());
        bytes.extend_from_slice(&self.rows.to_be_bytes());
        bytes.extend_from_slice(&self.key.0);
        bytes
    }
}

impl SignedCheckpoint {
    /// Checks the signature and, if one is given, that it is signed with the key `trusted`.
    pub fn check(&self, trusted: Option<PublicKey>) -> Result<(), CheckpointError> {
        let found = self.checkpoint.key;
        let key =
            VerifyingKey::from_bytes(&found.0).map_err(|_| CheckpointError::WrongSignature)?;
        key.verify_strict(&self.checkpoint.to_bytes(), &Signature::from_bytes(&self.signature))
            .map_err(|_| CheckpointError::WrongSignature)?;
        match trusted {
            Some(expected) if expected != found => {
                Err(CheckpointError::OtherKey { found, expected })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The form that is written to files, to git and into the log.
    pub fn to_json(&self) -> Value {
        let Checkpoint { bus, seq, hash, time, rows, key } = self.checkpoint;
        json!({
            "format": FORMAT,
            "bus": bus.to_string(),
            "seq": seq.as_i64(),
            "hash": hex::encode(hash),
            "time": time.to_string(),
            "rows": rows,
            "key": key.to_string(),
            "signature": hex::encode(self.signature),
        })
    }

    /// Reads what [`SignedCheckpoint::to_json`] writes, without checking the signature.
    pub fn from_json(value: &Value) -> Result<Self, CheckpointError> {
        let read = || {
            let text = |key: &str| value.get(key)?.as_str();
            if text("format")? != FORMAT {
                return None;
            }
            let time = DateTime::parse_from_rfc3339(text("time")?).ok()?;
            let checkpoint = Checkpoint {
                bus: text("bus")?.parse().ok()?,
                seq: Seq::from_i64(value.get("seq")?.as_i64()?),
                hash: hex::decode(text("hash")?).ok()?.try_into().ok()?,
                time: Time::from(time.to_utc()),
                rows: value.get("rows")?.as_u64()?,
                key: text("key")?.parse().ok()?,
            };
            let signature = hex::decode(text("signature")?).ok()?.try_into().ok()?;
            Some(Self { checkpoint, signature })
        };
        read().ok_or(CheckpointError::Malformed)
    }

    /// Reads one line of text.
    pub fn from_line(line: &str) -> Result<Self, CheckpointError> {
        serde_json::from_str(line)
            .map_err(|_| CheckpointError::Malformed)
            .and_then(|value| Self::from_json(&value))
    }
}

impl PublicKey {
    pub(super) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(CheckpointError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::signing_key::SigningKey;
    use super::*;

    fn example() -> SignedCheckpoint {
        let home = tempfile::tempdir().expect("a home");
        let key = SigningKey::of_home_or_new(home.path()).expect("a key");
        let time = Time::from_micros(1_790_000_000_000_001);
        let (bus, seq) = (BusId::mint(time), Seq::from_i64(42));
        key.sign(Checkpoint { bus, seq, hash: [7; 32], time, rows: 40, key: key.public() })
    }

    #[test]
    fn a_checkpoint_is_read_back_as_it_was_written() {
        let signed = example();
        let read = SignedCheckpoint::from_line(&signed.to_json().to_string());
        assert_eq!(read, Ok(signed));
        assert_eq!(signed.check(Some(signed.checkpoint.key)), Ok(()));
        let other = example().checkpoint.key;
        assert!(matches!(signed.check(Some(other)), Err(CheckpointError::OtherKey { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_checkpoint_with_any_changed_field_does_not_pass(
            field in 0..6_usize, by in 1..1000_i64,
        ) {
            let signed = example();
            let mut changed = signed;
            let it = &mut changed.checkpoint;
            match field {
                0 => it.seq = Seq::from_i64(it.seq.as_i64() + by),
                1 => it.hash[usize::try_from(by).unwrap_or(0) % 32] ^= 1,
                2 => it.time = Time::from_micros(it.time.micros() + by),
                3 => it.rows += by.unsigned_abs(),
                4 => it.bus = BusId::mint(Time::from_micros(by)),
                _ => changed.signature[usize::try_from(by).unwrap_or(0) % 64] ^= 1,
            }
            prop_assert_eq!(changed.check(None), Err(CheckpointError::WrongSignature));
        }
    }
}
