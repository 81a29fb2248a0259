//! Deletes the parts of payloads that no row needs any more.
//!
//! Most of the work is done while agents go on: the rows up to some seq are looked at, without the lock of writers. Under
//! the lock only those that were appended since are, so that a part that a new row refers to is never deleted. Parts refer
//! to smaller numbers only and the largest numbers are deleted first: whenever this is killed, no part that is still
//! there refers to one that is not. Each batch appends a record, by which other processes notice that the parts that they
//! remember may be gone.

use rusqlite::{Connection, TransactionBehavior};

use super::error::PruneError;
use super::marks::Marks;
use super::without_triggers::WithoutTriggers;
use crate::log::append::append_bus_row;
use crate::log::row::RowDraft;

/// The limits of one batch: agents wait for it.
const BATCH_PARTS: usize = 5000;
const BATCH_BYTES: u64 = 16 << 20;

/// How many rows are read in one query.
const PAGE: usize = 1000;

/// The search for parts that are not needed.
#[derive(Debug)]
pub(in crate::log) struct Sweep {
    marks: Marks,
    /// The rows up to this one were looked at.
    seen_up_to: i64,
    /// The parts above this one were looked at.
    next: i64,
}

/// Parts that were not needed when they were found.
#[derive(Debug)]
pub(in crate::log) struct Unneeded {
    /// Their numbers, the largest first, with their lengths.
    parts: Vec<(i64, u64)>,
}

impl Sweep {
    /// Looks at all rows that there are now.
    pub(in crate::log) fn begin(db: &Connection, marks: Marks) -> Result<Self, PruneError> {
        let next = db.query_row("SELECT coalesce(max(id), 0) FROM parts", [], |row| row.get(0))?;
        let mut sweep = Self { marks, seen_up_to: 0, next };
        sweep.mark_new_rows(db)?;
        Ok(sweep)
    }

    /// The next parts that are not needed; none if there are no more.
    pub(in crate::log) fn next(&mut self, db: &Connection) -> Result<Option<Unneeded>, PruneError> {
        let sql = "SELECT id, length(data) FROM parts WHERE id <= ?1 ORDER BY id DESC";
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([self.next])?;
        let (mut parts, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let (id, len): (i64, i64) = (row.get(0)?, row.get(1)?);
            self.next = id.saturating_sub(1);
            if self.marks.contains(id) {
                continue;
            }
            parts.push((id, len.unsigned_abs()));
            bytes += len.unsigned_abs();
            if parts.len() >= BATCH_PARTS || bytes > BATCH_BYTES {
                break;
            }
        }
        Ok((!parts.is_empty()).then_some(Unneeded { parts }))
    }

    /// Deletes those of them that are still not needed, and returns how many bytes they had. `record` makes the row that
    /// tells of so many parts and bytes. The caller holds the lock of writers.
    pub(in crate::log) fn delete(
        &mut self,
        db: &mut Connection,
        unneeded: Unneeded,
        record: impl Fn(u64, u64) -> RowDraft,
    ) -> Result<u64, PruneError> {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.mark_new_rows(&transaction)?;
        let names = ["parts_are_never_deleted", "parts_are_never_changed"];
        let triggers = WithoutTriggers::begin(&transaction, &names)?;
        let (mut parts, mut bytes) = (0, 0);
        {
            let mut delete = transaction.prepare_cached("DELETE FROM parts WHERE id = ?1")?;
            for (id, len) in unneeded.parts {
                if self.marks.contains(id) {
                    continue;
                }
                self.marks.detach(&transaction, id)?;
                delete.execute([id])?;
                parts += 1;
                bytes += len;
            }
        }
        if parts > 0 {
            append_bus_row(&transaction, &record(parts, bytes))?;
            triggers.restore(&transaction)?;
            transaction.commit()?;
        }
        Ok(bytes)
    }

    /// Marks what rows need that were not looked at yet.
    fn mark_new_rows(&mut self, db: &Connection) -> Result<(), PruneError> {
        let sql = format!(
            "SELECT seq, packed FROM events WHERE seq > ?1 AND packed IS NOT NULL ORDER BY seq LIMIT {PAGE}"
        );
        let head: Option<i64> =
            db.query_row("SELECT max(seq) FROM events", [], |row| row.get(0))?;
        loop {
            let mut statement = db.prepare_cached(&sql)?;
            let mut rows = statement.query([self.seen_up_to])?;
            let mut count = 0;
            while let Some(row) = rows.next()? {
                let seq = row.get(0)?;
                self.marks.add(db, seq, row.get_ref(1)?.as_blob().unwrap_or_default())?;
                self.seen_up_to = seq;
                count += 1;
            }
            if count < PAGE {
                // Not further than the head was before: rows may have been appended since the last page.
                self.seen_up_to = self.seen_up_to.max(head.unwrap_or(0));
                return Ok(());
            }
        }
    }
}
