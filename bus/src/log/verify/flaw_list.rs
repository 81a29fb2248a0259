//! The flaws of the rows of one bus, while they are found. A later row can show what really happened to an earlier one,
//! so a flaw can get another kind.

use super::flaw::{Flaw, FlawKind, MAX_LISTED};
use crate::event::Seq;

/// The flaws that were found so far.
#[derive(Debug, Default)]
pub(super) struct FlawList {
    /// The first few, in the order in which they were found.
    listed: Vec<Flaw>,
    /// All of them.
    count: u64,
}

impl FlawList {
    pub(super) fn add(&mut self, kind: FlawKind, seq: i64, what: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Flaw::of_row(kind, seq, what));
        }
    }

    /// Says what happened to a row, instead of what was said of it before.
    pub(super) fn replace(&mut self, kind: FlawKind, seq: i64, what: &str) {
        let is_about_chain = |flaw: &&mut Flaw| {
            flaw.seq == Some(Seq::from_i64(seq)) && flaw.kind != FlawKind::Derived
        };
        match self.listed.iter_mut().find(is_about_chain) {
            Some(flaw) => {
                flaw.kind = kind;
                what.clone_into(&mut flaw.what);
            }
            None => self.add(kind, seq, what),
        }
    }

    /// The first few in log order, and how many there are.
    pub(super) fn into_sorted(self) -> (Vec<Flaw>, u64) {
        let Self { mut listed, count } = self;
        Flaw::sort(&mut listed);
        (listed, count)
    }
}
