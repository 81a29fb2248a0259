//! Checkpoints in the log itself: rows of kind `log.checkpoint`, and what there is to sign.

use super::checkpoint::{Checkpoint, PublicKey, SignedCheckpoint};
use crate::event::{Kind, Seq, Time};
use crate::log::bus_row::BUS_AGENT;
use crate::log::chain::Hash;
use crate::log::verify::hash_at;
use crate::log::{LogReader, ReadError, schema};

impl LogReader {
    /// The statement that `head` is the last row.
    pub fn checkpoint(
        &self,
        (seq, hash): (Seq, Hash),
        time: Time,
        key: PublicKey,
    ) -> Result<Checkpoint, ReadError> {
        let removed: i64 = if schema::has_removals(&self.db)? {
            let sql = "SELECT coalesce(sum(last - first + 1), 0) FROM removed WHERE last <= ?1";
            self.db.query_row(sql, [seq.as_i64()], |row| row.get(0))?
        } else {
            0
        };
        let rows = u64::try_from(seq.as_i64().saturating_sub(removed)).unwrap_or(0);
        Ok(Checkpoint { bus: self.bus()?, seq, hash, time, rows, key })
    }

    /// The checkpoints that this log recorded, each with its row, the oldest first. Rows of this kind that hold no checkpoint
    /// are left out.
    pub fn recorded_checkpoints(&self) -> Result<Vec<(Seq, SignedCheckpoint)>, ReadError> {
        // Rows of the bus itself have no session, and sessions are indexed.
        let sql = format!(
            "SELECT seq, payload FROM events WHERE session = '' AND agent = '{BUS_AGENT}' AND kind = '{}' ORDER BY seq",
            Kind::LogCheckpoint
        );
        let mut statement = self.db.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let payload = row.get_ref(1)?.as_str().unwrap_or_default();
            if let Ok(checkpoint) = SignedCheckpoint::from_line(payload) {
                found.push((Seq::from_i64(row.get(0)?), checkpoint));
            }
        }
        Ok(found)
    }

    /// Whether the row that a checkpoint names is there with that hash. A row that was removed on purpose counts if its hash
    /// is still known.
    pub fn confirms(&self, checkpoint: &Checkpoint) -> Result<bool, ReadError> {
        Ok(hash_at(self, checkpoint.bus, checkpoint.seq)? == Some(checkpoint.hash))
    }

    /// Whether nothing in the log speaks against a checkpoint, as `verify --against` judges it: its row is there with that hash,
    /// or it was removed on purpose so that there is nothing to compare with.
    pub fn agrees_with(&self, checkpoint: &Checkpoint) -> Result<bool, ReadError> {
        match hash_at(self, checkpoint.bus, checkpoint.seq)? {
            Some(hash) => Ok(hash == checkpoint.hash),
            None => self.is_removed(checkpoint.seq),
        }
    }
}
