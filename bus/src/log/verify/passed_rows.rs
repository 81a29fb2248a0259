//! The rows that a walk along a chain has passed: the last few, and those before gaps. A row that does not follow the one
//! before it may follow one of these.

use std::collections::VecDeque;

use super::row::Covered;
use super::walked_row::WalkedRow;
use crate::log::chain::Hash;

/// How many rows are remembered.
const WINDOW: usize = 64;

/// The rows that were passed.
#[derive(Debug)]
pub(super) struct PassedRows {
    recent: VecDeque<PassedRow>,
    before_gaps: Vec<PassedRow>,
}

/// A row that others may follow.
#[derive(Debug, Clone)]
pub(super) struct PassedRow {
    /// Its number now.
    pub(super) seq: i64,
    /// Its number when it was recorded, as far as can be told.
    pub(super) original: i64,
    pub(super) hash: Hash,
    /// What its hash covers, if the row did not follow any row: it seems to be changed.
    pub(super) suspect: Option<Covered>,
}

/// The row that another one followed when it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predecessor {
    /// The row at `seq`, and the other one had the number `next` then.
    InItsPlace { seq: i64, next: i64 },
    /// The row at `seq`, which stood directly before the other one then. It seemed to be changed, but was moved.
    Moved { seq: i64 },
}

impl PassedRow {
    /// Whether `row` followed this one, and had the number `seq` then.
    fn is_before(&self, row: &WalkedRow, seq: i64) -> bool {
        row.covered.hash(&self.hash, seq) == row.stored
    }

    /// The number of the row that followed this one when it was recorded.
    const fn next(&self) -> i64 {
        self.original.saturating_add(1)
    }
}

impl PassedRows {
    /// The walk begins after the row `seq` with this hash.
    pub(super) fn after(seq: i64, hash: Hash) -> Self {
        let start = PassedRow { seq, original: seq, hash, suspect: None };
        Self { recent: VecDeque::from([start]), before_gaps: Vec::new() }
    }

    pub(super) fn push(&mut self, row: PassedRow) {
        self.recent.push_back(row);
        while self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
    }

    /// The rows after the last one are missing.
    pub(super) fn note_gap(&mut self) {
        if let Some(last) = self.recent.back().filter(|_| self.before_gaps.len() < WINDOW) {
            self.before_gaps.push(last.clone());
        }
    }

    /// The last row, if it seems to be changed.
    pub(super) fn last_suspect(&self) -> Option<&PassedRow> {
        self.recent.back().filter(|last| last.suspect.is_some())
    }

    /// The number that `row` was recorded with, if it is the first of the rows that are missing in a gap.
    pub(super) fn number_in_gap(&self, row: &WalkedRow) -> Option<i64> {
        let before = self.before_gaps.iter().find(|passed| passed.is_before(row, passed.next()));
        before.map(PassedRow::next)
    }

    /// The row that `row` followed when it was recorded; the last one that fits.
    pub(super) fn predecessor_of(&self, row: &WalkedRow) -> Option<Predecessor> {
        self.recent.iter().rev().find_map(|passed| {
            let PassedRow { seq, .. } = *passed;
            if passed.is_before(row, passed.next()) {
                return Some(Predecessor::InItsPlace { seq, next: passed.next() });
            }
            let is_moved = passed.suspect.is_some() && passed.is_before(row, row.seq);
            is_moved.then_some(Predecessor::Moved { seq })
        })
    }

    /// The row after `after` that seems to be changed, and that followed `row` when that had the number `original`.
    pub(super) fn follower_of(
        &self,
        row: &WalkedRow,
        original: i64,
        after: i64,
    ) -> Option<&PassedRow> {
        let next = original.saturating_add(1);
        let follows = |it: &PassedRow| {
            it.suspect.as_ref().is_some_and(|covered| covered.hash(&row.stored, next) == it.hash)
        };
        let mut since = self.recent.iter().rev().take_while(|passed| passed.seq > after);
        since.find(|passed| follows(passed))
    }

    /// The numbers of the rows between two others.
    pub(super) fn between(&self, after: i64, before: i64) -> Vec<i64> {
        let seqs = self.recent.iter().map(|passed| passed.seq);
        seqs.filter(|seq| *seq > after && *seq < before).collect()
    }
}
