//! Verifying a log: `page` reads rows and checks each of them (`row`, `walked_row`), on several threads
//! (`page_threads`); `verification` puts it together; `walk` follows the hash chain, with the
//! rows that it has passed in `passed_rows` and what it found in `flaw_list`; `damage` asks SQLite about pages and
//! indexes, `reference` compares with a head, an archive or a copy that was kept elsewhere, `checkpoints` with signed ones (`held_rows` with the rows
//! that an archive held), `removals` and `redactions` know what was removed and redacted on purpose, and `repair` mends what can be computed again.

mod checkpoints;
mod damage;
mod flaw;
mod flaw_list;
mod held_rows;
mod page;
mod page_threads;
mod passed_rows;
mod redactions;
mod reference;
mod removals;
mod repair;
mod row;
mod verification;
mod walk;
mod walked_row;

#[cfg(test)]
mod tests;

pub use self::checkpoints::AgainstCheckpoints;
pub use self::flaw::{Flaw, FlawKind};
pub use self::held_rows::HeldRows;
pub(super) use self::reference::hash_at;
pub use self::reference::{Reference, SavedHead};
pub use self::repair::{RepairError, Repaired, repair};
pub use self::verification::{Verification, VerifyOptions, VerifyReport, verify};
