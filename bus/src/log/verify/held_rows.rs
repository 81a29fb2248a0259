//! Which rows of a bus an archive held at some time, as far as that was saved. A gap in an archive is no flaw, but a row
//! that was there and is not there any more was removed.

use std::ops::RangeInclusive;

use super::flaw::{Flaw, FlawKind};
use crate::event::{BusId, Seq};
use crate::log::{LogReader, ReadError};

/// The rows of a bus that an archive held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRows {
    /// How many there were.
    pub rows: u64,
    /// The ranges that were missing, in order; only the first few.
    pub gaps: Vec<RangeInclusive<i64>>,
}

impl HeldRows {
    /// What is missing of them now in an archive whose last row of `bus` is `last`. `head` was the last row then; what is
    /// missing after `last` was cut off, which is told elsewhere.
    pub(super) fn missing_in(
        &self,
        archive: &LogReader,
        bus: BusId,
        (head, last): (Seq, Seq),
        place: &str,
    ) -> Result<Option<Flaw>, ReadError> {
        let mut first = Seq::FIRST.as_i64();
        let mut rows = i64::try_from(self.rows).unwrap_or(i64::MAX);
        for gap in &self.gaps {
            let held = first..=gap.start().saturating_sub(1).min(head.as_i64());
            rows = rows.saturating_sub(length(&held));
            let known = *held.start()..=(*held.end()).min(last.as_i64());
            if let Some(seq) = first_missing(archive, bus, known)? {
                let what = format!("this row is missing: it was here when {place} was saved");
                return Ok(Some(Flaw::of_row(FlawKind::Missing, seq, what)));
            }
            first = first.max(gap.end().saturating_add(1));
        }
        // After the last gap that was saved there may have been others: only the number of rows is known.
        let rest = first..=head.as_i64();
        if last < head || count(archive, bus, &rest)? >= rows {
            return Ok(None);
        }
        if rows == length(&rest)
            && let Some(seq) = first_missing(archive, bus, rest)?
        {
            let what = format!("this row is missing: it was here when {place} was saved");
            return Ok(Some(Flaw::of_row(FlawKind::Missing, seq, what)));
        }
        let what = format!(
            "rows of bus {bus} after row {first} are missing: {rows} were here when {place} was saved"
        );
        Ok(Some(Flaw::of_file(FlawKind::Missing, what)))
    }
}

fn length(range: &RangeInclusive<i64>) -> i64 {
    if range.is_empty() { 0 } else { range.end().saturating_sub(*range.start()).saturating_add(1) }
}

fn count(archive: &LogReader, bus: BusId, range: &RangeInclusive<i64>) -> Result<i64, ReadError> {
    let sql = "SELECT count(*) FROM origins o JOIN events e ON e.seq = o.seq \
               WHERE o.bus = ?1 AND o.bus_seq BETWEEN ?2 AND ?3";
    let mut statement = archive.db.prepare_cached(sql)?;
    let found = statement.query_row((bus.as_bytes(), range.start(), range.end()), |row| row.get(0));
    Ok(found?)
}

/// The first number in the range that no row has.
fn first_missing(
    archive: &LogReader,
    bus: BusId,
    range: RangeInclusive<i64>,
) -> Result<Option<i64>, ReadError> {
    if range.is_empty() || count(archive, bus, &range)? == length(&range) {
        return Ok(None);
    }
    // Half of the range has fewer rows than numbers, again and again.
    let (mut first, mut last) = range.into_inner();
    while first < last {
        let middle = first + (last - first) / 2;
        let half = first..=middle;
        if count(archive, bus, &half)? < length(&half) { last = middle } else { first = middle + 1 }
    }
    Ok(Some(first))
}
