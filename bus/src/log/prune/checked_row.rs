//! A row that is about to be removed, compared with its hash. A row that does not follow from the row before it stays as it
//! is: removing it would hide that another program has changed it.

use rusqlite::{Connection, OptionalExtension};

use crate::event::{EventId, Seq, Time, payload_digest};
use crate::log::chain::{self, Hash, Identity};
use crate::log::open;
use crate::log::payload::{Change, PayloadReader};
use crate::log::redact::RecordedRedactions;

/// A row that is as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::log) struct CheckedRow {
    pub(in crate::log) seq: i64,
    pub(in crate::log) id: EventId,
    pub(in crate::log) session: String,
    /// The digest of its payload, also of one that is removed.
    pub(in crate::log) digest: Hash,
    /// The hash that it follows.
    pub(in crate::log) before: Hash,
    pub(in crate::log) hash: Hash,
    /// How many bytes its payload takes, without parts that it may share.
    pub(in crate::log) bytes: u64,
}

impl CheckedRow {
    /// Reads the row at `seq`; none if it is missing, cannot be read, or was changed otherwise than `redactions` tell.
    pub(in crate::log) fn read(
        db: &Connection,
        payloads: &PayloadReader<'_>,
        redactions: &RecordedRedactions,
        seq: i64,
    ) -> rusqlite::Result<Option<Self>> {
        let Some(before) = hash_before(db, seq)? else { return Ok(None) };
        let mut statement = db.prepare_cached(
            "SELECT id, time, agent, name, cause, context, payload, packed, digest, hash, session, \
             length(CAST(payload AS BLOB)) + coalesce(length(packed), 0), redacted, redacted_columns \
             FROM events WHERE seq = ?1",
        )?;
        let read =
            |row: &rusqlite::Row<'_>| Self::of_columns(row, payloads, redactions, seq, before);
        match statement.query_row([seq], read) {
            Ok(row) => Ok(row),
            Err(
                rusqlite::Error::QueryReturnedNoRows
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..),
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of_columns(
        row: &rusqlite::Row<'_>,
        payloads: &PayloadReader<'_>,
        redactions: &RecordedRedactions,
        seq: i64,
        before: Hash,
    ) -> rusqlite::Result<Option<Self>> {
        let stored = (row.get_ref(6)?, row.get_ref(7)?);
        let of_columns = row.get::<_, Option<bool>>(13)?.unwrap_or(false);
        let Change { removed, redaction } =
            Change::of_columns(stored, row.get(8)?, row.get(12)?, of_columns);
        let now = match (removed, redaction) {
            (Some(_), Some(redaction)) => redaction.now,
            (Some(removed), None) => removed,
            (None, _) => payload_digest(&payloads.read(stored.0, stored.1)?),
        };
        let digest = row.get::<_, Option<Hash>>(8)?.unwrap_or(now);
        let (agent, name): (String, String) = (row.get(2)?, row.get(3)?);
        let (id, context) = (EventId::from_bytes(row.get(0)?), row.get::<_, Option<String>>(5)?);
        let identity = Identity {
            seq: Seq::from_i64(seq),
            id,
            at: Time::from_micros(row.get(1)?),
            agent: &agent,
            name: &name,
            cause: row.get::<_, Option<i64>>(4)?.map(Seq::from_i64),
            context: context.as_deref(),
        };
        let hash: Hash = row.get(9)?;
        let follows = chain::link(&before, &identity, &digest) == hash;
        let is_sound = match redaction {
            None => follows,
            Some(redaction) => {
                let as_now = chain::link(&before, &identity, &now);
                (follows || redaction.of_columns)
                    && redaction.now == now
                    && redactions.tell(seq, &hash, &digest, &as_now)
            }
        };
        if !is_sound {
            return Ok(None);
        }
        let (session, bytes) = (row.get(10)?, row.get::<_, i64>(11)?.unsigned_abs());
        Ok(Some(Self { seq, id, session, digest, before, hash, bytes }))
    }
}

/// The hash that the row at `seq` follows; none if the row before it is missing.
fn hash_before(db: &Connection, seq: i64) -> rusqlite::Result<Option<Hash>> {
    let before = seq.saturating_sub(1);
    if before < Seq::FIRST.as_i64() {
        return Ok(Some(chain::genesis(open::bus_id(db)?)));
    }
    let row = db
        .prepare_cached("SELECT hash FROM events WHERE seq = ?1")?
        .query_row([before], |row| row.get(0))
        .optional()?;
    if row.is_some() {
        return Ok(row);
    }
    db.prepare_cached(
        "SELECT hash, last FROM removed WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
    )?
    .query_row([before], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))
    .optional()
    .map(|found| found.filter(|(_, last)| *last == before).map(|(hash, _)| hash))
}
