//! Retention: removes payloads or whole rows on purpose, so that the log stays verifiable and the space is given back.
//!
//! `selection` finds the events, `limit` those that have to go for a size, `checked_row` computes the digests that stay,
//! `remove` removes them in batches, each with its `record` in the chain, and `sweep` deletes the parts of payloads that no
//! row needs any more (`marks`). `run` puts it together. Sessions on `hold` are never touched.

mod checked_row;
mod error;
mod hold;
mod limit;
mod marks;
mod record;
mod remove;
mod run;
mod selection;
mod seq_ranges;
mod sweep;
mod without_triggers;

#[cfg(test)]
mod tests;

pub(super) use self::checked_row::CheckedRow;
pub(super) use self::hold::{HeldSessions, holds};
pub(super) use self::marks::Marks;
pub(super) use self::record::{RangeChain, RecordedRemoval};
pub(super) use self::seq_ranges::SeqRanges;
pub(super) use self::sweep::Sweep;
pub(super) use self::without_triggers::WithoutTriggers;

pub use self::error::PruneError;
pub use self::hold::Hold;
pub use self::run::{PrunePlan, Pruned, plan_prune, prune, selects_any};
pub use self::selection::{OtherRun, PruneRequest, Strength};
