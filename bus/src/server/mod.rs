//! The daemon and its socket: the protocol between client and daemon, both ends of it, and the processes
//! that the daemon supervises.

mod address;
mod client;
mod daemon;
mod env_file;
mod limits;
mod lock_owner;
mod message;
mod retention;
mod status;
mod supervise;
mod version;

pub use address::SocketPath;
pub use client::{DaemonError, ask, call};
pub use daemon::{Daemon, DaemonOptions, Lifetime, ServeError};
pub use lock_owner::LockOwner;
pub use message::{DaemonReply, DaemonRequest};
pub use retention::{RetentionProgram, last_retention, retention_file};
pub use status::describe;
pub use supervise::ObserverProgram;
pub use version::BuildVersion;
