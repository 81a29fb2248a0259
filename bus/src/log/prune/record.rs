//! The rows of kind `log.pruned`: what one batch removed. They are hashed like all others, so that no program can remove more
//! and refer to them.
//!
//! For removed rows a record covers the hashes before and after each range ([`RangeChain`]): without them the rows before a
//! cut would not be tied to those after it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::selection::PruneRequest;
use super::seq_ranges::SeqRanges;
use crate::event::{Kind, Time};
use crate::log::bus_row::bus_draft;
use crate::log::chain::Hash;
use crate::log::row::RowDraft;

/// What one batch removed.
#[derive(Debug, Default)]
pub(super) struct Removal {
    /// The rows whose payloads were removed.
    pub(super) payloads: SeqRanges,
    /// The rows that were removed, and the digest over their ranges.
    pub(super) rows: Option<(SeqRanges, Hash)>,
    /// How many parts of payloads were deleted.
    pub(super) parts: u64,
    /// How many bytes of payloads all that was.
    pub(super) bytes: u64,
}

impl Removal {
    /// The row that tells of it.
    pub(super) fn to_draft(&self, request: &PruneRequest, at: Time) -> RowDraft {
        let mut record = json!({
            "strength": request.strength.as_str(),
            "selection": request.to_json(),
            "bytes": self.bytes,
            "by": request.by,
        });
        if !self.payloads.is_empty() {
            record["payloads"] =
                json!({"count": self.payloads.len(), "seqs": self.payloads.to_string()});
        }
        if let Some((rows, digest)) = &self.rows {
            record["rows"] = json!({
                "count": rows.len(), "seqs": rows.to_string(), "sha256": hex::encode(digest),
            });
        }
        if self.parts > 0 {
            record["parts"] = json!(self.parts);
        }
        bus_draft(Kind::LogPruned, &record, at)
    }
}

/// What a record says, as `verify` reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::log) struct RecordedRemoval {
    /// The rows whose payloads were removed.
    pub(in crate::log) payloads: SeqRanges,
    /// The digest over the ranges of removed rows.
    pub(in crate::log) rows: Option<Hash>,
}

impl RecordedRemoval {
    /// Reads the payload of a record; none if it is not one.
    pub(in crate::log) fn read(payload: &[u8]) -> Option<Self> {
        let record: Value = serde_json::from_slice(payload).ok()?;
        let payloads = match record["payloads"].get("seqs") {
            None => SeqRanges::default(),
            Some(seqs) => SeqRanges::parse(seqs.as_str()?)?,
        };
        let rows = match record["rows"].get("sha256") {
            None => None,
            Some(digest) => Some(hex::decode(digest.as_str()?).ok()?.try_into().ok()?),
        };
        Some(Self { payloads, rows })
    }
}

/// The digest over ranges of removed rows, in log order.
#[derive(Debug, Clone)]
pub(in crate::log) struct RangeChain(Sha256);

impl Default for RangeChain {
    fn default() -> Self {
        Self(Sha256::new_with_prefix(b"hookbus removed rows 1\0"))
    }
}

impl RangeChain {
    /// Adds the range from `first` to `last`: the hash of the row before it, and that of its last row.
    pub(in crate::log) fn add(&mut self, first: i64, last: i64, before: &Hash, hash: &Hash) {
        self.0.update(first.to_be_bytes());
        self.0.update(last.to_be_bytes());
        self.0.update(before);
        self.0.update(hash);
    }

    pub(in crate::log) fn finish(self) -> Hash {
        self.0.finalize().into()
    }
}
