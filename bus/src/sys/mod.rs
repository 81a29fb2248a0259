//! What only the operating system can do for us: file locks, limits, processes, threads, users and sockets.
//!
//! Everything that differs between Unixes (`/proc`, pidfds, socket flags) is here, so that a port to
//! another one changes only this folder. Each function documents what it promises on any Unix.

pub mod child_signal;
pub mod descriptors;
pub mod directory_watch;
pub mod file_lock;
pub mod file_size_limit;
pub mod fs;
pub mod isolation;
pub mod lock_owner;
pub mod process;
pub mod process_group;
pub mod shortage;
pub mod socket;
pub mod thread;
pub mod user;
