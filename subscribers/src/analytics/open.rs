//! Opens every connection to an analytics database, so that all of them have the same settings.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::AnalyticsError;

/// How long to wait for another process that writes: the observer, or `hookbus stats`.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection for writing. Creates the file so that only its owner can read it: it holds what users say to their
/// agents.
pub(super) fn for_writing(path: &Path) -> Result<Connection, AnalyticsError> {
    let failed = |error: io::Error| AnalyticsError::File { path: path.to_owned(), error };
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        Ok(_) | Err(_) => {}
    }
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // The position is in the same transactions: after a power cut the last events are counted again.
    let settings = db
        .pragma_update(None, "journal_mode", "WAL")
        .and_then(|()| db.pragma_update(None, "synchronous", "NORMAL"));
    settings.map_err(|error| foreign_or(error, path))?;
    db.pragma_update(None, "cache_size", -64_000)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// A connection that cannot write.
pub(super) fn for_reading(path: &Path) -> Result<Connection, AnalyticsError> {
    if !fs::exists(path).unwrap_or(true) {
        return Err(AnalyticsError::Missing(path.to_owned()));
    }
    // Readers of a write-ahead log write to its index.
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .or_else(|_| connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    // Sorting must not leave a copy of what it sorts on the disk.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

#[expect(clippy::disallowed_methods, reason = "the only place that opens an analytics database")]
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, AnalyticsError> {
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(db)
}

/// SQLite's error, or that the file is none of ours.
pub(super) fn foreign_or(error: rusqlite::Error, path: &Path) -> AnalyticsError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => AnalyticsError::Foreign(path.to_owned()),
        Some(_) | None => error.into(),
    }
}
