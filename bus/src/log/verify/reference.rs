//! Compares a log with what was kept of it elsewhere. The hash chain alone shows neither rows that were cut off the
//! end nor a log that was rewritten as a whole.

use std::collections::HashMap;

use rusqlite::OptionalExtension;

use super::flaw::{Flaw, FlawKind};
use super::held_rows::HeldRows;
use super::verification::{Verification, VerifyReport};
use crate::event::{BusId, Seq};
use crate::log::chain::Hash;
use crate::log::{LogReader, ReadError, schema};

/// How many rows of another log are read in one query.
const PAGE: usize = 1000;

/// The last row of a bus, as it was at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedHead {
    /// The bus.
    pub bus: BusId,
    /// Its last row then, and the hash of it; none if there was no row yet.
    pub head: Option<(Seq, Hash)>,
    /// The rows that were there, if that is known. In a log these are all up to the last one.
    pub held: Option<HeldRows>,
}

/// What a log is compared with.
#[derive(Debug)]
pub enum Reference {
    /// Heads that were saved, or that a NATS stream holds.
    Heads(Vec<SavedHead>),
    /// Another log: an archive, or a copy of this one.
    Log(Box<LogReader>),
}

impl Verification {
    /// Compares with `reference`; `place` names it in messages.
    pub fn compare(
        &mut self,
        log: &LogReader,
        reference: &Reference,
        place: &str,
    ) -> Result<(), ReadError> {
        match reference {
            Reference::Heads(heads) => {
                let heads: HashMap<BusId, &SavedHead> =
                    heads.iter().map(|head| (head.bus, head)).collect();
                let known = heads.values().filter_map(|saved| Some((saved.bus, saved.head?.0)));
                let known: Vec<(BusId, Seq)> = known.collect();
                self.find_missing_buses(log, &known, place);
                for report in &mut self.buses {
                    match heads.get(&report.bus) {
                        Some(SavedHead { head: Some((seq, hash)), held, .. }) => {
                            let own = hash_at(log, report.bus, *seq)?;
                            report.compare_row(*seq, hash, own.as_ref(), place);
                            if let Some(held) = held.as_ref().filter(|_| log.is_archive()) {
                                report.compare_held(held, log, *seq, place)?;
                            }
                        }
                        Some(SavedHead { head: None, .. }) => {}
                        None => report.is_unknown(place, !known.is_empty()),
                    }
                }
            }
            Reference::Log(other) => {
                let known = other.buses()?.into_iter();
                let known = known.filter_map(|(bus, head)| Some((bus, head?)));
                let known: Vec<(BusId, Seq)> = known.collect();
                self.find_missing_buses(log, &known, place);
                for report in &mut self.buses {
                    let count = compare_rows(report, log, other, place)?;
                    if count == 0 {
                        report.is_unknown(place, !known.is_empty());
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells of buses of which the reference holds rows, and this archive none. A log that is no archive has one bus only,
    /// and may be compared with an archive of many.
    fn find_missing_buses(&mut self, log: &LogReader, known: &[(BusId, Seq)], place: &str) {
        if !log.is_archive() {
            return;
        }
        for (bus, head) in known {
            if self.buses.iter().all(|report| report.bus != *bus) {
                let what =
                    format!("no row of bus {bus} is here: {place} holds its rows up to {head}");
                self.flaws.push(Flaw::of_file(FlawKind::Missing, what));
            }
        }
    }
}

impl VerifyReport {
    /// Compares one row; returns whether it is the same in both.
    pub(super) fn compare_row(
        &mut self,
        seq: Seq,
        hash: &Hash,
        own: Option<&Hash>,
        place: &str,
    ) -> bool {
        match own {
            Some(own) if own == hash => true,
            Some(_) => {
                let what = format!(
                    "{place} holds another row with this number: this log was rewritten, here or before"
                );
                self.add(Flaw::of_row(FlawKind::Altered, seq.as_i64(), what));
                false
            }
            None => {
                let last = self.head.map_or(0, |(seq, _)| seq.as_i64());
                // Rows in the middle that are missing are told by the chain itself.
                if seq.as_i64() > last {
                    let first = last.saturating_add(1);
                    let what = format!("rows {first} to {seq} were cut off: {place} holds them");
                    self.add(Flaw::of_row(FlawKind::Truncated, first, what));
                }
                false
            }
        }
    }

    /// Tells of rows that were in an archive, up to the row `head`, and are not there any more.
    fn compare_held(
        &mut self,
        held: &HeldRows,
        archive: &LogReader,
        head: Seq,
        place: &str,
    ) -> Result<(), ReadError> {
        let Some((last, _)) = self.head else { return Ok(()) };
        if let Some(flaw) = held.missing_in(archive, self.bus, (head, last), place)? {
            self.add(flaw);
        }
        Ok(())
    }

    /// The reference holds no row of this bus. That says nothing if both are empty.
    pub(super) fn is_unknown(&mut self, place: &str, holds_others: bool) {
        if self.rows > 0 || holds_others {
            let what = format!(
                "{place} holds nothing of bus {}: the log was replaced by another one, or it was never \
                 there",
                self.bus
            );
            self.add(Flaw::of_file(FlawKind::Replaced, what));
        }
    }
}

/// Compares every row of the bus in the other log, up to the first that differs, and returns how many were compared.
fn compare_rows(
    report: &mut VerifyReport,
    log: &LogReader,
    other: &LogReader,
    place: &str,
) -> Result<u64, ReadError> {
    let (mut from, mut last, mut count) = (i64::MIN, None, 0);
    // A gap in an archive is no flaw, but a row that the other log holds was there to be archived.
    let mut missing = None;
    loop {
        let page = rows_of(other, report.bus, from)?;
        for (seq, hash) in &page {
            let own = hash_at(log, report.bus, *seq)?;
            if own.is_some() && !report.compare_row(*seq, hash, own.as_ref(), place) {
                return Ok(count + 1);
            }
            if own.is_none() && log.is_archive() && missing.is_none() {
                missing = report.head.filter(|(head, _)| seq < head).map(|_| *seq);
            }
            // Not rows that were appended since the log was walked.
            if own.is_none() && report.head.is_none_or(|(head, _)| *seq > head) {
                last = Some((*seq, *hash));
            }
            count += 1;
        }
        match page.last().and_then(|(seq, _)| seq.as_i64().checked_add(1)) {
            Some(next) if page.len() == PAGE => from = next,
            Some(_) | None => break,
        }
    }
    if let Some(seq) = missing {
        let what = format!("this row is missing: {place} holds it");
        report.add(Flaw::of_row(FlawKind::Missing, seq.as_i64(), what));
    }
    if let Some((seq, hash)) = last {
        report.compare_row(seq, &hash, None, place);
    }
    Ok(count)
}

fn rows_of(log: &LogReader, bus: BusId, from: i64) -> Result<Vec<(Seq, Hash)>, ReadError> {
    if !log.is_archive() && log.bus()? != bus {
        return Ok(Vec::new());
    }
    let sql = if log.is_archive() {
        format!(
            "SELECT o.bus_seq, e.hash FROM origins o JOIN events e ON e.seq = o.seq \
             WHERE o.bus = ?1 AND o.bus_seq >= ?2 ORDER BY o.bus_seq LIMIT {PAGE}"
        )
    } else {
        format!(
            "SELECT seq, hash FROM events NOT INDEXED WHERE ?1 IS NOT NULL AND seq >= ?2 \
             ORDER BY seq LIMIT {PAGE}"
        )
    };
    let mut statement = log.db.prepare_cached(&sql)?;
    let rows = statement
        .query_map((bus.as_bytes(), from), |row| Ok((Seq::from_i64(row.get(0)?), row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(in crate::log) fn hash_at(
    log: &LogReader,
    bus: BusId,
    seq: Seq,
) -> Result<Option<Hash>, ReadError> {
    let sql = if log.is_archive() {
        "SELECT e.hash FROM origins o JOIN events e ON e.seq = o.seq WHERE o.bus = ?1 AND o.bus_seq = ?2"
    } else {
        "SELECT hash FROM events WHERE ?1 IS NOT NULL AND seq = ?2"
    };
    let mut statement = log.db.prepare_cached(sql)?;
    // A hash that is not one is told by the chain itself, and equals no other.
    let found = statement.query_row((bus.as_bytes(), seq.as_i64()), |row| {
        Ok(row.get::<_, Hash>(0).unwrap_or_default())
    });
    match found.optional()? {
        None if !log.is_archive() => removed_hash_at(log, seq),
        found => Ok(found),
    }
}

/// The hash of a row that was removed on purpose, if it was the last one of its range. Of the others there is none.
fn removed_hash_at(log: &LogReader, seq: Seq) -> Result<Option<Hash>, ReadError> {
    if !schema::has_removals(&log.db)? {
        return Ok(None);
    }
    let sql = "SELECT last, hash FROM removed WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
    let mut statement = log.db.prepare_cached(sql)?;
    let found = statement.query_row([seq.as_i64()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Hash>(1).unwrap_or_default()))
    });
    Ok(found.optional()?.filter(|(last, _)| *last == seq.as_i64()).map(|(_, hash)| hash))
}
