//! Removes a batch of payloads or rows in one transaction, with the record that tells of it: nothing is ever removed
//! without one, and no record tells of what is still there.

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::checked_row::CheckedRow;
use super::error::PruneError;
use super::hold::HeldSessions;
use super::record::{RangeChain, Removal};
use super::selection::{PruneRequest, Strength, decision_about};
use super::seq_ranges::SeqRanges;
use super::without_triggers::WithoutTriggers;
use crate::event::Time;
use crate::log::append::append_bus_row;
use crate::log::chain::Hash;
use crate::log::payload::{ELSEWHERE, PayloadReader, ReadParts};
use crate::log::redact::RecordedRedactions;
use crate::log::schema::IS_REMOVED;

/// What a batch did.
#[derive(Debug, Default)]
pub(super) struct RemovedBatch {
    pub(super) payloads: u64,
    pub(super) rows: u64,
    /// How many bytes of payloads, without parts that others may share.
    pub(super) bytes: u64,
    /// Events that stay because they, or the decisions about them, are not as they were recorded.
    pub(super) damaged: u64,
    /// Sessions that were put on hold meanwhile.
    pub(super) held: BTreeSet<String>,
}

/// Removes these events, and the decisions about them.
pub(super) fn remove_batch(
    db: &mut Connection,
    events: Vec<CheckedRow>,
    (held, redactions): (&mut HeldSessions, &RecordedRedactions),
    request: &PruneRequest,
    now: Time,
) -> Result<RemovedBatch, PruneError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    held.update(&transaction)?;
    let mut batch = RemovedBatch::default();
    let mut rows = Vec::new();
    for event in events {
        if held.contains(&event.session) {
            batch.held.insert(event.session);
            continue;
        }
        match decision_of(&transaction, &event, redactions)? {
            DecisionOf::None => rows.push(event),
            // It goes with its event, so both stay.
            DecisionOf::Sound(decision) if decision.seq > request.last() => {}
            DecisionOf::Sound(decision) => rows.extend([event, decision]),
            DecisionOf::Damaged => batch.damaged += 1,
        }
    }
    if rows.is_empty() {
        return Ok(batch);
    }
    rows.sort_by_key(|row| row.seq);
    batch.bytes = rows.iter().map(|row| row.bytes).sum();
    match request.strength {
        Strength::Payloads => batch.payloads = remove_payloads(&transaction, rows, request, now)?,
        Strength::Rows => batch.rows = remove_rows(&transaction, &rows, request, now)?,
    }
    transaction.commit()?;
    Ok(batch)
}

/// The decision about an event.
enum DecisionOf {
    None,
    Sound(CheckedRow),
    Damaged,
}

/// Looked up inside of the transaction: it may have been appended since the event was selected.
fn decision_of(
    db: &Connection,
    event: &CheckedRow,
    redactions: &RecordedRedactions,
) -> Result<DecisionOf, PruneError> {
    let Some(seq) = decision_about(db, event.id)? else { return Ok(DecisionOf::None) };
    let parts = ReadParts::default();
    let read = CheckedRow::read(db, &PayloadReader::new(db, &parts), redactions, seq)?;
    Ok(read.map_or(DecisionOf::Damaged, DecisionOf::Sound))
}

/// Replaces payloads by their digests.
fn remove_payloads(
    transaction: &Transaction<'_>,
    rows: Vec<CheckedRow>,
    request: &PruneRequest,
    now: Time,
) -> Result<u64, PruneError> {
    let triggers = WithoutTriggers::begin(transaction, &["events_are_never_changed"])?;
    let (mut seqs, mut bytes) = (SeqRanges::default(), 0);
    {
        let mut update = transaction.prepare_cached(&format!(
            "UPDATE events SET payload = ?2, packed = NULL, digest = ?3 \
             WHERE seq = ?1 AND NOT {IS_REMOVED}"
        ))?;
        for row in rows {
            if update.execute((row.seq, ELSEWHERE, row.digest))? == 1 {
                seqs.push(row.seq);
                bytes += row.bytes;
            }
        }
    }
    let count = seqs.len();
    let removal = Removal { payloads: seqs, bytes, ..Removal::default() };
    append_bus_row(transaction, &removal.to_draft(request, now))?;
    triggers.restore(transaction)?;
    Ok(count)
}

/// Deletes rows, and keeps the hash of the last one of each range.
fn remove_rows(
    transaction: &Transaction<'_>,
    rows: &[CheckedRow],
    request: &PruneRequest,
    now: Time,
) -> Result<u64, PruneError> {
    let triggers = WithoutTriggers::begin(transaction, &["events_are_never_deleted"])?;
    let mut seqs = SeqRanges::default();
    for row in rows {
        seqs.push(row.seq);
    }
    let bytes = rows.iter().map(|row| row.bytes).sum();
    let ranges = RemovedRange::of(rows);
    let mut chain = RangeChain::default();
    for RemovedRange { first, last, before, hash } in &ranges {
        chain.add(*first, *last, before, hash);
    }
    let count = seqs.len();
    let removal = Removal { rows: Some((seqs, chain.finish())), bytes, ..Removal::default() };
    // Before they are deleted: the last row of the log may be one of them, and no number is used again.
    let record = append_bus_row(transaction, &removal.to_draft(request, now))?;
    let mut delete = transaction.prepare_cached("DELETE FROM events WHERE seq = ?1")?;
    for row in rows {
        delete.execute([row.seq])?;
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO removed (first, last, hash, record) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for RemovedRange { first, last, hash, .. } in &ranges {
        insert.execute((first, last, hash, record.as_i64()))?;
    }
    triggers.restore(transaction)?;
    Ok(count)
}

/// Rows one after the other that are removed.
struct RemovedRange {
    first: i64,
    last: i64,
    /// The hash of the row before the first.
    before: Hash,
    /// The hash of the last.
    hash: Hash,
}

impl RemovedRange {
    fn of(rows: &[CheckedRow]) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for CheckedRow { seq, before, hash, .. } in rows {
            match ranges.last_mut() {
                Some(range) if range.last.checked_add(1) == Some(*seq) => {
                    (range.last, range.hash) = (*seq, *hash);
                }
                Some(_) | None => {
                    let (first, last) = (*seq, *seq);
                    ranges.push(Self { first, last, before: *before, hash: *hash });
                }
            }
        }
        ranges
    }
}
