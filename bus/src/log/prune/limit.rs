//! What a selection takes on disk, and which of its events have to go so that the log is not larger than a limit.
//!
//! A part that several payloads share is given back with the last of them only. So the rows that stay are looked at from
//! the newest to the oldest: what a row adds is what it alone keeps among those that are older.

use rusqlite::{Connection, OptionalExtension};

use super::error::PruneError;
use super::marks::Marks;
use super::selection::{Strength, decision_about};
use super::seq_ranges::SeqRanges;
use crate::event::EventId;

/// How large a log would be with some of the selected events, in bytes.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Without any of them.
    without: u64,
    /// With all of them.
    all: u64,
    marks: Marks,
    /// What a row takes besides its payload, if it is removed as a whole.
    per_row: u64,
}

impl Sizes {
    /// Measures the log without the events in `selected`, and without the decisions about them.
    pub(super) fn measure(
        db: &Connection,
        selected: &SeqRanges,
        strength: Strength,
    ) -> Result<Self, PruneError> {
        let number = |sql: &str| -> rusqlite::Result<u64> {
            db.query_row(sql, [], |row| row.get::<_, Option<i64>>(0))
                .map(|found| found.unwrap_or(0).unsigned_abs())
        };
        let pages = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
        let all = pages.saturating_mul(number("PRAGMA page_size")?);
        let parts = number("SELECT sum(length(data)) FROM parts")?;
        let (mut payloads, mut kept, mut rows, mut removed) = (0, 0, 0, 0);
        let mut marks = Marks::default();
        let mut statement = db.prepare(
            "SELECT seq, length(CAST(payload AS BLOB)) + coalesce(length(packed), 0), packed, \
             CASE WHEN kind = 'decision' THEN coalesce(cause, seq) ELSE seq END FROM events",
        )?;
        let mut all_rows = statement.query([])?;
        while let Some(row) = all_rows.next()? {
            let (seq, bytes, event): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(3)?);
            payloads += bytes.unsigned_abs();
            rows += 1;
            if selected.contains(event) {
                removed += 1;
                continue;
            }
            kept += bytes.unsigned_abs();
            if let Ok(skeleton) = row.get_ref(2)?.as_blob() {
                kept += marks.add(db, seq, skeleton)?;
            }
        }
        let others = all.saturating_sub(parts).saturating_sub(payloads);
        let per_row = match strength {
            Strength::Payloads => 0,
            Strength::Rows => others.checked_div(rows).unwrap_or(0),
        };
        let without = others.saturating_sub(per_row.saturating_mul(removed)) + kept;
        Ok(Self { without, all, marks, per_row })
    }

    /// How many bytes less the log has without the selected events.
    pub(super) const fn given_back(&self) -> u64 {
        self.all.saturating_sub(self.without)
    }

    /// What the row `seq` adds to the size.
    fn add(&mut self, db: &Connection, seq: i64) -> Result<u64, PruneError> {
        let (bytes, skeleton) = db
            .prepare_cached(
                "SELECT length(CAST(payload AS BLOB)) + coalesce(length(packed), 0), packed \
                 FROM events WHERE seq = ?1",
            )?
            .query_row([seq], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
            })?;
        let parts = match skeleton {
            Some(skeleton) => self.marks.add(db, seq, &skeleton)?,
            None => 0,
        };
        Ok(bytes.unsigned_abs() + self.per_row + parts)
    }

    /// The oldest of the selected events that have to go so that the log is not larger than `most`.
    pub(super) fn oldest_over(
        mut self,
        db: &Connection,
        selected: &SeqRanges,
        most: u64,
    ) -> Result<SeqRanges, PruneError> {
        if self.all <= most {
            return Ok(SeqRanges::default());
        }
        let mut size = self.without;
        let mut id_of = db.prepare("SELECT id FROM events WHERE seq = ?1")?;
        for seq in selected.iter().rev() {
            let id = id_of.query_row([seq], |row| row.get(0)).optional()?;
            let Some(id) = id else { continue };
            // The decision about an event stays with it.
            let decision = decision_about(db, EventId::from_bytes(id))?;
            for row in [Some(seq), decision].into_iter().flatten() {
                size += self.add(db, row)?;
            }
            if size > most {
                return Ok(selected.up_to(seq));
            }
        }
        Ok(SeqRanges::default())
    }
}
