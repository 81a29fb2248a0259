//! Files that another program may change at any time: noticing a change, opening them safely, hashing them
//! once, rotating logs. Independent of hooks and events.

mod hash_cache;
mod open_regular;
mod private;
mod real_path;
mod rotate;
mod secret;
mod stamp;

pub use hash_cache::{FileDigest, HashCache, HashReader, sha256};
pub use open_regular::open_regular;
pub use private::{
    NotPrivate, check_private, check_private_folder, is_not_private, read_private,
    read_private_up_to,
};
pub use real_path::{LeadsNowhere, lexical_path, real_path, real_path_with};
pub use rotate::rotate_if_large;
pub use secret::{create_secret, random_key, read_secret};
pub use stamp::Stamp;
