//! An archive: one log with rows from many buses. Every row keeps the seq and the hash it has in the
//! log of its own bus, so that the hash chain of each bus can be verified here as well.
//!
//! Rows come from NATS or from a file, so each is compared with the rows beside it before it is added. The
//! first row of a bus, and the first after a gap, have none beside them and are believed.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::chain::{self, Hash, Identity};
use super::identity;
use super::lock::WriteLock;
use super::open::{self, Durability, WritableLog, WriterRole};
use super::payload::{PayloadReader, PayloadWriter, ReadParts, Stored};
use super::row::{Received, Row};
use super::{AppendError, LogPath};
use crate::event::{BusId, EventId, Seq, Time, payload_digest};

/// Why a row cannot be added to an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive holds another row with this seq.
    #[error(
        "the archive holds a different row {seq} of bus {bus}: that log was restored from an older \
         copy and continued, or it was changed"
    )]
    Differs {
        /// The bus that recorded the row.
        bus: BusId,
        /// The row's seq in the log of that bus.
        seq: Seq,
    },
    /// Its hash does not follow from the row before it.
    #[error(
        "the hash of row {seq} of bus {bus} does not follow from the row before it: the row was \
         changed after it was recorded"
    )]
    Broken {
        /// The bus that recorded the row.
        bus: BusId,
        /// The row's seq in the log of that bus.
        seq: Seq,
    },
    /// The archive holds its id at another place.
    #[error("row {seq} of bus {bus} has the id of another row in the archive, which is kept")]
    KnownId {
        /// The bus that is said to have recorded the row.
        bus: BusId,
        /// The row's seq there.
        seq: Seq,
    },
    /// No row can have its seq.
    #[error(
        "row {seq} of bus {bus} cannot be: seqs go from 1 to 2^53, and a cause comes before its decision"
    )]
    Impossible {
        /// The bus that is said to have recorded the row.
        bus: BusId,
        /// The row's seq there.
        seq: Seq,
    },
    /// What its hash covers is not there any more.
    #[error(
        "row {seq} of bus {bus} is left out: its context was redacted on purpose after it was recorded, so that its hash \
         cannot be checked outside of the log of its bus"
    )]
    RedactedContext {
        /// The bus that recorded the row.
        bus: BusId,
        /// The row's seq there.
        seq: Seq,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl ArchiveError {
    /// Whether the row itself is wrong, so that the archive will never take it.
    pub const fn is_wrong_row(&self) -> bool {
        match self {
            Self::Differs { .. }
            | Self::Broken { .. }
            | Self::KnownId { .. }
            | Self::RedactedContext { .. }
            | Self::Impossible { .. } => true,
            Self::Append(_) => false,
        }
    }
}

impl From<rusqlite::Error> for ArchiveError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Append(error.into())
    }
}

/// The highest seq that a row can have.
const MAX_SEQ: i64 = 1 << 53;

/// An archive that is open for writing.
#[derive(Debug)]
pub struct Archive {
    db: Connection,
    lock: WriteLock,
    payloads: Box<PayloadWriter>,
}

impl Archive {
    /// Opens the archive at `log`, and creates it if there is none.
    pub fn open(log: &LogPath, now: Time) -> Result<Self, AppendError> {
        let opened = open::for_writing(log, Durability::PowerCut, WriterRole::Daemon, now);
        let WritableLog { db, lock, .. } = opened.map_err(AppendError::from)?;
        let has_own_events: bool = db.query_row(
            "SELECT EXISTS (SELECT 1 FROM events) AND NOT EXISTS (SELECT 1 FROM origins)",
            [],
            |row| row.get(0),
        )?;
        if has_own_events {
            Err(AppendError::NoArchive)
        } else {
            Ok(Self { db, lock, payloads: Box::default() })
        }
    }

    /// Adds rows, all of them or none, and returns how many were new. The rows of one bus must come
    /// in log order. A row that the archive already holds is skipped.
    pub fn append<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a Received>,
    ) -> Result<usize, ArchiveError> {
        let guard = self.lock.acquire();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Taken, so that what a transaction that fails has stored is forgotten. Another process may have deleted parts.
        let mut payloads = std::mem::take(&mut self.payloads);
        payloads.forget();
        let mut added = 0;
        for Received { bus, row, .. } in rows {
            added += usize::from(add_row(&transaction, *bus, row, &mut payloads)?);
        }
        transaction.commit()?;
        self.payloads = payloads;
        drop(guard);
        Ok(added)
    }
}

fn add_row(
    transaction: &Transaction<'_>,
    bus: BusId,
    row: &Row,
    payloads: &mut PayloadWriter,
) -> Result<bool, ArchiveError> {
    let seq = row.seq;
    let cause_is_before = row.cause.is_none_or(|cause| cause >= Seq::FIRST && cause < seq);
    if seq < Seq::FIRST || seq.as_i64() > MAX_SEQ || !cause_is_before {
        return Err(ArchiveError::Impossible { bus, seq });
    }
    if let Some(known) = hash_at(transaction, bus, seq)? {
        return if known == row.hash { Ok(false) } else { Err(ArchiveError::Differs { bus, seq }) };
    }
    if row.redaction.is_some_and(|redaction| redaction.of_columns) {
        return Err(ArchiveError::RedactedContext { bus, seq });
    }
    if holds_id(transaction, row)? {
        return Err(ArchiveError::KnownId { bus, seq });
    }
    let fits = match hash_before(transaction, bus, seq)? {
        Some(before) => {
            chain::link(&before, &Identity::of(row), &row.payload_digest()) == row.hash
                || seq != Seq::FIRST && is_wrong(transaction, bus, previous(seq))?
        }
        // Without the row before it, the one after it tells; without both, `verify` reports the gap.
        None => continues_with(transaction, bus, &row.hash, seq.next())?.unwrap_or(true),
    };
    if !fits {
        return Err(ArchiveError::Broken { bus, seq });
    }
    insert(transaction, bus, row, payloads)?;
    Ok(true)
}

/// Whether a row that the archive holds does not follow from the row before it, so that the row after it cannot be
/// judged by it: it was added when there was no row beside it.
fn is_wrong(transaction: &Transaction<'_>, bus: BusId, seq: Seq) -> rusqlite::Result<bool> {
    let Some(before) = hash_before(transaction, bus, seq)? else { return Ok(false) };
    Ok(continues_with(transaction, bus, &before, seq)? == Some(false))
}

/// The hash that the row at `seq` follows; none if the archive does not hold the row before it.
fn hash_before(
    transaction: &Transaction<'_>,
    bus: BusId,
    seq: Seq,
) -> rusqlite::Result<Option<Hash>> {
    if seq == Seq::FIRST {
        return Ok(Some(chain::genesis(bus)));
    }
    hash_at(transaction, bus, previous(seq))
}

/// Whether the row at `seq` follows from the hash `before`; none if the archive does not hold this row.
fn continues_with(
    transaction: &Transaction<'_>,
    bus: BusId,
    before: &Hash,
    seq: Seq,
) -> rusqlite::Result<Option<bool>> {
    transaction
        .prepare_cached(
            "SELECT e.id, e.time, e.agent, e.name, o.bus_cause, e.context, e.payload, e.hash, e.packed, e.digest \
             FROM origins o JOIN events e ON e.seq = o.seq WHERE o.bus = ?1 AND o.bus_seq = ?2",
        )?
        .query_row((bus.as_bytes(), seq.as_i64()), |row| {
            let (agent, name, context): (String, String, Option<String>) =
                (row.get(2)?, row.get(3)?, row.get(5)?);
            let identity = Identity {
                seq,
                id: EventId::from_bytes(row.get(0)?),
                at: Time::from_micros(row.get(1)?),
                agent: &agent,
                name: &name,
                cause: row.get::<_, Option<i64>>(4)?.map(Seq::from_i64),
                context: context.as_deref(),
            };
            let parts = ReadParts::default();
            let payloads = PayloadReader::new(transaction, &parts);
            let digest = match row.get(9)? {
                Some(removed) => removed,
                None => payload_digest(&payloads.read(row.get_ref(6)?, row.get_ref(8)?)?),
            };
            Ok(chain::link(before, &identity, &digest) == row.get::<_, Hash>(7)?)
        })
        .optional()
}

const fn previous(seq: Seq) -> Seq {
    Seq::from_i64(seq.as_i64() - 1)
}

fn holds_id(transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<bool> {
    transaction
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM events WHERE id = ?1)")?
        .query_row([row.id.as_bytes()], |found| found.get(0))
}

fn hash_at(transaction: &Transaction<'_>, bus: BusId, seq: Seq) -> rusqlite::Result<Option<Hash>> {
    transaction
        .prepare_cached(
            "SELECT hash FROM events WHERE seq = \
             (SELECT seq FROM origins WHERE bus = ?1 AND bus_seq = ?2)",
        )?
        .query_row((bus.as_bytes(), seq.as_i64()), |row| row.get(0))
        .optional()
}

fn insert(
    transaction: &Transaction<'_>,
    bus: BusId,
    row: &Row,
    payloads: &mut PayloadWriter,
) -> Result<(), AppendError> {
    let Stored { payload, packed } = match row.removed {
        Some(_) => Stored::REMOVED,
        None => payloads.store(transaction, (&row.agent, &row.kind), &row.payload)?,
    };
    if let Some(identity) = row.identity.as_deref()
        && row.identity_key() == Some(identity.key())
    {
        identity::store(transaction, identity)?;
    }
    let here: i64 = transaction
        .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM events")?
        .query_row([], |found| found.get(0))?;
    let origins = transaction
        .prepare_cached(
            "INSERT INTO origins (seq, bus, bus_seq, bus_cause) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute((here, bus.as_bytes(), row.seq.as_i64(), row.cause.map(Seq::as_i64)))?;
    // `cause` is the seq of the event's row in this archive.
    let events = transaction
        .prepare_cached(
        "INSERT INTO events (seq, id, time, agent, session, turn, name, kind, tool, tool_class, \
         cause, context, payload, hash, packed, digest, redacted) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
         (SELECT seq FROM origins WHERE bus = ?11 AND bus_seq = ?12), ?13, ?14, ?15, ?16, ?17, ?18)",
    )?
    .execute(rusqlite::params![
        here,
        row.id.as_bytes(),
        row.at.micros(),
        row.agent,
        row.session,
        row.turn,
        row.name,
        row.kind,
        row.tool,
        row.tool_class,
        bus.as_bytes(),
        row.cause.map(Seq::as_i64),
        row.context,
        payload,
        row.hash,
        packed,
        row.removed.or(row.redaction.and_then(|redaction| redaction.original)),
        row.redaction.map(|redaction| redaction.now),
    ])?;
    if (origins, events) == (1, 1) { Ok(()) } else { Err(AppendError::LeftOut) }
}
