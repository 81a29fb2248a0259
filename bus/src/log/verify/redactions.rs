//! What was redacted on purpose, compared with the records of it in the chain. A row that is not as it was recorded counts as
//! redacted on purpose only if the last row of kind `log.redacted` that names it says that it is like this.

use std::collections::BTreeMap;

use super::flaw::FlawKind;
use super::flaw_list::FlawList;
use super::walked_row::WalkedRow;
use crate::log::chain::Hash;

/// What was redacted, and what the records say.
#[derive(Debug, Default)]
pub(super) struct Redactions {
    /// The walk begins after this row.
    after: i64,
    /// What the record has to say about each redacted row; none if the row before it is missing.
    rows: BTreeMap<i64, Option<Hash>>,
    /// What the last record says about each row, and which record that is.
    recorded: BTreeMap<i64, (i64, Hash)>,
    pub(super) redacted: u64,
    /// Rows of an archive that does not hold their records.
    pub(super) unconfirmed: u64,
}

impl Redactions {
    /// For a walk that begins after the row `after`.
    pub(super) fn after(after: i64) -> Self {
        Self { after, ..Self::default() }
    }

    /// A row of the log, after a row with the hash `before`.
    pub(super) fn pass_row(&mut self, row: &WalkedRow, before: Option<&Hash>) {
        if row.redaction.is_some() {
            self.redacted += 1;
            self.rows.insert(row.seq, before.and_then(|before| row.binding(before)));
        }
        // A record cannot tell of rows after it, and those before the walk are not looked at.
        let walked = (self.after.saturating_add(1))..row.seq;
        let named = row.recorded_redaction.iter().filter(|(seq, _)| walked.contains(seq));
        self.recorded.extend(named.map(|(seq, digest)| (*seq, (row.seq, *digest))));
    }

    /// The end of the log. An archive may hold a row as it was recorded, or without the record.
    pub(super) fn finish(
        &mut self,
        is_archive: bool,
        is_removed: impl Fn(i64) -> bool,
        flaws: &mut FlawList,
    ) {
        for (seq, digest) in &self.rows {
            match (self.recorded.get(seq), digest) {
                (Some((_, recorded)), Some(digest)) if recorded == digest => {}
                // Rows are missing before it, which is told.
                (_, None) => {}
                (Some((record, _)), Some(_)) => {
                    let what = format!("it is not as row {record} says that it was redacted");
                    flaws.add(FlawKind::Altered, *seq, what);
                }
                (None, Some(_)) if is_archive => self.unconfirmed += 1,
                (None, Some(_)) => {
                    let what =
                        "it is not as it was recorded, and no row of kind log.redacted tells of it";
                    flaws.add(FlawKind::Altered, *seq, what);
                }
            }
        }
        let is_back = |seq: &i64| !is_archive && !self.rows.contains_key(seq) && !is_removed(*seq);
        for (seq, (record, _)) in self.recorded.iter().filter(|(seq, _)| is_back(seq)) {
            let what =
                format!("row {record} tells that it was redacted, but it is as it was recorded");
            flaws.add(FlawKind::Altered, *seq, what);
        }
    }
}
