//! A connection for SQL that people write: it cannot write, and its view `events` has every payload whole, also those
//! that are packed.

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use super::payload::to_sql;
use super::read::LogReader;
use super::{LogPath, OpenError, open, schema};
use crate::event::{BusId, EventId, Time};

/// The view `events`. SQLite computes only the columns that a query names.
const EVENTS: &str = "CREATE TEMP VIEW events AS \
    SELECT {bus} AS bus, e.seq, hookbus_id(e.id) AS id, hookbus_time(e.time) AS time, e.agent, e.session, \
           e.turn, e.name, e.kind, e.tool, e.tool_class, e.cause, e.context, \
           CASE WHEN {removed} IS NULL THEN hookbus_payload(e.payload, {packed}) END AS payload, \
           {removed} IS NOT NULL AS removed, lower(hex(e.hash)) AS hash \
    FROM main.events e {origins}";

/// Opens the log for queries. The caller may add views of its own, and then has to make it read-only again.
pub fn open_for_queries(log: &LogPath) -> Result<Connection, OpenError> {
    let db = open::for_reading(log)?;
    // A function of a connection cannot use that connection.
    let parts = Mutex::new(LogReader::open(log)?);
    // They have no effects, so that they may be used in views although the schema is not trusted.
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    db.create_scalar_function("hookbus_payload", 2, flags, move |context| {
        let parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = parts.payloads().read(context.get_raw(0), context.get_raw(1))?;
        // Text where it is text, so that `->>` works.
        let is_text = matches!(to_sql(&bytes), ToSqlOutput::Borrowed(ValueRef::Text(_)));
        Ok(match String::from_utf8(bytes) {
            Ok(text) if is_text => Value::Text(text),
            Ok(text) => Value::Blob(text.into_bytes()),
            Err(error) => Value::Blob(error.into_bytes()),
        })
    })?;
    db.create_scalar_function("hookbus_id", 1, flags, |context| {
        Ok(bytes_of(context).map(|bytes| EventId::from_bytes(bytes).to_string()))
    })?;
    db.create_scalar_function("hookbus_bus", 1, flags, |context| {
        Ok(bytes_of(context).map(|bytes| BusId::from_bytes(bytes).to_string()))
    })?;
    db.create_scalar_function("hookbus_time", 1, flags, |context| {
        Ok(context.get::<Option<i64>>(0)?.map(|micros| Time::from_micros(micros).to_string()))
    })?;
    let (bus, origins) = if schema::is_archive(&db)? {
        ("hookbus_bus(o.bus)", "LEFT JOIN main.origins o USING (seq)")
    } else {
        ("(SELECT hookbus_bus(id) FROM main.bus)", "")
    };
    let view = EVENTS
        .replace("{bus}", bus)
        .replace("{origins}", origins)
        .replace("{packed}", &schema::packed_column(&db, "e")?)
        .replace("{removed}", &schema::removed_expression(&db, "e")?);
    db.pragma_update(None, "query_only", false)?;
    // Before the view, which a change of this would delete. Sorting must not leave a copy of what it sorts on the disk.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.execute_batch(&view)?;
    Ok(db)
}

/// The sixteen bytes of an id; none if it is something else.
fn bytes_of(context: &Context<'_>) -> Option<[u8; 16]> {
    context.get_raw(0).as_blob().ok().and_then(|blob| blob.try_into().ok())
}
