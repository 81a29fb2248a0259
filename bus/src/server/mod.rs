//! The socket between the front door and the daemon: what is said over it, who listens, who calls.

mod address;
mod build;
mod client;
mod daemon;
mod holder;
mod message;
mod status;
mod supervise;

pub use address::SocketPath;
pub use build::Build;
pub use client::{NoDaemon, ask, call};
pub use daemon::{Daemon, Plans, ServeError, Stay};
pub use holder::Holder;
pub use message::{Reply, Request};
pub use status::describe;
pub use supervise::ObserverProgram;
