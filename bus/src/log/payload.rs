//! How payload bytes are stored in SQLite. No other module knows, so the encoding can change; the
//! bytes that are read are exactly those that were written.

use rusqlite::types::{ToSqlOutput, ValueRef};

/// TEXT if the bytes are UTF-8, so that SQL can query them, else BLOB. Bytes with a NUL become a BLOB
/// too, because many tools cut a text at a NUL.
pub(super) fn to_sql(payload: &[u8]) -> ToSqlOutput<'_> {
    match std::str::from_utf8(payload) {
        Ok(text) if !payload.contains(&0) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Ok(_) | Err(_) => ToSqlOutput::Borrowed(ValueRef::Blob(payload)),
    }
}

/// The bytes that [`to_sql`] was given.
pub(super) fn from_sql(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        // We never write these types. If another program did, the hash does not match.
        ValueRef::Null => Vec::new(),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => number.to_string().into_bytes(),
    }
}

/// Whether `value` has the type that [`to_sql`] gives its bytes. The hash covers the bytes only, and SQL finds a text that
/// was turned into a BLOB no more.
pub(super) fn is_as_written(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            to_sql(bytes) == ToSqlOutput::Borrowed(value)
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => false,
    }
}
