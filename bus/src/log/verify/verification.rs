//! Verifies a whole log: its file, and the rows of each bus in it.

use std::ops::RangeInclusive;

use rusqlite::ErrorCode;

use super::damage;
use super::flaw::{Flaw, FlawKind};
use super::removals::{self, Removals};
use super::row::{ReadRow, columns};
use super::walk::ChainWalk;
use crate::event::{BusId, Derived, DerivedFrom, Seq};
use crate::log::chain::Hash;
use crate::log::identity;
use crate::log::{LogPath, LogReader, ReadError, open};

/// How many rows are read in one query: a long read transaction would keep the writer from checkpointing.
const PAGE: usize = 1000;

/// How often a log is verified while it is being pruned.
const MOST_TRIES: usize = 3;

/// The result of verifying a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// What is wrong with the file itself: pages, indexes, schema.
    pub flaws: Vec<Flaw>,
    /// One report for each bus; a log that is no archive has one.
    pub buses: Vec<VerifyReport>,
}

/// The result of verifying the rows of one bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// The bus.
    pub bus: BusId,
    /// The number of rows that were verified.
    pub rows: u64,
    /// The first of them. An archive may not hold the rows before it.
    pub first: Option<Seq>,
    /// The last row and its hash, to compare with another copy.
    pub head: Option<(Seq, Hash)>,
    /// What is wrong, in log order; only the first few.
    pub flaws: Vec<Flaw>,
    /// How many flaws there are.
    pub flaw_count: u64,
    /// How many rows were removed on purpose.
    pub removed_rows: u64,
    /// How many rows are there without their payload, which was removed on purpose.
    pub removed_payloads: u64,
    /// Ranges of rows that an archive does not hold; only the first few. Not an error.
    pub gaps: Vec<RangeInclusive<i64>>,
}

impl Verification {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.flaws.is_empty() && self.buses.iter().all(|bus| bus.flaw_count == 0)
    }
}

impl VerifyReport {
    /// Adds something that was found by a comparison.
    pub(super) fn add(&mut self, flaw: Flaw) {
        self.flaw_count += 1;
        self.flaws.push(flaw);
        Flaw::sort(&mut self.flaws);
    }
}

/// Verifies the whole log, and calls `progress` with the number of rows done. `derive` gives the columns that follow
/// from the rest of a row.
pub fn verify(
    log: &LogPath,
    derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
    mut progress: impl FnMut(u64),
) -> Result<Verification, ReadError> {
    let db = open::for_reading(log)?;
    let mut flaws = damage::find(&db)?;
    if damage::lacks_table(&db)? {
        return Ok(Verification { flaws, buses: Vec::new() });
    }
    let log = LogReader::open(log)?;
    flaws.extend(identity::changed(&log.db)?.into_iter().map(|key| {
        let what = format!("the identity {key} is not the one that rows refer to by this key");
        Flaw::of_file(FlawKind::Altered, what)
    }));
    if log.is_archive() {
        flaws.extend(wrong_origins(&log)?);
    }
    let mut buses = Vec::new();
    let mut done = 0;
    for bus in bus_ids(&log)? {
        let report = verify_unpruned(&log, bus, derive, |rows| progress(done + rows))?;
        done += report.rows;
        buses.push(report);
    }
    Ok(Verification { flaws, buses })
}

/// Rows of an archive whose origin cannot be right. A log that is made to look like an archive must not pass for one
/// that lacks some rows.
fn wrong_origins(log: &LogReader) -> Result<Vec<Flaw>, ReadError> {
    let mut flaws = Vec::new();
    let mut note = |kind: FlawKind, sql: &str, what: &str| -> Result<(), ReadError> {
        let first: Option<i64> = log.db.query_row(sql, [], |row| row.get(0))?;
        flaws.extend(first.map(|seq| Flaw::of_row(kind, seq, what)));
        Ok(())
    };
    note(
        FlawKind::Missing,
        "SELECT min(seq) FROM origins NOT INDEXED WHERE seq NOT IN (SELECT seq FROM events)",
        "this row of the archive is missing: only the place that it comes from is here",
    )?;
    note(
        FlawKind::Altered,
        "SELECT min(seq) FROM events NOT INDEXED WHERE seq NOT IN (SELECT seq FROM origins)",
        "it is in an archive, but has no bus that it comes from",
    )?;
    note(
        FlawKind::Altered,
        "SELECT min(seq) FROM origins NOT INDEXED WHERE bus = (SELECT id FROM bus)",
        "it is said to come from the bus that this file itself belongs to: the file is no archive",
    )?;
    Ok(flaws)
}

/// The buses whose rows the log holds. Without the index: it may be damaged.
fn bus_ids(log: &LogReader) -> Result<Vec<BusId>, ReadError> {
    if !log.is_archive() {
        // Without an id there is no chain to walk; `damage` tells of it.
        return Ok(if damage::has_bus(&log.db)? { vec![log.bus()?] } else { Vec::new() });
    }
    let mut statement = log.db.prepare("SELECT DISTINCT bus FROM origins NOT INDEXED")?;
    let buses = statement.query_map([], |row| row.get(0).map(BusId::from_bytes))?;
    Ok(buses.collect::<Result<_, _>>()?)
}

/// Verifies again if rows were removed on purpose meanwhile: the walk may have come to some of them, and not to others.
fn verify_unpruned(
    log: &LogReader,
    bus: BusId,
    derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
    mut progress: impl FnMut(u64),
) -> Result<VerifyReport, ReadError> {
    let mut tries = 0;
    loop {
        let before = removals::last_record(&log.db)?;
        let report = verify_bus(log, bus, derive, &mut progress)?;
        tries += 1;
        if report.flaw_count == 0
            || tries == MOST_TRIES
            || removals::last_record(&log.db)? == before
        {
            return Ok(report);
        }
    }
}

fn verify_bus(
    log: &LogReader,
    bus: BusId,
    derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
    mut progress: impl FnMut(u64),
) -> Result<VerifyReport, ReadError> {
    let is_archive = log.is_archive();
    let mut walk = ChainWalk::new(bus, is_archive);
    let mut removals = Removals::read(&log.db, is_archive)?;
    let mut from = i64::MIN;
    // Without the table nothing is said about the rows: the file is of an earlier version.
    let mut identities = identity::Referred::new(&log.db)?;
    loop {
        let page = read_page(log, bus, from)?;
        let is_last = page.rows.len() < PAGE;
        for (seq, row) in page.rows {
            while let Some(range) = removals.next_before(seq) {
                let before = walk.pass_removed(range.first, range.last, range.hash);
                removals.pass_range(&range, before.as_ref());
            }
            match row {
                Ok(row) => {
                    walk.step(&row);
                    check_row(&mut walk, &row, is_archive, derive);
                    if !is_archive && identities.lacks(&log.db, row.identity_key())? {
                        let what = "the log does not hold who recorded this row; other rows may lack it too";
                        walk.flaws.add(FlawKind::Missing, row.seq, what);
                    }
                    removals.pass_row(&row, &mut walk.flaws);
                }
                Err(error) => walk.unreadable(seq, &error.to_string()),
            }
            from = seq;
        }
        progress(walk.rows);
        if let Some(error) = page.damage {
            let next = from.max(0).saturating_add(1);
            let what = format!("the file cannot be read from here on ({error}); restore a copy");
            walk.flaws.add(FlawKind::Page, next, what);
            break;
        }
        match from.checked_add(1) {
            Some(next) if !is_last => from = next,
            Some(_) | None => break,
        }
    }
    walk.finish();
    removals.finish(is_archive, &mut walk.flaws);
    let Removals { rows_removed: removed_rows, payloads_removed: removed_payloads, .. } = removals;
    let ChainWalk { rows, first, head, flaws, gaps, .. } = walk;
    let (flaws, flaw_count) = flaws.into_sorted();
    Ok(VerifyReport {
        bus,
        rows,
        first,
        head,
        flaws,
        flaw_count,
        removed_rows,
        removed_payloads,
        gaps,
    })
}

/// What is not in the hash.
fn check_row(
    walk: &mut ChainWalk,
    row: &ReadRow,
    is_archive: bool,
    derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
) {
    if let Some(wrong) = row.never_written() {
        walk.flaws.add(FlawKind::Altered, row.seq, wrong);
    }
    // `cause` counts in numbers that rows no longer have.
    if !walk.is_aligned() {
        return;
    }
    if let Some(wrong) = row.wrong_cause(is_archive) {
        walk.flaws.add(FlawKind::Altered, row.seq, wrong);
    }
    if let Some(wrong) = row.wrong_columns(derive) {
        walk.flaws.add(
            FlawKind::Derived,
            row.seq,
            format!(
                "{wrong}, which does not follow from the rest of the row, unless a newer hookbus wrote \
                 it; `hookbus verify --repair` mends it"
            ),
        );
    }
}

/// Some rows in the order of the chain, each with its place in it.
struct Page {
    rows: Vec<(i64, rusqlite::Result<ReadRow>)>,
    /// Why there are no more.
    damage: Option<rusqlite::Error>,
}

fn read_page(log: &LogReader, bus: BusId, from: i64) -> Result<Page, ReadError> {
    let columns = columns(&log.db)?;
    // By the rowid, not by an index, which may be damaged.
    let sql = if log.is_archive() {
        format!(
            "SELECT o.bus_seq, o.bus_cause, {columns} FROM origins o JOIN events e ON e.seq = o.seq \
             LEFT JOIN events c ON c.seq = e.cause \
             WHERE o.bus = ?1 AND o.bus_seq >= ?2 ORDER BY o.bus_seq LIMIT {PAGE}"
        )
    } else {
        format!(
            "SELECT e.seq, e.cause, {columns} FROM events e NOT INDEXED \
             LEFT JOIN events c NOT INDEXED ON c.seq = e.cause \
             WHERE ?1 IS NOT NULL AND e.seq >= ?2 ORDER BY e.seq LIMIT {PAGE}"
        )
    };
    let mut statement = log.db.prepare_cached(&sql)?;
    let mut rows = statement.query((bus.as_bytes(), from))?;
    let mut page = Page { rows: Vec::new(), damage: None };
    let payloads = log.payloads();
    loop {
        match rows.next() {
            Ok(Some(row)) => page.rows.push((row.get(0)?, ReadRow::read(row, &payloads))),
            Ok(None) => return Ok(page),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                page.damage = Some(error);
                return Ok(page);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
