//! Verifying a log: `walk` goes through the rows and recomputes the hash chain and the derived columns, `damage`
//! asks SQLite about pages and indexes, `reference` compares with a head, an archive or a copy that was
//! kept elsewhere, and `repair` mends what can be computed again.

mod damage;
mod flaw;
mod reference;
mod repair;
mod row;
mod verification;
mod walk;

pub use self::flaw::{Flaw, FlawKind};
pub use self::reference::{Reference, SavedHead};
pub use self::repair::{RepairError, Repaired, repair};
pub use self::verification::{Verification, VerifyReport, verify};
