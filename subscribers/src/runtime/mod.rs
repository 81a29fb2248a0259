//! The worker loop of an observer: claim a partition, read events, deliver them, save the position.
//!
//! Whatever fails or is killed, the next worker continues from the last saved position. So an event may be
//! delivered twice, but is never skipped.

mod held_partition;
mod observe;
mod processor;
mod rebalance;
mod retry_state;
mod status_file;
mod worker;

pub use observe::{ObserveSummary, StopSignal, observe};
