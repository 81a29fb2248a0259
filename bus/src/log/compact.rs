//! Packs the payloads that earlier versions stored whole, and gives the space back to the disk.
//!
//! It works in batches, each a transaction under the lock of writers, so that agents wait for one batch at most. It can
//! be killed at any moment and started again: rows that are packed already are passed over. No hash changes, because
//! the bytes of a payload do not.

use rusqlite::{Connection, TransactionBehavior};

use super::open::{self, Durability, WritableLog, WriterRole};
use super::payload::{self, PayloadReader, PayloadWriter, ReadParts};
use super::schema::{self, ObjectName};
use super::space::{Keeping, Rewrite, log_size};
use super::{LogPath, OpenError, ReadError};
use crate::event::Time;

/// The limits of one batch: agents wait for it.
const BATCH_ROWS: i64 = 2000;
const BATCH_BYTES: usize = 16 << 20;

/// The trigger that refuses every change of a row. It is absent inside of a batch's transaction only.
const TRIGGER: &str = "events_are_never_changed";

/// What compacting a log did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// How many payloads were packed.
    pub rows: u64,
    /// The size of the log before, with its write-ahead log.
    pub bytes_before: u64,
    /// Its size afterwards.
    pub bytes_after: u64,
}

/// Why a log cannot be compacted.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// A payload would not have been read back as it was.
    #[error(
        "row {seq} would not be read back as it is, so that it stays as it is; please report this; \
         everything before it is packed"
    )]
    NotTheSame {
        /// Its seq.
        seq: i64,
    },
    /// Another program changed the schema.
    #[error("the schema of the log is not ours; `hookbus verify` tells what is wrong with it")]
    ForeignSchema,
    /// Another program put a file in its place.
    #[error(
        "log.db was replaced while it was compacted: the file that was there before is smaller, and not the one that is there now; \
         run this again"
    )]
    Replaced,
    /// The log cannot be read or written.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<rusqlite::Error> for CompactError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<OpenError> for CompactError {
    fn from(error: OpenError) -> Self {
        Self::Read(error.into())
    }
}

/// Packs every payload that is stored whole and can be packed. Calls `progress` with the seq that it has come to.
pub fn compact(
    log: &LogPath,
    now: Time,
    mut progress: impl FnMut(i64),
) -> Result<Compacted, CompactError> {
    // A log that does not exist is not created.
    drop(open::for_reading(log)?);
    let bytes_before = log_size(log);
    // A prune must not delete parts that a row which is packed meanwhile refers to, and no other process may put a copy in the
    // place of the log.
    let mut keeping = Keeping::begin(log)?;
    let mut opened = open::for_writing(log, Durability::PowerCut, WriterRole::Daemon, now)?;
    let WritableLog { db, lock, .. } = &mut opened;
    // What is stored elsewhere from now on must not be found in unused places of the file after a prune.
    db.pragma_update(None, "secure_delete", true)?;
    let (mut writer, mut after, mut rows) = (PayloadWriter::default(), 0, 0);
    loop {
        let guard = lock.acquire();
        let batch = pack_batch(db, &mut writer, after)?;
        drop(guard);
        let Some(last) = batch.last else { break };
        after = last;
        rows += batch.packed;
        progress(last);
    }
    // A reader may keep the write-ahead log from being emptied; the next checkpoint does it then.
    let (Rewrite::Done | Rewrite::WalIsBusy) = keeping.give_back_space(db, lock)?;
    if !opened.close_at_its_path() {
        return Err(CompactError::Replaced);
    }
    Ok(Compacted { rows, bytes_before, bytes_after: log_size(log) })
}

/// What one batch did.
struct Batch {
    /// The last row that was looked at; none if there are no more.
    last: Option<i64>,
    packed: u64,
}

fn pack_batch(
    db: &mut Connection,
    writer: &mut PayloadWriter,
    after: i64,
) -> Result<Batch, CompactError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have deleted parts since the last batch.
    writer.forget();
    let expected = schema::expected_objects(schema::version(&transaction)?)?;
    let trigger = expected.get(&ObjectName::of_trigger(TRIGGER));
    let trigger = trigger.ok_or(CompactError::ForeignSchema)?;
    let (last, whole) = whole_payloads(&transaction, after)?;
    if whole.is_empty() {
        return Ok(Batch { last, packed: 0 });
    }
    transaction.execute_batch(&format!("DROP TRIGGER IF EXISTS {TRIGGER}"))?;
    let mut packed = 0;
    {
        let parts = ReadParts::default();
        let reader = PayloadReader::new(&transaction, &parts);
        let mut update =
            transaction.prepare("UPDATE events SET payload = ?2, packed = ?3 WHERE seq = ?1")?;
        let mut read_back =
            transaction.prepare("SELECT payload, packed FROM events WHERE seq = ?1")?;
        for Whole { seq, agent, kind, payload } in &whole {
            let stored = writer.store(&transaction, (agent, kind), payload)?;
            if stored.packed.is_none() {
                continue;
            }
            update.execute((seq, stored.payload, stored.packed))?;
            let read = |row: &rusqlite::Row<'_>| reader.read(row.get_ref(0)?, row.get_ref(1)?);
            if read_back.query_row([seq], read)? != *payload {
                return Err(CompactError::NotTheSame { seq: *seq });
            }
            packed += 1;
        }
    }
    transaction.execute_batch(trigger)?;
    transaction.commit()?;
    writer.commit();
    Ok(Batch { last, packed })
}

/// A row whose payload is stored whole.
struct Whole {
    seq: i64,
    agent: String,
    kind: String,
    payload: Vec<u8>,
}

/// The next payloads that are stored whole and can be packed, and the last row that was looked at.
fn whole_payloads(db: &Connection, after: i64) -> rusqlite::Result<(Option<i64>, Vec<Whole>)> {
    let mut statement = db.prepare_cached(
        "SELECT seq, agent, kind, payload, packed IS NULL FROM events \
         WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = statement.query((after, BATCH_ROWS))?;
    let (mut last, mut whole, mut bytes) = (None, Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let (agent, kind): (String, String) = (row.get(1)?, row.get(2)?);
        let is_whole: bool = row.get(4)?;
        if is_whole && payload::is_packable(&agent, &kind) {
            let payload = payload::from_sql(row.get_ref(3)?);
            bytes += payload.len();
            whole.push(Whole { seq, agent, kind, payload });
        }
        last = Some(seq);
        if bytes > BATCH_BYTES {
            break;
        }
    }
    Ok((last, whole))
}
