//! Signed checkpoints: a statement that a bus had a certain last row at a certain time, signed with a key of its home. Kept
//! elsewhere, it shows that rows were cut off, or that the log was rewritten. `checkpoint` is the statement, `signing_key` the
//! key, `recorded` what the log itself holds of them.

mod checkpoint;
mod recorded;
mod signing_key;

pub use self::checkpoint::{Checkpoint, CheckpointError, PublicKey, SignedCheckpoint};
pub use self::signing_key::{KeyError, SigningKey};
