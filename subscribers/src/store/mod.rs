//! The state of an observer: its positions, which worker holds which partition, and its dead letters.
//!
//! Next to a log this is a directory of files; on NATS it is a key-value bucket and a stream, so that a
//! worker on any machine can take over. Both promise that a partition has one worker at a time, and that
//! a worker that lost its partition is refused when it saves.

mod files;
mod nats;
mod observer_store;

pub(crate) use files::{create_private_dir, observer_names, replace_file};
pub(crate) use nats::LEASE;
pub(crate) use observer_store::{Claim, ObserverStore};
