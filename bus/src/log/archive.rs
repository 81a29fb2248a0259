//! An archive: one log with rows from many buses. Every row keeps the seq and the hash it has in the
//! log of its own bus, so that the hash chain of each bus can be verified here as well.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::chain::{self, Hash, Identity};
use super::lock::WriteLock;
use super::open::{self, Durability, WriterRole};
use super::row::{Received, Row};
use super::{AppendError, LogPath, payload};
use crate::event::{BusId, Seq, Time};

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
    /// The file cannot be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl From<rusqlite::Error> for ArchiveError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Append(error.into())
    }
}

/// An archive that is open for writing.
#[derive(Debug)]
pub struct Archive {
    db: Connection,
    lock: WriteLock,
}

impl Archive {
    /// Opens the archive at `log`, and creates it if there is none.
    pub fn open(log: &LogPath, now: Time) -> Result<Self, AppendError> {
        let opened = open::for_writing(log, Durability::PowerCut, WriterRole::Daemon, now);
        let (db, lock) = opened.map_err(AppendError::from)?;
        let has_own_events: bool = db.query_row(
            "SELECT EXISTS (SELECT 1 FROM events) AND NOT EXISTS (SELECT 1 FROM origins)",
            [],
            |row| row.get(0),
        )?;
        if has_own_events { Err(AppendError::NoArchive) } else { Ok(Self { db, lock }) }
    }

    /// Adds rows, all of them or none, and returns how many were new. The rows of one bus must come
    /// in log order. A row that the archive already holds is skipped.
    pub fn append<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a Received>,
    ) -> Result<usize, ArchiveError> {
        let guard = self.lock.acquire();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut added = 0;
        for Received { bus, row, .. } in rows {
            added += usize::from(add_row(&transaction, *bus, row)?);
        }
        transaction.commit()?;
        drop(guard);
        Ok(added)
    }
}

fn add_row(transaction: &Transaction<'_>, bus: BusId, row: &Row) -> Result<bool, ArchiveError> {
    let seq = row.seq;
    if let Some(known) = hash_at(transaction, bus, seq)? {
        return if known == row.hash { Ok(false) } else { Err(ArchiveError::Differs { bus, seq }) };
    }
    let before = if seq == Seq::FIRST {
        Some(chain::genesis(bus))
    } else {
        hash_at(transaction, bus, Seq::from_i64(seq.as_i64() - 1))?
    };
    // If the row before it is not in the archive, there is nothing to compare with; `verify` reports the gap.
    if let Some(before) = before
        && chain::link(&before, &Identity::of(row), &row.payload) != row.hash
    {
        return Err(ArchiveError::Broken { bus, seq });
    }
    insert(transaction, bus, row)?;
    Ok(true)
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

fn insert(transaction: &Transaction<'_>, bus: BusId, row: &Row) -> rusqlite::Result<()> {
    let here: i64 = transaction
        .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM events")?
        .query_row([], |found| found.get(0))?;
    transaction
        .prepare_cached(
            "INSERT INTO origins (seq, bus, bus_seq, bus_cause) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute((here, bus.as_bytes(), row.seq.as_i64(), row.cause.map(Seq::as_i64)))?;
    // `cause` is the seq of the event's row in this archive.
    transaction
        .prepare_cached(
        "INSERT INTO events (seq, id, time, agent, session, turn, name, kind, tool, tool_class, \
         cause, context, payload, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
         (SELECT seq FROM origins WHERE bus = ?11 AND bus_seq = ?12), ?13, ?14, ?15)",
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
        payload::to_sql(&row.payload),
        row.hash,
    ])?;
    Ok(())
}
