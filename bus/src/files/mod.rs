//! Looking at files that somebody else may change at any time: noticing a change, opening them safely,
//! hashing them once. Knows nothing of hooks or events.

mod hash_cache;
mod open_regular;
mod rotate;
mod stamp;

pub use hash_cache::{FileDigest, HashCache, HashReader, sha256};
pub use open_regular::open_regular;
pub use rotate::rotate_if_large;
pub use stamp::Stamp;
