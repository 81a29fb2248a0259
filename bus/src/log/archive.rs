//! An archive: one log put together from the rows of many buses. Every row keeps the place and the
//! hash it has at home, so that the chain of each bus can be walked here as well.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::chain::{self, Hash, Identity};
use super::lock::WriteLock;
use super::open::{self, Durability, WrittenBy};
use super::row::Row;
use super::{AppendError, LogPath, payload};
use crate::envelope::Travelled;
use crate::event::{BusId, Seq, Time};

/// Why a row is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive holds another row in its place.
    #[error(
        "the archive holds another row {seq} of bus {bus}: that log was put back to an older state \
         and written on, or somebody changed it"
    )]
    Differs {
        /// Whose row it is.
        bus: BusId,
        /// Its place.
        seq: Seq,
    },
    /// Its hash does not follow from the row before it.
    #[error("row {seq} of bus {bus} does not fit the row before it: it was changed on its way")]
    Broken {
        /// Whose row it is.
        bus: BusId,
        /// Its place.
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

/// An archive, to write to.
#[derive(Debug)]
pub struct Archive {
    db: Connection,
    lock: WriteLock,
}

impl Archive {
    /// Opens the archive at `log`; a new one is made at `now`.
    pub fn open(log: &LogPath, now: Time) -> Result<Self, AppendError> {
        let opened = open::to_write(log, Durability::PowerCut, WrittenBy::Daemon, now);
        let (db, lock) = opened.map_err(AppendError::from)?;
        let own: bool = db.query_row(
            "SELECT EXISTS (SELECT 1 FROM events) AND NOT EXISTS (SELECT 1 FROM origins)",
            [],
            |row| row.get(0),
        )?;
        if own { Err(AppendError::NoArchive) } else { Ok(Self { db, lock }) }
    }

    /// Takes rows in, all of them or none; gives back how many were new. The rows of one bus come
    /// in their order; one that is there already is passed over.
    pub fn take_in<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a Travelled>,
    ) -> Result<usize, ArchiveError> {
        let held = self.lock.acquire();
        let step = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut added = 0;
        for Travelled { bus, row, .. } in rows {
            added += usize::from(take_in_one(&step, *bus, row)?);
        }
        step.commit()?;
        drop(held);
        Ok(added)
    }
}

fn take_in_one(step: &Transaction<'_>, bus: BusId, row: &Row) -> Result<bool, ArchiveError> {
    let seq = row.seq;
    if let Some(known) = hash_at(step, bus, seq)? {
        return if known == row.hash { Ok(false) } else { Err(ArchiveError::Differs { bus, seq }) };
    }
    let before = if seq == Seq::FIRST {
        Some(chain::genesis(bus))
    } else {
        hash_at(step, bus, Seq::from_i64(seq.as_i64() - 1))?
    };
    // Where the row before it never came, `verify` tells of the gap.
    if let Some(before) = before
        && chain::link(&before, &Identity::of(row), &row.payload) != row.hash
    {
        return Err(ArchiveError::Broken { bus, seq });
    }
    insert(step, bus, row)?;
    Ok(true)
}

fn hash_at(step: &Transaction<'_>, bus: BusId, seq: Seq) -> rusqlite::Result<Option<Hash>> {
    step.prepare_cached(
        "SELECT hash FROM events WHERE seq = \
             (SELECT seq FROM origins WHERE bus = ?1 AND bus_seq = ?2)",
    )?
    .query_row((bus.as_bytes(), seq.as_i64()), |row| row.get(0))
    .optional()
}

fn insert(step: &Transaction<'_>, bus: BusId, row: &Row) -> rusqlite::Result<()> {
    let here: i64 = step
        .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM events")?
        .query_row([], |found| found.get(0))?;
    step.prepare_cached(
        "INSERT INTO origins (seq, bus, bus_seq, bus_cause) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute((here, bus.as_bytes(), row.seq.as_i64(), row.cause.map(Seq::as_i64)))?;
    // A decision points at its event's row here.
    step.prepare_cached(
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
