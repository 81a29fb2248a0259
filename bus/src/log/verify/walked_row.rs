//! What the walk along the chain needs of a row. Everything that takes time was computed when the row was read, which
//! several threads do at once: the digest of the payload, the derived columns, and whether the row follows the one that was
//! read before it.

use super::row::{Covered, ReadRow};
use crate::event::{Derived, DerivedFrom, IdentityKey};
use crate::log::chain::Hash;
use crate::log::prune::RecordedRemoval;
use crate::log::redact::binding;
use crate::log::row::Redaction;

/// A row, without its payload.
#[derive(Debug)]
pub(super) struct WalkedRow {
    /// Its place in the log of its own bus.
    pub(super) seq: i64,
    pub(super) stored: Hash,
    pub(super) covered: Covered,
    compared: Option<Compared>,
    /// What no hookbus has ever written.
    pub(super) never_written: Option<&'static str>,
    /// Why it is not a decision about the event that it names.
    pub(super) wrong_cause: Option<&'static str>,
    /// The derived columns that do not follow from the rest of the row.
    pub(super) wrong_columns: Option<String>,
    /// Whether the payload was removed, and only its digest is there.
    pub(super) is_removed: bool,
    /// The key of the identity that recorded it.
    pub(super) identity: Option<IdentityKey>,
    /// What it says if it is a record of removed payloads and rows.
    pub(super) recorded_removal: Option<RecordedRemoval>,
    /// What was redacted on purpose.
    pub(super) redaction: Option<Redaction>,
    /// The rows that it names if it is a record of redactions.
    pub(super) recorded_redaction: Vec<(i64, Hash)>,
    /// What its hash would cover with what it holds now, if it was redacted.
    covered_now: Option<Covered>,
}

/// The row compared with the hash of the row before it, with the number that it has.
#[derive(Debug)]
struct Compared {
    before: Hash,
    follows: bool,
}

impl WalkedRow {
    /// Looks at all that can be said about a row without the walk. `before` is the row that was read before it.
    pub(super) fn of(
        row: ReadRow,
        before: Option<&Self>,
        is_archive: bool,
        derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
    ) -> Self {
        let compare = |before: &Self| Compared {
            before: before.stored,
            follows: row.covered.hash(&before.stored, row.seq) == row.stored,
        };
        Self {
            compared: before.map(compare),
            never_written: row.never_written(),
            wrong_cause: row.wrong_cause(is_archive),
            wrong_columns: row.wrong_columns(derive),
            identity: row.identity_key(),
            recorded_removal: row.recorded_removal(),
            recorded_redaction: row.recorded_redaction().unwrap_or_default(),
            covered_now: row.covered_now(),
            redaction: row.redaction,
            seq: row.seq,
            stored: row.stored,
            is_removed: row.is_removed,
            covered: row.covered,
        }
    }

    /// What the record of its redaction has to say about a redacted row after `before`; none if it was not redacted.
    pub(super) fn binding(&self, before: &Hash) -> Option<Hash> {
        let as_now = self.covered_now.as_ref()?.hash(before, self.seq);
        Some(binding(&self.stored, self.covered.payload_digest(), &as_now))
    }

    /// Whether it follows a row with the hash `before` and had the number `original` then.
    pub(super) fn follows(&self, before: &Hash, original: i64) -> bool {
        match &self.compared {
            Some(known) if known.before == *before && original == self.seq => known.follows,
            Some(_) | None => self.covered.hash(before, original) == self.stored,
        }
    }
}
