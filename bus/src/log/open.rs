//! Opens every connection to SQLite, so that all of them have the same settings.

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

// Before 3.51.3 two writers could corrupt a write-ahead log.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003, "use bundled SQLite");

/// How long to wait for SQLite's own lock. Our processes queue at [`WriteLock`], so only other programs
/// can hold it. The writer waits in its own thread; a reader may delay an agent.
const WRITER_TIMEOUT: Duration = Duration::from_secs(5);
const READER_TIMEOUT: Duration = Duration::from_millis(250);

/// The path of a log and of the files beside it.
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

/// What an append survives once it is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut (`synchronous=FULL`).
    #[default]
    PowerCut,
    /// The end of every process, but not always a power cut (`synchronous=NORMAL`).
    ProcessDeath,
}

/// Which process writes. Decides how long the write-ahead log may grow and when it is checkpointed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterRole {
    /// The daemon: a long write-ahead log, checkpointed when it is idle.
    Daemon,
    /// A client that handles one event: a short write-ahead log, because every client has to read it
    /// on opening, and no checkpoint on close, because the agent waits.
    Client,
}

/// A connection for writing, and the lock to hold while writing. Creates the log if there is none.
pub(super) fn for_writing(
    log: &LogPath,
    durability: Durability,
    role: WriterRole,
    now: Time,
) -> Result<(Connection, WriteLock), OpenError> {
    create_private(log)?;
    let lock = WriteLock::open(&log.lock_file())?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut db = connect(log.file(), flags, WRITER_TIMEOUT)?;
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
    let pages = match role {
        WriterRole::Daemon => 4000,
        WriterRole::Client => 256,
    };
    db.pragma_update(None, "wal_autocheckpoint", pages)?;
    db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, role == WriterRole::Client)?;
    if schema::version(&db)? < schema::current() {
        let guard = lock.acquire();
        db.pragma_update(None, "journal_mode", "WAL")?;
        schema::migrate(&mut db, now)?;
        drop(guard);
    }
    check(&db, log)?;
    Ok((db, lock))
}

/// Creates the log so that only its owner can read it: payloads hold what users say to their agents.
/// SQLite gives the files beside the log the same mode.
fn create_private(log: &LogPath) -> Result<(), OpenError> {
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
pub(super) fn for_reading(log: &LogPath) -> Result<Connection, OpenError> {
    // An empty file was just created by a writer and is not a log yet.
    if std::fs::metadata(log.file()).map_or(0, |file| file.len()) == 0 {
        return Err(OpenError::Missing(log.file().to_owned()));
    }
    // Readers of a write-ahead log write to its index; fall back to read-only without permission.
    let writable = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_WRITE, READER_TIMEOUT)
        .and_then(|db| check(&db, log).map(|()| db));
    let db = match writable {
        Err(OpenError::Sqlite(error)) if is_permission_error(&error) => {
            let db = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_ONLY, READER_TIMEOUT)?;
            check(&db, log).map(|()| db)
        }
        Ok(_) | Err(_) => writable,
    }?;
    db.pragma_update(None, "query_only", true)?;
    // Otherwise the last connection to close would checkpoint the write-ahead log.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

/// The id of the bus that an open log belongs to.
pub(super) fn bus_id(db: &Connection) -> rusqlite::Result<BusId> {
    db.query_row("SELECT id FROM bus", [], |row| row.get(0).map(BusId::from_bytes))
}

fn is_permission_error(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    error
        .sqlite_error_code()
        .is_some_and(|code| [CannotOpen, PermissionDenied, ReadOnly].contains(&code))
}

#[expect(clippy::disallowed_methods, reason = "the only place that opens SQLite")]
fn connect(path: &Path, flags: OpenFlags, busy_timeout: Duration) -> Result<Connection, OpenError> {
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(busy_timeout)?;
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
