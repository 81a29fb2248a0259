//! The rows of kind `log.redacted`: which rows one batch redacted. They are hashed like all others.
//!
//! For each row a record has a digest over the hash of the row, the digest of its payload as it was recorded, and the hash
//! that the row would have with what it holds now ([`binding`]). So neither what was recorded nor what took its place can be
//! changed without notice. The last record that names a row counts: a row can be redacted again.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::event::{Kind, Time};
use crate::log::bus_row::{BUS_AGENT, bus_draft};
use crate::log::chain::Hash;
use crate::log::prune::SeqRanges;
use crate::log::row::RowDraft;
use crate::log::{payload, schema};

/// The digest that a record holds for one row: its hash, the digest of its payload as it was recorded, and the hash that
/// the row would have with what it holds now.
pub(in crate::log) fn binding(hash: &Hash, original: &Hash, as_now: &Hash) -> Hash {
    let mut hasher = Sha256::new_with_prefix(b"hookbus redacted row 1\0");
    hasher.update(hash);
    hasher.update(original);
    hasher.update(as_now);
    hasher.finalize().into()
}

/// What one batch did.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The rows, in log order, each with its [`binding`].
    pub(super) rows: Vec<(i64, Hash)>,
    /// How many secrets of each kind were replaced.
    pub(super) kinds: BTreeMap<String, u64>,
    /// How many parts of payloads were deleted.
    pub(super) parts: u64,
    /// How many bytes they had.
    pub(super) bytes: u64,
}

impl Record {
    /// The row that tells of it.
    pub(super) fn to_draft(&self, by: &str, at: Time) -> RowDraft {
        let mut record = json!({"by": by});
        if !self.rows.is_empty() {
            let mut seqs = SeqRanges::default();
            self.rows.iter().for_each(|(seq, _)| seqs.push(*seq));
            let digests: Vec<String> =
                self.rows.iter().map(|(_, digest)| hex::encode(digest)).collect();
            record["rows"] = json!({
                "count": seqs.len(), "seqs": seqs.to_string(), "digests": digests,
            });
            record["kinds"] = json!(self.kinds);
        }
        if self.parts > 0 {
            record["parts"] = json!(self.parts);
            record["bytes"] = json!(self.bytes);
        }
        bus_draft(Kind::LogRedacted, &record, at)
    }
}

/// The rows that a record names, each with its [`binding`]; none if it names none, or is no record.
pub(in crate::log) fn read_record(payload: &[u8]) -> Option<Vec<(i64, Hash)>> {
    let record: Value = serde_json::from_slice(payload).ok()?;
    let seqs = SeqRanges::parse(record["rows"]["seqs"].as_str()?)?;
    let digests = record["rows"]["digests"].as_array()?;
    if seqs.len() != digests.len() as u64 {
        return None;
    }
    let digest = |it: &Value| -> Option<Hash> { hex::decode(it.as_str()?).ok()?.try_into().ok() };
    seqs.iter().zip(digests).map(|(seq, it)| Some((seq, digest(it)?))).collect()
}

/// What all records of a log say.
#[derive(Debug, Default)]
pub(in crate::log) struct RecordedRedactions(HashMap<i64, Hash>);

impl RecordedRedactions {
    /// Reads them.
    pub(in crate::log) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut redactions = Self::default();
        if schema::version(db)? < 5 {
            return Ok(redactions);
        }
        // Rows of the bus itself have no session, and sessions are indexed.
        let mut statement = db.prepare(&format!(
            "SELECT seq, payload FROM events WHERE session = '' AND agent = '{BUS_AGENT}' \
             AND kind = '{}' ORDER BY seq",
            Kind::LogRedacted
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let named = read_record(&payload::from_sql(row.get_ref(1)?)).unwrap_or_default();
            redactions.add(row.get(0)?, named);
        }
        Ok(redactions)
    }

    /// Adds what the record at `record` says. It cannot tell of rows after it.
    pub(super) fn add(&mut self, record: i64, named: Vec<(i64, Hash)>) {
        self.0.extend(named.into_iter().filter(|(seq, _)| *seq < record));
    }

    /// Whether the last record about the row says that it is like this.
    pub(in crate::log) fn tell(
        &self,
        seq: i64,
        hash: &Hash,
        original: &Hash,
        as_now: &Hash,
    ) -> bool {
        self.0.get(&seq) == Some(&binding(hash, original, as_now))
    }
}
