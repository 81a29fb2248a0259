//! Walks along the hash chain of one bus. A row whose hash does not follow from the row before it is compared with
//! the rows around it, to tell what happened: was it changed, was a row inserted or removed and the rest
//! renumbered, did rows change places?

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::flaw::{Flaw, FlawKind, MAX_LISTED};
use super::row::{Covered, ReadRow};
use crate::event::{BusId, Seq};
use crate::log::chain::{self, Hash};

/// How many rows back a row is looked for that another one follows.
const WINDOW: usize = 64;

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
    expected: i64,
    /// How much larger the numbers of rows are than when they were recorded.
    shift: i64,
    recent: VecDeque<Link>,
    /// The rows before gaps.
    before_gaps: Vec<Link>,
    tentative: Option<Tentative>,
    searches: usize,
    /// In the order in which they were found, also beyond those that are listed.
    pub(super) flaws: Vec<Flaw>,
    pub(super) flaw_count: u64,
    pub(super) rows: u64,
    pub(super) first: Option<Seq>,
    pub(super) head: Option<(Seq, Hash)>,
    pub(super) gaps: Vec<RangeInclusive<i64>>,
}

/// A row that others may follow.
#[derive(Debug, Clone)]
struct Link {
    seq: i64,
    /// Its number when it was recorded.
    original: i64,
    hash: Hash,
    /// What its hash covers, if the hash does not follow from the row before it.
    suspect: Option<Covered>,
}

/// A row that follows one further back. The row after it shows whether those in between were inserted, or whether
/// this one was moved here.
#[derive(Debug)]
struct Tentative {
    seq: i64,
    /// The row that it follows.
    after: i64,
    shift: i64,
}

impl ChainWalk {
    pub(super) fn new(bus: BusId, is_archive: bool) -> Self {
        let genesis = Link { seq: 0, original: 0, hash: chain::genesis(bus), suspect: None };
        Self {
            is_archive,
            before: Some(genesis.hash),
            expected: Seq::FIRST.as_i64(),
            shift: 0,
            recent: VecDeque::from([genesis]),
            before_gaps: Vec::new(),
            tentative: None,
            searches: 0,
            flaws: Vec::new(),
            flaw_count: 0,
            rows: 0,
            first: None,
            head: None,
            gaps: Vec::new(),
        }
    }

    pub(super) fn step(&mut self, row: &ReadRow) {
        self.rows += 1;
        if row.seq < Seq::FIRST.as_i64() {
            return self.flaw(FlawKind::Inserted, row.seq, "a log has no row before row 1");
        }
        self.first = self.first.or(Some(Seq::from_i64(row.seq)));
        self.note_gap(row.seq);
        let mut suspect = None;
        if !self.confirm_tentative(row) && !self.follows(row) && !self.realign(row) {
            self.flaw(
                FlawKind::Altered,
                row.seq,
                "its hash does not match: this row, or the one before it, was changed",
            );
            suspect = Some(row.covered.clone());
        }
        self.push(row, suspect);
    }

    /// A row that cannot be read. Its hash is not known, so the row after it cannot be checked.
    pub(super) fn unreadable(&mut self, seq: i64, why: &str) {
        self.rows += 1;
        self.note_gap(seq);
        self.flaw(FlawKind::Altered, seq, format!("it cannot be read: {why}"));
        self.before = None;
        self.expected = seq.saturating_add(1);
    }

    /// Whether the rows have the numbers that they were recorded with, as far as can be told.
    pub(super) const fn is_aligned(&self) -> bool {
        self.shift == 0 && self.tentative.is_none()
    }

    /// The end of the log.
    pub(super) fn finish(&mut self) {
        if let Some(tentative) = self.tentative.take() {
            self.mark_inserted(&tentative);
        }
    }

    fn push(&mut self, row: &ReadRow, suspect: Option<Covered>) {
        let original = row.seq.saturating_sub(self.shift);
        self.recent.push_back(Link { seq: row.seq, original, hash: row.stored, suspect });
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        self.before = Some(row.stored);
        self.expected = row.seq.saturating_add(1);
        self.head = Some((Seq::from_i64(row.seq), row.stored));
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
            self.flaw(FlawKind::Missing, first, what);
        }
        if let Some(link) = self.recent.back().filter(|_| self.before_gaps.len() < WINDOW) {
            self.before_gaps.push(link.clone());
        }
        self.before = None;
    }

    fn follows(&self, row: &ReadRow) -> bool {
        // After a gap there is nothing to compare with; the rows after this one show whether its hash is right.
        self.before.is_none_or(|before| {
            row.covered.hash(&before, row.seq.saturating_sub(self.shift)) == row.stored
        })
    }

    /// Looks for the row that `row` followed when it was recorded; returns whether that explains it.
    fn realign(&mut self, row: &ReadRow) -> bool {
        let is_after =
            |link: &Link, original: i64| row.covered.hash(&link.hash, original) == row.stored;
        let moved_from = self.before_gaps.iter().find_map(|link| {
            let original = link.original.saturating_add(1);
            is_after(link, original).then_some(original)
        });
        if let Some(original) = moved_from {
            self.flaw(FlawKind::Reordered, row.seq, format!("it was recorded as row {original}"));
            return true;
        }
        for link in self.recent.iter().rev() {
            let next = link.original.saturating_add(1);
            if is_after(link, next) {
                let (after, shift) = (link.seq, row.seq.saturating_sub(next));
                return self.note_moved(row, after, shift);
            }
            // A row that was taken for changed, but that this one follows: it was only moved.
            if link.suspect.is_some() && is_after(link, row.seq) {
                let seq = link.seq;
                self.relabel(seq, FlawKind::Reordered, "it was recorded at another place");
                self.shift = 0;
                return true;
            }
        }
        self.find_removed(row)
    }

    /// The row follows the one at `after`, not the one before it.
    fn note_moved(&mut self, row: &ReadRow, after: i64, shift: i64) -> bool {
        // The row before may be the one that followed this one: they have changed places.
        let next = row.seq.saturating_sub(shift).saturating_add(1);
        let swapped = self.recent.iter().rev().take_while(|link| link.seq > after).find(|link| {
            let follows = |it: &Covered| it.hash(&row.stored, next) == link.hash;
            link.suspect.as_ref().is_some_and(follows)
        });
        if let Some(swapped) = swapped {
            let (seq, hash) = (swapped.seq, swapped.hash);
            let what = format!("it and row {} have changed places", row.seq);
            self.relabel(seq, FlawKind::Reordered, &what);
            // What comes next follows the swapped row. `push` sets `before` to this one, which realigns it.
            let link = Link { seq: row.seq, original: row.seq, hash, suspect: None };
            self.recent.push_back(link);
            return true;
        }
        self.tentative = Some(Tentative { seq: row.seq, after, shift });
        true
    }

    /// Decides about the row before; returns whether this one follows it.
    fn confirm_tentative(&mut self, row: &ReadRow) -> bool {
        let Some(tentative) = self.tentative.take() else { return false };
        let original = row.seq.saturating_sub(tentative.shift);
        let confirmed =
            self.before.is_some_and(|before| row.covered.hash(&before, original) == row.stored);
        if confirmed {
            self.shift = tentative.shift;
            self.mark_inserted(&tentative);
        } else {
            let original = tentative.seq.saturating_sub(tentative.shift);
            let what = format!("it was recorded as row {original}");
            self.flaw(FlawKind::Reordered, tentative.seq, what);
        }
        confirmed
    }

    /// The rows between the one that the tentative row follows and itself were inserted.
    fn mark_inserted(&mut self, tentative: &Tentative) {
        let what = "it was put between rows that followed each other";
        let between = |seq: &i64| *seq > tentative.after && *seq < tentative.seq;
        let seqs: Vec<i64> = self.recent.iter().map(|link| link.seq).filter(between).collect();
        for seq in seqs {
            self.relabel(seq, FlawKind::Inserted, what);
        }
    }

    /// The row before seemed to be changed. If this one follows it under another number, rows were removed before it
    /// and the rest was renumbered.
    fn find_removed(&mut self, row: &ReadRow) -> bool {
        let Some(last) = self.recent.back().filter(|link| link.suspect.is_some()) else {
            return false;
        };
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
        self.relabel(seq, FlawKind::Missing, &what);
        true
    }

    /// Says what happened to a row, which may be noted as changed already.
    fn relabel(&mut self, seq: i64, kind: FlawKind, what: &str) {
        let known = self
            .flaws
            .iter_mut()
            .find(|flaw| flaw.seq == Some(Seq::from_i64(seq)) && flaw.kind != FlawKind::Derived);
        match known {
            Some(flaw) => {
                flaw.kind = kind;
                what.clone_into(&mut flaw.what);
            }
            None => self.flaw(kind, seq, what),
        }
    }

    pub(super) fn flaw(&mut self, kind: FlawKind, seq: i64, what: impl Into<String>) {
        self.flaw_count += 1;
        if self.flaws.len() < MAX_LISTED {
            self.flaws.push(Flaw::of_row(kind, seq, what));
        }
    }
}
