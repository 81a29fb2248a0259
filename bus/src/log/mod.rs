//! The log: an append-only SQLite file with a hash chain, and the only truth of the bus.
//!
//! Writing goes through [`Recorder`] (one writer at a time, committed in groups, a spool file when
//! the log cannot take it); reading through [`LogReader`]; [`verify()`] walks the chain.

mod append;
mod archive;
mod cases;
mod chain;
mod error;
mod lock;
mod open;
mod payload;
mod read;
mod recorder;
mod row;
mod schema;
mod spool;
mod verify;
mod writer;

pub use archive::{Archive, ArchiveError};
pub use cases::{Case, FarDecisions, Found, Loaded, Selection};
pub use error::{AppendError, OpenError, ReadError};
pub use open::{Durability, LogPath};
pub use read::{DamagedRow, LogReader, Query, SessionSummary};
pub use recorder::{Kept, Recorder};
pub use row::{Draft, HooksDraft, Origin, Row};
pub use spool::Spool;
pub use verify::{Flaw, Report, verify};
