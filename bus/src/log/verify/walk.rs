//! Walks along the hash chain of one bus, row by row: [`ChainWalk::step`]. A row whose hash does not follow from the row
//! before it is compared with the rows around it, to tell what happened: was it changed, was a row inserted or
//! removed and the rest renumbered, did rows change places?

use std::ops::RangeInclusive;

use super::flaw::{FlawKind, MAX_LISTED};
use super::flaw_list::FlawList;
use super::passed_rows::{PassedRow, PassedRows, Predecessor};
use super::walked_row::WalkedRow;
use crate::event::{BusId, Seq};
use crate::log::chain::{self, Hash};

/// How many removed rows are recognised if the rows after them were renumbered.
const MAX_REMOVED: i64 = 4096;

/// How often that is tried: each try computes thousands of hashes.
const MAX_SEARCHES: usize = 32;

/// The walk along one chain.
#[derive(Debug)]
pub(super) struct ChainWalk {
    /// In an archive, missing rows are gaps and not flaws.
    is_archive: bool,
    /// The stored hash of the row before; none if that row is missing.
    before: Option<Hash>,
    /// The number that the next row should have.
    expected: i64,
    /// How much larger the numbers of rows are than when they were recorded.
    shift: i64,
    passed: PassedRows,
    undecided: Option<Undecided>,
    /// How often removed rows were searched for.
    searches: usize,
    pub(super) flaws: FlawList,
    pub(super) rows: u64,
    pub(super) first: Option<Seq>,
    pub(super) head: Option<(Seq, Hash)>,
    pub(super) gaps: Vec<RangeInclusive<i64>>,
}

/// A row that followed one further back when it was recorded. The next row decides: were those in between inserted, or was
/// this one moved here?
#[derive(Debug)]
struct Undecided {
    seq: i64,
    /// The row that it followed.
    after: i64,
    /// How much larger its number is now.
    shift: i64,
}

impl ChainWalk {
    /// Begins with the first row, or after the row `start` with its hash.
    pub(super) fn new(bus: BusId, is_archive: bool, start: Option<(Seq, Hash)>) -> Self {
        let (seq, hash) =
            start.map_or_else(|| (0, chain::genesis(bus)), |(seq, hash)| (seq.as_i64(), hash));
        Self {
            is_archive,
            before: Some(hash),
            expected: seq.saturating_add(1),
            shift: 0,
            passed: PassedRows::after(seq, hash),
            undecided: None,
            searches: 0,
            flaws: FlawList::default(),
            rows: 0,
            first: None,
            head: start,
            gaps: Vec::new(),
        }
    }

    /// Checks the next row. Each line of the long condition is a way to explain its hash, the most likely first; one
    /// that explains it also notes the flaws that follow from that, and the lines below it are not tried.
    pub(super) fn step(&mut self, row: &WalkedRow) {
        self.rows += 1;
        if row.seq < Seq::FIRST.as_i64() {
            return self.flaws.add(FlawKind::Inserted, row.seq, "a log has no row before row 1");
        }
        self.first = self.first.or(Some(Seq::from_i64(row.seq)));
        self.note_gap(row.seq);
        let is_explained = self.decides_about_row_before(row)
            || self.follows_row_before(row)
            || self.was_moved_out_of_gap(row)
            || self.follows_earlier_row(row)
            || self.follows_removed_rows(row);
        if !is_explained {
            let what = "its hash does not match: this row, or the one before it, was changed";
            self.flaws.add(FlawKind::Altered, row.seq, what);
        }
        self.pass(row, is_explained);
    }

    /// Rows that were removed on purpose, up to the row `last` with this hash. Returns the hash of the row before them; none
    /// if that row is missing too.
    pub(super) fn pass_removed(&mut self, first: i64, last: i64, hash: Hash) -> Option<Hash> {
        if first < self.expected || last < first {
            let what = "it is said to be removed, but it is here: the table `removed` was changed";
            self.flaws.add(FlawKind::Altered, first, what);
            return None;
        }
        self.finish();
        self.note_gap(first);
        self.passed.push(PassedRow { seq: last, original: last, hash, suspect: None });
        self.expected = last.saturating_add(1);
        self.before.replace(hash)
    }

    /// A row that cannot be read. Its hash is not known, so the row after it cannot be checked.
    pub(super) fn unreadable(&mut self, seq: i64, why: &str) {
        self.rows += 1;
        self.note_gap(seq);
        self.flaws.add(FlawKind::Altered, seq, format!("it cannot be read: {why}"));
        self.before = None;
        self.expected = seq.saturating_add(1);
    }

    /// The end of the log. No row will decide any more.
    pub(super) fn finish(&mut self) {
        if let Some(undecided) = self.undecided.take() {
            self.note_inserted(&undecided);
        }
    }

    /// Whether no row is missing before the row `seq`.
    pub(super) const fn is_next(&self, seq: i64) -> bool {
        self.expected == seq
    }

    /// The hash that the next row should follow; none if the row before it is missing.
    pub(super) const fn before(&self) -> Option<Hash> {
        self.before
    }

    /// Whether the rows have the numbers that they were recorded with, as far as can be told.
    pub(super) const fn is_aligned(&self) -> bool {
        self.shift == 0 && self.undecided.is_none()
    }

    /// Notes that the rows before `seq` are not there.
    fn note_gap(&mut self, seq: i64) {
        if seq == self.expected {
            return;
        }
        let (first, last) = (self.expected, seq.saturating_sub(1));
        if self.is_archive {
            if self.gaps.len() < MAX_LISTED {
                self.gaps.push(first..=last);
            }
        } else {
            let what = if first == last {
                "this row is missing".to_owned()
            } else {
                format!("rows {first} to {last} are missing")
            };
            self.flaws.add(FlawKind::Missing, first, what);
        }
        self.passed.note_gap();
        self.before = None;
    }

    /// The row before was undecided: whether this one follows it with the same shift. Then the rows between that one and
    /// the row that it followed were inserted; else that one was moved.
    fn decides_about_row_before(&mut self, row: &WalkedRow) -> bool {
        let Some(undecided) = self.undecided.take() else { return false };
        let original = row.seq.saturating_sub(undecided.shift);
        let follows =
            self.before.is_some_and(|before| row.covered.hash(&before, original) == row.stored);
        if follows {
            self.shift = undecided.shift;
            self.note_inserted(&undecided);
        } else {
            let original = undecided.seq.saturating_sub(undecided.shift);
            self.note_moved(undecided.seq, original);
        }
        follows
    }

    /// As in an unchanged log. After a gap there is nothing to compare with; the rows after this one show whether its hash
    /// is right.
    fn follows_row_before(&self, row: &WalkedRow) -> bool {
        let original = row.seq.saturating_sub(self.shift);
        self.before.is_none_or(|before| row.follows(&before, original))
            || self.is_for_the_record(row)
    }

    /// Whether the hash covers what was redacted on purpose: then the record of that tells whether the row is right. It
    /// has to be in the log, but may not be in an archive, which does not take such rows.
    fn is_for_the_record(&self, row: &WalkedRow) -> bool {
        !self.is_archive && row.redaction.is_some_and(|redaction| redaction.of_columns)
    }

    fn was_moved_out_of_gap(&mut self, row: &WalkedRow) -> bool {
        let Some(original) = self.passed.number_in_gap(row) else { return false };
        self.note_moved(row.seq, original);
        true
    }

    /// Whether it follows a row further back than the one before it.
    fn follows_earlier_row(&mut self, row: &WalkedRow) -> bool {
        match self.passed.predecessor_of(row) {
            Some(Predecessor::InItsPlace { seq, next }) => {
                if !self.has_changed_places(row, next, seq) {
                    let shift = row.seq.saturating_sub(next);
                    self.undecided = Some(Undecided { seq: row.seq, after: seq, shift });
                }
            }
            Some(Predecessor::Moved { seq }) => {
                let what = "it was recorded at another place";
                self.flaws.replace(FlawKind::Reordered, seq, what);
                self.shift = 0;
            }
            None => return false,
        }
        true
    }

    /// Whether a row between `after`, which this row followed as number `original`, and this row followed this one: the
    /// two have changed places.
    fn has_changed_places(&mut self, row: &WalkedRow, original: i64, after: i64) -> bool {
        let Some(follower) = self.passed.follower_of(row, original, after) else { return false };
        let (seq, hash) = (follower.seq, follower.hash);
        let what = format!("it and row {} have changed places", row.seq);
        self.flaws.replace(FlawKind::Reordered, seq, &what);
        // The next row followed the one that stands further back now. It is found as if that were here.
        self.passed.push(PassedRow { seq: row.seq, original: row.seq, hash, suspect: None });
        true
    }

    /// The row before seemed to be changed. Whether this one follows it under another number: then rows were removed
    /// before it, and the rest was renumbered.
    fn follows_removed_rows(&mut self, row: &WalkedRow) -> bool {
        let Some(last) = self.passed.last_suspect() else { return false };
        if self.searches >= MAX_SEARCHES {
            return false;
        }
        self.searches += 1;
        let (seq, hash) = (last.seq, last.hash);
        let original = row.seq.saturating_sub(self.shift);
        let is_at =
            |removed: i64| row.covered.hash(&hash, original.saturating_add(removed)) == row.stored;
        let Some(removed) = (1..=MAX_REMOVED).find(|removed| is_at(*removed)) else {
            return false;
        };
        self.shift -= removed;
        let what =
            format!("{removed} rows before it are missing, and those after them were renumbered");
        self.flaws.replace(FlawKind::Missing, seq, &what);
        true
    }

    fn note_moved(&mut self, seq: i64, original: i64) {
        self.flaws.add(FlawKind::Reordered, seq, format!("it was recorded as row {original}"));
    }

    /// The rows between this one and the one that it followed were inserted.
    fn note_inserted(&mut self, undecided: &Undecided) {
        for seq in self.passed.between(undecided.after, undecided.seq) {
            let what = "it was put between rows that followed each other";
            self.flaws.replace(FlawKind::Inserted, seq, what);
        }
    }

    /// Goes on to the row after this one.
    fn pass(&mut self, row: &WalkedRow, is_explained: bool) {
        self.passed.push(PassedRow {
            seq: row.seq,
            original: row.seq.saturating_sub(self.shift),
            hash: row.stored,
            suspect: (!is_explained).then(|| row.covered.clone()),
        });
        self.before = Some(row.stored);
        self.expected = row.seq.saturating_add(1);
        self.head = Some((Seq::from_i64(row.seq), row.stored));
    }
}
