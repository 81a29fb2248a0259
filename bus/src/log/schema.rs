//! The numbered steps of the schema. A step is never edited once it was released.

use rusqlite::{Connection, TransactionBehavior};

use super::OpenError;
use crate::event::{BusId, Time};

const STEPS: &[&str] =
    &[include_str!("schema/0001_events.sql"), include_str!("schema/0002_archive.sql")];

/// Written into the file, so that nobody takes it for another program's: "hkbs".
const APPLICATION_ID: i64 = 0x686b_6273;

/// The version this code writes.
pub(super) fn current() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// The version of an open file.
pub(super) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Whether the file holds the rows of other buses.
pub(super) fn is_archive(db: &Connection) -> rusqlite::Result<bool> {
    if version(db)? < 2 {
        return Ok(false);
    }
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM origins)")?.query_row([], |row| row.get(0))
}

/// Whether the file is ours, or empty and may become ours.
pub(super) fn is_ours(db: &Connection) -> rusqlite::Result<bool> {
    // One statement, one look: between two of them another process may make the file its own.
    let (application, things): (i64, i64) = db.query_row(
        "SELECT (SELECT application_id FROM pragma_application_id), count(*) FROM sqlite_schema",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(application == APPLICATION_ID || (application == 0 && things == 0))
}

/// Brings the file to the current version; a new one gets its bus id at `now`.
pub(super) fn migrate(db: &mut Connection, now: Time) -> Result<(), OpenError> {
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&step)?; // another process may have been quicker
    if found > current() {
        return Err(OpenError::Newer { found, known: current() });
    }
    for sql in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        step.execute_batch(sql)?;
    }
    if found == 0 {
        let bus = BusId::mint(now);
        step.execute(
            "INSERT INTO bus (id, created) VALUES (?1, ?2)",
            (bus.as_bytes(), now.micros()),
        )?;
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    step.pragma_update(None, "user_version", current())?;
    Ok(step.commit()?)
}
