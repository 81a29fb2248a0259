//! The hash chain: each row's hash covers the hash of the row before it, the row's own identity and
//! the digest of its payload, so that changed, removed or inserted rows are detected. Columns that
//! are derived from the payload (kind, session, turn, tool) are not covered.
//!
//! `bus/README.md` documents the hashed bytes, so that other programs can verify a log.

use sha2::{Digest, Sha256};

use super::row::Row;
use crate::event::{BusId, EventId, Seq, Time};

/// One link of the chain.
pub(super) type Hash = [u8; 32];

/// What a row's hash covers besides its payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity<'a> {
    pub(super) seq: Seq,
    pub(super) id: EventId,
    pub(super) at: Time,
    pub(super) agent: &'a str,
    pub(super) name: &'a str,
    pub(super) cause: Option<Seq>,
    pub(super) context: Option<&'a str>,
}

impl<'a> Identity<'a> {
    /// The identity of a row in the log of its own bus.
    pub(super) fn of(row: &'a Row) -> Self {
        Self {
            seq: row.seq,
            id: row.id,
            at: row.at,
            agent: &row.agent,
            name: &row.name,
            cause: row.cause,
            context: row.context.as_deref(),
        }
    }
}

/// The hash that the first row of a log follows.
pub(super) fn genesis(bus: BusId) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(b"hookbus log 1\0");
    hasher.update(bus.as_bytes());
    hasher.finalize().into()
}

/// The hash of a row in the log of its own bus, if the row before it has the hash `before` (`None`: it is
/// the first row) and its payload has this digest.
pub fn row_hash(bus: BusId, before: Option<&Hash>, row: &Row, payload: &Hash) -> Hash {
    link(&before.copied().unwrap_or_else(|| genesis(bus)), &Identity::of(row), payload)
}

/// The hash of a row after `before` whose payload has this digest.
pub(super) fn link(before: &Hash, row: &Identity<'_>, payload: &Hash) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(before);
    hasher.update(row.seq.as_i64().to_be_bytes());
    hasher.update(row.id.as_bytes());
    hasher.update(row.at.micros().to_be_bytes());
    hasher.update(row.cause.map_or(0, Seq::as_i64).to_be_bytes());
    for text in [row.agent, row.name, row.context.unwrap_or_default()] {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(payload);
    hasher.finalize().into()
}
