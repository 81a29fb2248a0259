//! The key that a home signs its checkpoints with: `signing.key`, 64 hex digits, made when it is first needed. A key that
//! other users can read or change is refused.

use std::io;
use std::path::{Path, PathBuf};

use ed25519_dalek::Signer;

use super::checkpoint::{Checkpoint, PublicKey, SignedCheckpoint};
use crate::files::{create_secret, random_key, read_secret};

/// The file with the key, in the home.
const KEY_FILE: &str = "signing.key";

/// The key of a home.
#[derive(Debug)]
pub struct SigningKey(ed25519_dalek::SigningKey);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read or made.
    #[error("cannot use the key {}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system, or that other users can read the key.
        error: io::Error,
    },
    /// It is no key.
    #[error(
        "{} is not 64 hex digits; put a copy of the key there, or move the file away for a new one: checkpoints of the old key \
         are then checked with `--key`", .0.display()
    )]
    Malformed(PathBuf),
}

impl SigningKey {
    /// The key of `home`; none if it has none yet.
    pub fn of_home(home: &Path) -> Result<Option<Self>, KeyError> {
        let file = home.join(KEY_FILE);
        match read_secret(&file) {
            Ok(content) => {
                let hex = content.trim_ascii();
                let seed = hex::decode(hex).ok().and_then(|seed| seed.try_into().ok());
                let seed: [u8; 32] = seed.ok_or(KeyError::Malformed(file))?;
                Ok(Some(Self(ed25519_dalek::SigningKey::from_bytes(&seed))))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KeyError::Io { file, error }),
        }
    }

    /// The key of `home`, which is made if there is none.
    pub fn of_home_or_new(home: &Path) -> Result<Self, KeyError> {
        let file = home.join(KEY_FILE);
        if let Some(key) = Self::of_home(home)? {
            return Ok(key);
        }
        let made = random_key()
            .and_then(|seed| create_secret(&file, format!("{}\n", hex::encode(seed)).as_bytes()));
        match made {
            // Another process may have made it at the same time.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(KeyError::Io { file, error })
            }
            Ok(()) | Err(_) => Self::of_home(home)?
                .ok_or_else(|| KeyError::Io { file, error: io::ErrorKind::NotFound.into() }),
        }
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.0.verifying_key().to_bytes())
    }

    /// Signs a checkpoint, which must name this key.
    pub fn sign(&self, checkpoint: Checkpoint) -> SignedCheckpoint {
        let signature = self.0.sign(&checkpoint.to_bytes()).to_bytes();
        SignedCheckpoint { checkpoint, signature }
    }
}
