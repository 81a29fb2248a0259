//! Verifies a whole log: its file, and the rows of each bus in it.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::thread::{self, available_parallelism};

use super::damage;
use super::flaw::{Flaw, FlawKind};
use super::page::Derive;
use super::page_threads::{PageThreads, Pages, TaskQueue};
use super::redactions::Redactions;
use super::removals::{self, Removals};
use super::walk::ChainWalk;
use super::walked_row::WalkedRow;
use crate::event::{BusId, Seq};
use crate::log::chain::Hash;
use crate::log::identity;
use crate::log::{LogPath, LogReader, ReadError, open};
use crate::sys::thread::spawn_scoped;

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
    /// How many rows were redacted on purpose after they were recorded.
    pub redacted_rows: u64,
    /// How many redacted rows of an archive are believed, because it does not hold the rows that tell of their redaction.
    pub unconfirmed: u64,
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

/// How to verify a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyOptions {
    /// How many threads read rows. The result does not depend on it.
    pub threads: NonZeroUsize,
    /// The row after which to begin, with the hash that it is known to have; none to verify everything. Rows up to this
    /// one, the pages and the indexes of the file are not checked then.
    pub start: Option<(Seq, Hash)>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        let threads = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { threads, start: None }
    }
}

/// Verifies the log, and calls `progress` with the number of rows done. `derive` gives the columns that follow
/// from the rest of a row.
pub fn verify(
    log: &LogPath,
    options: VerifyOptions,
    derive: &Derive<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Verification, ReadError> {
    let db = open::for_reading(log)?;
    if damage::lacks_table(&db)? {
        return Ok(Verification { flaws: damage::find(&db)?, buses: Vec::new() });
    }
    let (queue, tasks) = TaskQueue::new();
    thread::scope(|scope| {
        // Beside the rows: it takes as long as reading them.
        let beside = (options.start.is_none() && options.threads > NonZeroUsize::MIN)
            .then(|| spawn_scoped(scope, "verify-file", || damage::find(&open::for_reading(log)?)))
            .and_then(Result::ok);
        let reader = LogReader::open(log)?;
        let threads =
            PageThreads::start(scope, (&queue, tasks), options.threads.get(), log, derive);
        let mut buses = Vec::new();
        let mut done = 0;
        for bus in bus_ids(&reader)? {
            let walk = Walk { log: &reader, bus, start: options.start, threads: &threads };
            let report = walk.verify_unpruned(derive, |rows| progress(done + rows))?;
            done += report.rows;
            buses.push(report);
        }
        drop(threads);
        let mut flaws = match beside.map(|thread| thread.join()) {
            Some(Ok(found)) => found?,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None if options.start.is_some() => damage::find_in_schema(&db)?,
            None => damage::find(&db)?,
        };
        flaws.extend(identity::changed(&reader.db)?.into_iter().map(|key| {
            let what = format!("the identity {key} is not the one that rows refer to by this key");
            Flaw::of_file(FlawKind::Altered, what)
        }));
        if reader.is_archive() {
            flaws.extend(wrong_origins(&reader)?);
        }
        Ok(Verification { flaws, buses })
    })
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

/// The walk along the rows of one bus.
#[derive(Debug, Clone, Copy)]
struct Walk<'a> {
    log: &'a LogReader,
    bus: BusId,
    start: Option<(Seq, Hash)>,
    threads: &'a PageThreads,
}

impl Walk<'_> {
    /// Verifies again if rows were removed on purpose meanwhile: the walk may have come to some of them, and not to others.
    fn verify_unpruned(
        self,
        derive: &Derive<'_>,
        mut progress: impl FnMut(u64),
    ) -> Result<VerifyReport, ReadError> {
        let mut tries = 0;
        loop {
            let before = removals::last_record(&self.log.db)?;
            let report = self.verify_bus(derive, &mut progress)?;
            tries += 1;
            if report.flaw_count == 0
                || tries == MOST_TRIES
                || removals::last_record(&self.log.db)? == before
            {
                return Ok(report);
            }
        }
    }

    fn verify_bus(
        self,
        derive: &Derive<'_>,
        mut progress: impl FnMut(u64),
    ) -> Result<VerifyReport, ReadError> {
        let Self { log, bus, start, threads } = self;
        let is_archive = log.is_archive();
        let mut walk = ChainWalk::new(bus, is_archive, start);
        let after = start.map(|(seq, _)| seq.as_i64());
        let mut removals = Removals::read(&log.db, is_archive, after)?;
        let mut redactions = Redactions::after(after.unwrap_or(0));
        // Without the table nothing is said about the rows: the file is of an earlier version.
        let mut identities = identity::Referred::new(&log.db)?;
        let from = after.map_or(i64::MIN, |after| after.saturating_add(1));
        let mut pages = Pages::new(threads, log, bus, from);
        let mut last = after.unwrap_or(0);
        while let Some(page) = pages.next(derive)? {
            for (seq, row) in page.rows {
                while let Some(range) = removals.next_before(seq) {
                    let before = walk.pass_removed(range.first, range.last, range.hash);
                    removals.pass_range(&range, before.as_ref());
                }
                match row {
                    Ok(row) => {
                        let before = walk.before().filter(|_| walk.is_next(row.seq));
                        walk.step(&row);
                        note_flaws(&mut walk, &row);
                        if !is_archive && identities.lacks(&log.db, row.identity)? {
                            let what = "the log does not hold who recorded this row; other rows may lack it too";
                            walk.flaws.add(FlawKind::Missing, row.seq, what);
                        }
                        removals.pass_row(&row, &mut walk.flaws);
                        redactions.pass_row(&row, before.as_ref());
                    }
                    Err(error) => walk.unreadable(seq, &error.to_string()),
                }
                last = seq;
            }
            progress(walk.rows);
            if let Some(error) = page.damage {
                let next = last.max(0).saturating_add(1);
                let what =
                    format!("the file cannot be read from here on ({error}); restore a copy");
                walk.flaws.add(FlawKind::Page, next, what);
                break;
            }
        }
        walk.finish();
        removals.finish(is_archive, &mut walk.flaws);
        redactions.finish(is_archive, |seq| removals.is_row_removed(seq), &mut walk.flaws);
        let Redactions { redacted: redacted_rows, unconfirmed, .. } = redactions;
        let Removals { rows_removed: removed_rows, payloads_removed: removed_payloads, .. } =
            removals;
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
            redacted_rows,
            unconfirmed,
            gaps,
        })
    }
}

/// What is not in the hash.
fn note_flaws(walk: &mut ChainWalk, row: &WalkedRow) {
    if let Some(wrong) = row.never_written {
        walk.flaws.add(FlawKind::Altered, row.seq, wrong);
    }
    // `cause` counts in numbers that rows no longer have.
    if !walk.is_aligned() {
        return;
    }
    if let Some(wrong) = row.wrong_cause {
        walk.flaws.add(FlawKind::Altered, row.seq, wrong);
    }
    if let Some(wrong) = &row.wrong_columns {
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
