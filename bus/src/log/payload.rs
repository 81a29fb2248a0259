//! How payload bytes are stored in SQLite. No other module knows, so the encoding can change; the
//! bytes that are read are exactly those that were written.
//!
//! A short payload is in the column `payload` as it arrived: TEXT, or BLOB if it is no text. What a long one shares with
//! others is stored once, in the table `parts`; what is left of it is in the column `packed`, and `payload` is an empty
//! object, so that a query on JSON fields passes over it. Decisions and rows of the bus itself are never packed.

use std::cell::RefCell;

use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use rusqlite::{Connection, OptionalExtension};

use super::bus_row::BUS_AGENT;
use super::chain::Hash;
use super::row::Redaction;
use crate::event::Kind;
use crate::pack::{Packed, Packer, PartId, PartKey, PartSource, Parts, Unpacker};

/// What the column `payload` holds if the payload is packed, or was removed.
pub(super) const ELSEWHERE: &str = "{}";

/// The values of the columns `payload` and `packed`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored<'p> {
    pub(super) payload: ToSqlOutput<'p>,
    pub(super) packed: Option<Vec<u8>>,
}

impl Stored<'_> {
    /// A payload that was removed.
    pub(super) const REMOVED: Self =
        Self { payload: ToSqlOutput::Borrowed(ValueRef::Text(ELSEWHERE.as_bytes())), packed: None };
}

/// The bytes as they are: TEXT if they are UTF-8, so that SQL can query them, else BLOB. Bytes with a NUL become a BLOB
/// too, because many tools cut a text at a NUL.
pub(super) fn to_sql(payload: &[u8]) -> ToSqlOutput<'_> {
    match std::str::from_utf8(payload) {
        Ok(text) if !payload.contains(&0) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Ok(_) | Err(_) => ToSqlOutput::Borrowed(ValueRef::Blob(payload)),
    }
}

/// The bytes of a row that is never packed: a decision, or a row of the bus itself.
pub(super) fn from_sql(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        // We never write these types. If another program did, the hash does not match.
        ValueRef::Null => Vec::new(),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => number.to_string().into_bytes(),
    }
}

/// Whether the columns have the values that a [`PayloadWriter`] gives them. The hash covers the bytes only, and SQL finds
/// a text that was turned into a BLOB no more.
pub(super) fn is_as_written(value: ValueRef<'_>, packed: ValueRef<'_>) -> bool {
    match (value, packed) {
        (ValueRef::Text(bytes), ValueRef::Blob(_)) => bytes == ELSEWHERE.as_bytes(),
        (ValueRef::Text(bytes) | ValueRef::Blob(bytes), ValueRef::Null) => {
            to_sql(bytes) == ToSqlOutput::Borrowed(value)
        }
        _ => false,
    }
}

/// What became of a row since it was recorded, from its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    /// The digest of a payload that was removed.
    pub(super) removed: Option<Hash>,
    pub(super) redaction: Option<Redaction>,
}

impl Change {
    /// From the columns `payload` and `packed`, `digest`, `redacted` and `redacted_columns`.
    pub(super) fn of_columns(
        (payload, packed): (ValueRef<'_>, ValueRef<'_>),
        digest: Option<Hash>,
        redacted: Option<Hash>,
        of_columns: bool,
    ) -> Self {
        let is_empty = packed == ValueRef::Null && payload == ValueRef::Text(ELSEWHERE.as_bytes());
        let redaction = redacted.map(|now| Redaction { original: digest, now, of_columns });
        // The payload of a redacted row holds marks, so it is never empty.
        Self { removed: digest.filter(|_| redacted.is_none() || is_empty), redaction }
    }
}

/// Whether the payload of such a row may be packed.
pub(super) fn is_packable(agent: &str, kind: &str) -> bool {
    agent != BUS_AGENT && kind != Kind::Decision.as_str()
}

/// What a [`PayloadReader`] keeps in memory: parts that were read lately. Each belongs to one file.
pub(super) type ReadParts = RefCell<Unpacker>;

/// Reads the payloads of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct PayloadReader<'db> {
    parts: PartTable<'db>,
    unpacker: &'db ReadParts,
}

impl<'db> PayloadReader<'db> {
    pub(super) const fn new(db: &'db Connection, unpacker: &'db ReadParts) -> Self {
        Self { parts: PartTable(db), unpacker }
    }

    /// The bytes of a payload, from the columns `payload` and `packed`.
    pub(super) fn read(
        &self,
        value: ValueRef<'_>,
        packed: ValueRef<'_>,
    ) -> rusqlite::Result<Vec<u8>> {
        let ValueRef::Blob(skeleton) = packed else { return Ok(from_sql(value)) };
        let mut parts = self.parts;
        self.unpacker.borrow_mut().unpack(skeleton, &mut parts).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(error))
        })
    }
}

/// Writes payloads. Remembers which parts the log has; that counts only as long as its transactions are committed, and
/// no other process deletes parts or replaces the file.
#[derive(Debug, Default)]
pub(super) struct PayloadWriter {
    packer: Packer,
}

impl PayloadWriter {
    /// The values for the columns of such a row, with the parts stored in the transaction of `db`.
    pub(super) fn store<'p>(
        &mut self,
        db: &Connection,
        (agent, kind): (&str, &str),
        payload: &'p [u8],
    ) -> rusqlite::Result<Stored<'p>> {
        let packed = if is_packable(agent, kind) {
            self.packer.pack(payload, &mut PartTable(db))?
        } else {
            Packed::AsIs
        };
        Ok(match packed {
            Packed::AsIs => Stored { payload: to_sql(payload), packed: None },
            Packed::Skeleton(skeleton) => {
                Stored { payload: ELSEWHERE.into(), packed: Some(skeleton) }
            }
        })
    }

    /// To be called when a transaction is committed.
    pub(super) fn commit(&mut self) {
        self.packer.commit();
    }

    /// Forgets which parts the log has.
    pub(super) fn forget(&mut self) {
        self.packer.clear();
    }
}

/// The table `parts`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartTable<'db>(pub(super) &'db Connection);

impl Parts for PartTable<'_> {
    type Error = rusqlite::Error;

    fn find(&mut self, key: &PartKey) -> Result<Option<PartId>, Self::Error> {
        let found = self
            .0
            .prepare_cached("SELECT id FROM parts WHERE key = ?1")?
            .query_row([key.as_bytes()], |row| row.get(0))
            .optional()?;
        Ok(found.and_then(PartId::new))
    }

    fn insert(&mut self, key: &PartKey, data: &[u8]) -> Result<PartId, Self::Error> {
        self.0
            .prepare_cached("INSERT INTO parts (key, data) VALUES (?1, ?2)")?
            .execute((key.as_bytes(), data))?;
        PartId::new(self.0.last_insert_rowid()).ok_or(rusqlite::Error::QueryReturnedNoRows)
    }
}

impl PartSource for PartTable<'_> {
    type Error = rusqlite::Error;

    fn read(&mut self, id: PartId, data: &mut Vec<u8>) -> Result<bool, Self::Error> {
        data.clear();
        let mut statement = self.0.prepare_cached("SELECT data FROM parts WHERE id = ?1")?;
        let found = statement.query_row([id.as_i64()], |row| {
            data.extend_from_slice(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        Ok(found.optional()?.is_some())
    }
}
