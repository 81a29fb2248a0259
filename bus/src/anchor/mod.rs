//! Places outside of the home that keep signed checkpoints of the log: a file (`file`) or a ref of a git repository (`git`).
//! A third one, the NATS stream, needs no writing here: checkpoints are rows, and the relay publishes rows.
//!
//! A place that already holds something newer, or something signed with another key, is not written to.

mod file;
mod git;
mod place;

pub use self::place::{AnchorError, AnchorPlace, Anchored};
