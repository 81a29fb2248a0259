//! The one place that knows how payload bytes are kept, so that this can change without anybody
//! else noticing: what goes in comes out, byte for byte.

use rusqlite::types::{ToSqlOutput, ValueRef};

/// Text where the bytes are text, so that SQL can look into them; a blob where they are not. A
/// NUL byte would cut a text short in many tools, so it makes a blob too.
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
        // We never write these; whoever did is found out by the hash.
        ValueRef::Null => Vec::new(),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => number.to_string().into_bytes(),
    }
}
