//! Places outside of the home that keep signed checkpoints of the log: a file (`file`) or a ref of a git repository (`git`).
//! A third one, the NATS stream, needs no writing here: checkpoints are rows, and the relay publishes rows.
//!
//! A place that already holds something newer, something signed with another key, or something that contradicts the log is not
//! written to.

mod file;
mod git;
mod place;

pub use self::place::{Agrees, AnchorError, AnchorPlace, Anchored};
