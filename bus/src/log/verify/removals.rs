//! What was removed on purpose, compared with the records of it in the chain. A payload or a row that is not there counts as
//! removed on purpose only if a later row of kind `log.pruned` tells of it.

use std::collections::{BTreeMap, VecDeque};

use rusqlite::{Connection, ErrorCode};

use super::flaw::FlawKind;
use super::flaw_list::FlawList;
use super::walked_row::WalkedRow;
use crate::log::chain::Hash;
use crate::log::prune::{RangeChain, SeqRanges};
use crate::log::{ReadError, schema};

/// A range of rows that the table `removed` names.
#[derive(Debug, Clone)]
pub(super) struct RemovedRange {
    pub(super) first: i64,
    pub(super) last: i64,
    /// The hash of the last one.
    pub(super) hash: Hash,
    record: i64,
}

/// What was removed, and which of it was recorded.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// The ranges that the walk has not come to yet.
    ahead: VecDeque<RemovedRange>,
    /// The ranges that the walk has passed.
    gone: Vec<(i64, i64)>,
    /// The rows without payload.
    payloads: SeqRanges,
    /// What records say about payloads.
    recorded: Vec<SeqRanges>,
    /// The ranges of removed rows, by the record that should tell of them: the first row, and the digest.
    ranges: BTreeMap<i64, (i64, Option<RangeChain>)>,
    pub(super) rows_removed: u64,
    pub(super) payloads_removed: u64,
}

/// The latest record of removed payloads or rows, or of redacted ones; 0 if there is none. The table `removed` tells of rows
/// only: a payload that was removed while several threads read is known from its record alone.
pub(super) fn last_record(db: &Connection) -> Result<i64, ReadError> {
    if !schema::has_removals(db)? {
        return Ok(0);
    }
    let sql = "SELECT max((SELECT coalesce(max(record), 0) FROM removed), \
               (SELECT coalesce(max(seq), 0) FROM events WHERE session = '' AND kind IN ('log.pruned', 'log.redacted')))";
    match db.query_row(sql, [], |row| row.get(0)) {
        // The index is damaged, which is told.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(0),
        found => Ok(found?),
    }
}

impl Removals {
    /// Reads which rows after `start` are said to be removed. An archive has no such rows: what it does not hold is a gap.
    pub(super) fn read(
        db: &Connection,
        is_archive: bool,
        start: Option<i64>,
    ) -> Result<Self, ReadError> {
        if is_archive || !schema::has_removals(db)? {
            return Ok(Self::default());
        }
        let sql = "SELECT first, last, hash, record FROM removed ORDER BY first";
        let mut statement = db.prepare(sql)?;
        let ranges = statement.query_map([], |row| {
            let (first, last, record) = (row.get(0)?, row.get(1)?, row.get(3)?);
            // A hash that is not one is that of no row.
            Ok(RemovedRange { first, last, hash: row.get(2).unwrap_or_default(), record })
        })?;
        let start = start.unwrap_or(i64::MIN);
        let mut removals = Self::default();
        for range in ranges {
            let range = range?;
            if range.first > start {
                removals.ahead.push_back(range);
            } else if range.record > start {
                // The row before it is not looked at, so the digest cannot be compared; the record has to be there.
                removals.ranges.insert(range.record, (range.first, None));
            }
        }
        Ok(removals)
    }

    /// The next range that begins before `seq`.
    pub(super) fn next_before(&mut self, seq: i64) -> Option<RemovedRange> {
        if self.ahead.front()?.first < seq { self.ahead.pop_front() } else { None }
    }

    /// A range of rows that are not there. `before` is the hash of the row before it; none if that is not known.
    pub(super) fn pass_range(&mut self, range: &RemovedRange, before: Option<&Hash>) {
        let RemovedRange { first, last, hash, record } = range;
        self.rows_removed += last.abs_diff(*first) + 1;
        self.gone.push((*first, *last));
        let (_, chain) =
            self.ranges.entry(*record).or_insert_with(|| (*first, Some(RangeChain::default())));
        match (chain.as_mut(), before) {
            (Some(chain), Some(before)) => chain.add(*first, *last, before, hash),
            // Rows are missing there, which is told.
            (_, None) => *chain = None,
            (None, _) => {}
        }
    }

    /// Whether this row is in a range that was removed. The ranges were passed in order.
    pub(super) fn is_row_removed(&self, seq: i64) -> bool {
        let after = self.gone.partition_point(|(first, _)| *first <= seq);
        let range = after.checked_sub(1).and_then(|at| self.gone.get(at));
        range.is_some_and(|(_, last)| seq <= *last)
    }

    /// A row of the log.
    pub(super) fn pass_row(&mut self, row: &WalkedRow, flaws: &mut FlawList) {
        if row.is_removed {
            self.payloads.push(row.seq);
            self.payloads_removed += 1;
        }
        let Some(record) = &row.recorded_removal else { return };
        if record.payloads.last().is_some_and(|last| last < row.seq) {
            self.recorded.push(record.payloads.clone());
        }
        match (self.ranges.remove(&row.seq), record.rows) {
            (Some((first, Some(chain))), Some(recorded)) if chain.clone().finish() != recorded => {
                let what = format!(
                    "rows that were removed, beginning with row {first}, or the rows beside them, are not those that row {} \
                     tells of: rows before this place were changed",
                    row.seq
                );
                flaws.add(FlawKind::Altered, first, what);
            }
            (Some((first, _)), None) => not_recorded(first, "row", flaws),
            (Some(_), Some(_)) | (None, _) => {}
        }
    }

    /// The end of the log: everything that was removed has to be recorded by now. An archive may not hold the record.
    pub(super) fn finish(&mut self, is_archive: bool, flaws: &mut FlawList) {
        for range in std::mem::take(&mut self.ahead) {
            let what = "the table `removed` names rows that the log never had";
            flaws.add(FlawKind::Altered, range.first, what);
        }
        if is_archive {
            return;
        }
        for (first, _) in std::mem::take(&mut self.ranges).into_values() {
            not_recorded(first, "row", flaws);
        }
        let recorded = SeqRanges::merged(std::mem::take(&mut self.recorded));
        for seq in self.payloads.iter().filter(|seq| !recorded.contains(*seq)) {
            not_recorded(seq, "payload", flaws);
        }
    }
}

fn not_recorded(seq: i64, what: &str, flaws: &mut FlawList) {
    let what =
        format!("its {what} is not there, and no row of kind log.pruned tells of its removal");
    flaws.add(FlawKind::Missing, seq, what);
}
