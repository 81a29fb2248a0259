//! The one door to SQLite: every connection is opened here, with the same settings.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::lock::WriteLock;
use super::{OpenError, schema};
use crate::event::{BusId, Time};

// Two writers could corrupt a WAL file before 3.51.3.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003, "use bundled SQLite");

/// The lock beside the log keeps us apart; these are only for outsiders who hold SQLite's own.
/// A writer waits in a thread of its own; a reader may stand in an agent's way.
const WRITER_WAITS: Duration = Duration::from_secs(5);
const READER_WAITS: Duration = Duration::from_millis(250);

/// Where a log lives, and the files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPath(PathBuf);

impl LogPath {
    /// The log in this directory.
    pub fn in_home(home: &Path) -> Self {
        Self(home.join("log.db"))
    }

    /// The log in this file.
    pub fn of_file(file: &Path) -> Self {
        Self(file.to_owned())
    }

    /// The SQLite file.
    pub fn file(&self) -> &Path {
        &self.0
    }

    fn lock_file(&self) -> PathBuf {
        self.0.with_extension("lock")
    }
}

/// What an acknowledged append survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut (`synchronous=FULL`).
    #[default]
    PowerCut,
    /// The death of every process, but not always a power cut (`synchronous=NORMAL`).
    ProcessDeath,
}

/// Who writes, which decides who tidies up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenBy {
    /// The daemon: a long write-ahead log, moved into the file now and then.
    Daemon,
    /// A client on its own: a short one (each of them reads it anew), and no waiting on close.
    Client,
}

/// A connection to write with, and its lock.
pub(super) fn to_write(
    log: &LogPath,
    durability: Durability,
    by: WrittenBy,
    now: Time,
) -> Result<(Connection, WriteLock), OpenError> {
    make_private(log)?;
    let lock = WriteLock::open(&log.lock_file())?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut db = connect(log.file(), flags, WRITER_WAITS)?;
    if !schema::is_ours(&db).map_err(|error| foreign_or(error, log))? {
        return Err(OpenError::Foreign(log.file().to_owned()));
    }
    db.pragma_update(
        None,
        "synchronous",
        match durability {
            Durability::PowerCut => "FULL",
            Durability::ProcessDeath => "NORMAL",
        },
    )?;
    let pages = match by {
        WrittenBy::Daemon => 4000,
        WrittenBy::Client => 256,
    };
    db.pragma_update(None, "wal_autocheckpoint", pages)?;
    db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, by == WrittenBy::Client)?;
    if schema::version(&db)? < schema::current() {
        let held = lock.acquire();
        db.pragma_update(None, "journal_mode", "WAL")?;
        schema::migrate(&mut db, now)?;
        drop(held);
    }
    check(&db, log)?;
    Ok((db, lock))
}

/// Payloads hold what people say to their agents: nobody else reads the log. SQLite gives the
/// files beside it the mode of the log itself.
fn make_private(log: &LogPath) -> Result<(), OpenError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |error| OpenError::Io { path, error }
    };
    if let Some(home) = log.file().parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(failed(home))?;
    }
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(log.file());
    match created {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed(log.file())(error))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A connection that cannot write.
pub(super) fn to_read(log: &LogPath) -> Result<Connection, OpenError> {
    // A file without a byte in it was made a moment ago and is not a log yet.
    if std::fs::metadata(log.file()).map_or(0, |file| file.len()) == 0 {
        return Err(OpenError::Missing(log.file().to_owned()));
    }
    // Reading a WAL file means writing its index, so ask for that and fall back where we may not.
    let writable = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_WRITE, READER_WAITS)
        .and_then(|db| check(&db, log).map(|()| db));
    let db = match writable {
        Err(OpenError::Sqlite(error)) if may_not_write(&error) => {
            let db = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_ONLY, READER_WAITS)?;
            check(&db, log).map(|()| db)
        }
        Ok(_) | Err(_) => writable,
    }?;
    db.pragma_update(None, "query_only", true)?;
    // The last connection to leave would move the write-ahead log into the file.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

/// The id of the bus that an open log belongs to.
pub(super) fn bus_id(db: &Connection) -> rusqlite::Result<BusId> {
    db.query_row("SELECT id FROM bus", [], |row| row.get(0).map(BusId::from_bytes))
}

fn may_not_write(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    error
        .sqlite_error_code()
        .is_some_and(|code| [CannotOpen, PermissionDenied, ReadOnly].contains(&code))
}

#[expect(clippy::disallowed_methods, reason = "the one door to SQLite")]
fn connect(path: &Path, flags: OpenFlags, waits: Duration) -> Result<Connection, OpenError> {
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(waits)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

fn check(db: &Connection, log: &LogPath) -> Result<(), OpenError> {
    if !schema::is_ours(db).map_err(|error| foreign_or(error, log))? {
        return Err(OpenError::Foreign(log.file().to_owned()));
    }
    let found = schema::version(db)?;
    if found > schema::current() {
        return Err(OpenError::Newer { found, known: schema::current() });
    }
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode == "wal" { Ok(()) } else { Err(OpenError::NoWal(mode)) }
}

fn foreign_or(error: rusqlite::Error, log: &LogPath) -> OpenError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => OpenError::Foreign(log.file().to_owned()),
        Some(_) | None => error.into(),
    }
}
