//! Replaces rows in one transaction, with the record that tells of it: nothing is ever redacted without one.

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::clean_row::CleanRow;
use super::error::RedactError;
use super::record::{Record, RecordedRedactions, binding};
use crate::event::Time;
use crate::log::append::append_bus_row;
use crate::log::payload::{PayloadReader, PayloadWriter, ReadParts, Stored};
use crate::log::prune::{CheckedRow, HeldSessions, WithoutTriggers};

/// What a batch did.
#[derive(Debug, Default)]
pub(super) struct RedactedBatch {
    pub(super) rows: u64,
    pub(super) secrets: u64,
    /// Sessions that stay because they are held.
    pub(super) held: BTreeSet<String>,
}

/// Replaces these rows. They are as they were recorded, or as an earlier redaction left them.
pub(super) fn redact_batch(
    db: &mut Connection,
    rows: Vec<(CheckedRow, CleanRow)>,
    held: &mut HeldSessions,
    redactions: &mut RecordedRedactions,
    (by, now): (&str, Time),
) -> Result<RedactedBatch, RedactError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    held.update(&transaction)?;
    let triggers = WithoutTriggers::begin(&transaction, &["events_are_never_changed"])?;
    let (mut batch, mut record) = (RedactedBatch::default(), Record::default());
    let mut payloads = PayloadWriter::default();
    for (was, row) in rows {
        if held.contains(&row.session_before) {
            batch.held.insert(row.session_before);
            continue;
        }
        batch.rows += 1;
        batch.secrets += row.kinds.len() as u64;
        replace(&transaction, &was, &row, &mut payloads)?;
        if row.is_in_hash {
            let digest = binding(&was.hash, &was.digest, &row.hash_as_now(&was.before));
            record.rows.push((row.seq, digest));
        }
        for kind in row.kinds {
            *record.kinds.entry(kind).or_default() += 1;
        }
    }
    if batch.rows == 0 {
        return Ok(batch);
    }
    let at = append_bus_row(&transaction, &record.to_draft(by, now))?;
    triggers.restore(&transaction)?;
    transaction.commit()?;
    redactions.add(at.as_i64(), record.rows);
    Ok(batch)
}

fn replace(
    transaction: &Transaction<'_>,
    was: &CheckedRow,
    row: &CleanRow,
    payloads: &mut PayloadWriter,
) -> Result<(), RedactError> {
    if row.is_in_hash {
        let mut update = transaction.prepare_cached(
            "UPDATE events SET name = ?2, context = ?3, redacted = ?4, redacted_columns = ?5 WHERE seq = ?1",
        )?;
        let of_columns = row.of_columns.then_some(1);
        update.execute((row.seq, &row.name, &row.context, row.payload_now, of_columns))?;
    }
    let mut update = transaction
        .prepare_cached("UPDATE events SET session = ?2, turn = ?3, tool = ?4 WHERE seq = ?1")?;
    update.execute((row.seq, &row.session, &row.turn, &row.tool))?;
    let Some(payload) = &row.payload else { return Ok(()) };
    let Stored { payload: stored, packed } =
        payloads.store(transaction, (&row.agent, &row.kind), payload)?;
    transaction
        .prepare_cached("UPDATE events SET payload = ?2, packed = ?3, digest = ?4 WHERE seq = ?1")?
        .execute((row.seq, stored, packed, was.digest))?;
    let parts = ReadParts::default();
    let reader = PayloadReader::new(transaction, &parts);
    let read_back = transaction
        .prepare_cached("SELECT payload, packed FROM events WHERE seq = ?1")?
        .query_row([row.seq], |row| reader.read(row.get_ref(0)?, row.get_ref(1)?))?;
    if read_back == *payload { Ok(()) } else { Err(RedactError::NotTheSame { seq: row.seq }) }
}
