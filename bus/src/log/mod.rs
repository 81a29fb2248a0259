//! The log: an append-only SQLite file with a hash chain, and the only source of truth of the bus.
//!
//! [`Recorder`] writes (one writer at a time, group commits, a spool file if the log cannot be
//! written), [`LogReader`] reads, [`verify()`] checks the hash chain, [`Archive`] collects the rows of
//! many buses, [`prune()`] removes on purpose,
//! [`SignedCheckpoint`] is a signed statement about the last row, to be kept elsewhere.

mod append;
mod archive;
mod backup;
mod bus_row;
mod chain;
mod compact;
mod cut;
mod damage;
mod error;
mod identity;
mod lock;
mod open;
mod payload;
mod proof;
mod prune;
mod query_connection;
mod read;
mod recorder;
mod redact;
mod replay_reader;
mod restore;
mod row;
mod schema;
mod sessions;
mod space;
mod spool;
mod tail;
mod told;
mod verify;
mod wal;
mod watch;
mod writer;

#[cfg(test)]
mod model_tests;

pub use archive::{Archive, ArchiveError};
pub use backup::{Backup, BackupError, back_up};
pub use bus_row::{
    BusRow, ChangedSetting, DaemonStart, RecordedApproval, SessionHold, SettingsChange,
};
pub use chain::row_hash;
pub use compact::{CompactError, Compacted, compact};
pub use error::{AppendError, OpenError, ReadError};
pub use identity::local_identity;
pub use open::{Durability, LogPath};
pub use proof::{Checkpoint, CheckpointError, KeyError, PublicKey, SignedCheckpoint, SigningKey};
pub use prune::{
    Hold, OtherRun, PruneError, PrunePlan, PruneRequest, Pruned, Strength, plan_prune, prune,
    selects_any,
};
pub use query_connection::open_for_queries;
pub use read::{DamagedRow, LogReader, Query};
pub use recorder::{RecordOutcome, Recorder};
pub use redact::{
    Elsewhere, Found, OtherText, RedactError, RedactRequest, RedactedRows, redact_rows,
};
pub use replay_reader::{
    DetachedDecisions, LoadedHooks, RecordedEvent, ReplayReader, ScannedRow, Selection,
};
pub use restore::{Restore, Restored};
pub use row::{HooksSnapshot, Origin, Received, Redaction, Row, RowDraft, StoredPayload};
pub use sessions::{RowCounts, SessionBounds, SessionCursor};
pub use spool::{Backlog, Spool, SpoolThread};
pub use tail::{ENDINGS, RowHead};
pub use told::PolicyChange;
pub use verify::{
    AgainstCheckpoints, Flaw, FlawKind, HeldRows, Reference, RepairError, Repaired, SavedHead,
    Verification, VerifyOptions, VerifyReport, repair, verify,
};
