//! Everything that depends on the operating system beyond what the standard library covers: process
//! groups, other processes' state, locks, limits. A port to another Unix is this folder's work.

pub mod fs;
pub mod process;
