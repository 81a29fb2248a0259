//! Opens every connection to SQLite, so that all of them have the same settings.

use std::ffi::c_int;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::lock::WriteLock;
use super::schema::FileKind;
use super::wal::{self, OpenWal, WalChange, WalRescue};
use super::watch::{PathChange, Watched};
use super::{AppendError, OpenError, damage, schema};
use crate::event::{BusId, Time};
use crate::sys::fs::check_readable;

// Before 3.51.3 two writers could corrupt a write-ahead log.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003, "use bundled SQLite");

/// How long to wait for SQLite's own lock. Our processes queue at [`WriteLock`], so only other programs
/// can hold it. The writer waits in its own thread; a reader may delay an agent.
const WRITER_TIMEOUT: Duration = Duration::from_secs(5);
const READER_TIMEOUT: Duration = Duration::from_millis(250);

/// How often a write-ahead log is emptied that other programs write to meanwhile.
const MOST_EMPTYINGS: usize = 5;

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

    /// What SQLite has beside a file that has no write-ahead log while it is written to.
    pub(super) fn journal(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push("-journal");
        PathBuf::from(name)
    }

    /// The lock file, which writers hold.
    pub(super) fn lock_file(&self) -> PathBuf {
        self.0.with_extension("lock")
    }

    /// The lock file that those who work on the whole log hold while they run (`hookbus prune`, `compact`, …): only one of them at a
    /// time.
    pub(super) fn keeping_lock_file(&self) -> PathBuf {
        self.0.with_extension("keeping.lock")
    }

    /// The file that tells which rows were lost.
    pub fn damage_file(&self) -> PathBuf {
        self.0.with_extension("damage")
    }

    /// SQLite's write-ahead log and the index of it, which belong to the file with this name.
    pub(super) fn companions(&self) -> [PathBuf; 2] {
        ["-wal", "-shm"].map(|end| {
            let mut name = self.0.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        })
    }
}

/// Which file a path leads to: device and inode. None if there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId(Option<(u64, u64)>);

impl FileId {
    fn at(path: &Path) -> Self {
        Self::of_found(fs::metadata(path).ok().as_ref())
    }

    pub(super) fn of(file: &Metadata) -> Self {
        Self(Some((file.dev(), file.ino())))
    }

    fn of_found(found: Option<&Metadata>) -> Self {
        found.map_or(Self(None), Self::of)
    }

    fn to_text(self) -> String {
        self.0.map_or_else(|| "none".to_owned(), |(device, inode)| format!("{device}:{inode}"))
    }
}

/// A log that is open for writing.
#[derive(Debug)]
pub(super) struct WritableLog {
    pub(super) db: Connection,
    pub(super) lock: WriteLock,
    log: LogPath,
    file: FileId,
    companions: [FileId; 2],
    /// What a process that writes for long looks at before each commit; none for a client, which opens the log for
    /// one event.
    watched: Option<Watched>,
}

/// Which file of a log that was open is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    Log,
    Wal,
}

impl WritableLog {
    /// Whether the path still leads to the file that is open. What is written to a file that was deleted
    /// or replaced is lost.
    pub(super) fn is_at_its_path(&self) -> bool {
        FileId::at(self.log.file()) == self.file
    }

    /// Whether other programs have changed the files, so that there is something to rescue.
    pub(super) fn is_changed(&mut self) -> bool {
        path_change(self.watched.as_mut(), &self.log, self.file, &self.db).is_some()
    }

    /// To be called after each commit and checkpoint.
    pub(super) fn note_lengths(&mut self) {
        if let Some(watched) = &mut self.watched {
            watched.note_lengths(&self.log);
        }
    }

    /// Looks at the files. If other programs have changed them, saves what can be saved, so that the log can be left and
    /// opened again. The caller holds the lock. After an error the connection is still needed: it may hold the only copy
    /// of rows.
    pub(super) fn rescue(&mut self, now: Time) -> Result<Option<Gone>, AppendError> {
        let Self { db, log, file, watched, .. } = self;
        match path_change(watched.as_mut(), log, *file, db) {
            None => Ok(None),
            Some(PathChange::Replaced) => Ok(Some(Gone::Log)),
            Some(PathChange::CutOff) => set_aside_log(log, now).map(|()| Some(Gone::Log)),
            Some(PathChange::Wal(change, wal)) => {
                rescue_wal(log, db, wal, change, now).map(|()| Some(Gone::Wal))
            }
        }
    }

    /// Closes the log after [`Self::rescue`], or if it is not at its path any more.
    pub(super) fn leave(self, gone: Gone, now: Time) {
        match gone {
            Gone::Log => {
                tracing::warn!("log.db is not at its path any more; using the file there");
                self.abandon(now);
            }
            Gone::Wal => self.close_without_checkpoint(),
        }
    }

    /// Closes a log whose file was deleted or replaced, so that another one can be opened at its path. What is in its
    /// write-ahead log is moved into the file, which may only have been renamed; then nothing of it is left at
    /// the path, where SQLite would read it as a part of the new file. The caller holds the lock.
    fn abandon(self, now: Time) {
        let done = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = done {
            tracing::debug!(%error, "cannot checkpoint a log that was replaced");
        }
        let (log, companions) = (self.log.clone(), self.companions);
        self.close_without_checkpoint();
        for (path, known) in log.companions().iter().zip(companions) {
            if known.0.is_some() && FileId::at(path) == known {
                set_aside(path, now);
            }
        }
    }

    /// Closes the log after work on all of it; false if the file was replaced meanwhile, so that the work is not in the log that
    /// is at its path now.
    pub(super) fn close_at_its_path(self) -> bool {
        let is_there = self.is_at_its_path();
        if !is_there {
            self.close_without_checkpoint();
        }
        is_there
    }

    /// Closes the connection. SQLite would remove a write-ahead log at the path, which may belong to another file.
    pub(super) fn close_without_checkpoint(self) {
        let Self { db, .. } = self;
        if let Err(error) = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
            tracing::debug!(%error, "cannot keep SQLite from a checkpoint");
        }
        drop(db);
    }
}

/// How the files at the path differ from the open ones.
fn path_change<'a>(
    watched: Option<&'a mut Watched>,
    log: &LogPath,
    file: FileId,
    db: &Connection,
) -> Option<PathChange<'a>> {
    match watched {
        Some(watched) => watched.change(log, file, db),
        None => (FileId::at(log.file()) != file).then_some(PathChange::Replaced),
    }
}

/// Keeps what is left of a `log.db` that was cut off under another name, and notes that rows are lost.
fn set_aside_log(log: &LogPath, now: Time) -> Result<(), AppendError> {
    let mut kept = log.file().as_os_str().to_owned();
    kept.push(format!(".damaged-{}", now.micros()));
    fs::rename(log.file(), &kept)
        .map_err(|error| OpenError::Io { path: PathBuf::from(&kept), error })?;
    let text = "log.db was cut off while the daemon had it open: its rows are lost, \
                and a new log was begun; what is left of it is";
    damage::note(log, &format!("{text} {}", kept.display()), now);
    Ok(())
}

/// Saves the rows of a write-ahead log that was removed, replaced or cut off, or notes that they are lost.
fn rescue_wal(
    log: &LogPath,
    db: &Connection,
    wal: &OpenWal,
    change: WalChange,
    now: Time,
) -> Result<(), AppendError> {
    match wal.rescue(change, db)? {
        WalRescue::InLog => {
            tracing::warn!("log.db-wal was removed or replaced; its rows are in log.db now");
            // After a crash SQLite would read what is in it as a part of this log.
            let is_foreign = change == WalChange::Moved
                && fs::metadata(wal.path()).is_ok_and(|file| file.len() > 0);
            if is_foreign {
                set_aside(wal.path(), now);
            }
        }
        WalRescue::AtPath => tracing::warn!("log.db-wal was replaced; using the one there"),
        WalRescue::Lost => {
            let [_, shm] = log.companions();
            wal::reset_index(&shm).map_err(|error| OpenError::Io { path: shm.clone(), error })?;
            let text = "log.db-wal was cut off while the daemon had it open: the rows since the \
                        last checkpoint are lost; `hookbus verify --against` tells which";
            damage::note(log, text, now);
        }
    }
    Ok(())
}

/// Takes a file of SQLite that belongs to no log any more away from its path. A write-ahead log that holds
/// something is kept under another name: it may belong to a log that was moved without it.
fn set_aside(path: &Path, now: Time) {
    let is_kept = path.to_string_lossy().ends_with("-wal")
        && fs::metadata(path).is_ok_and(|file| file.len() > 0);
    let done = if is_kept {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".orphaned-{}", now.micros()));
        tracing::warn!(file = %name.display(), "kept the write-ahead log of a log that is gone");
        fs::rename(path, PathBuf::from(name))
    } else {
        fs::remove_file(path)
    };
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, file = %path.display(), "cannot remove a file of an earlier log");
        }
        Ok(()) | Err(_) => {}
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
) -> Result<WritableLog, OpenError> {
    for_writing_to(log, fs::metadata(log.file()).ok().as_ref(), durability, role, now)
}

/// The same for a caller that has looked at the file already: `found`, none if there was no file.
pub(super) fn for_writing_to(
    log: &LogPath,
    found: Option<&Metadata>,
    durability: Durability,
    role: WriterRole,
    now: Time,
) -> Result<WritableLog, OpenError> {
    // Before the connection: if the file is replaced in between, the ids differ and the log is opened again.
    let (lock, file) = match FileId::of_found(found) {
        FileId(None) => (create_private(log, now)?, FileId::at(log.file())),
        file => (WriteLock::open(&log.lock_file())?, file),
    };
    let note = set_aside_foreign_wal(log, file, &lock, now);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut db = connect(log.file(), flags, WRITER_TIMEOUT)?;
    let found = file_kind(&db, log)?;
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
    db.pragma_update(None, "journal_size_limit", wal::LENGTH_LIMIT.cast_signed())?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, role == WriterRole::Client)?;
    if found.version < schema::current() {
        let guard = lock.acquire();
        db.pragma_update(None, "journal_mode", "WAL")?;
        schema::migrate(&mut db, now)?;
        // From now on `log.db` is a log with this bus id, whatever happens to the write-ahead log.
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        drop(guard);
        check(&db, file_kind(&db, log)?, log)?;
    } else {
        check(&db, found, log)?;
    }
    let mut companions = log.companions().map(|path| FileId::at(&path));
    // SQLite, which has read the file by now, uses a write-ahead log whenever there is one.
    if companions[0].0.is_none() {
        ensure_wal(&db, &lock)?;
        companions = log.companions().map(|path| FileId::at(&path));
    }
    let files = note_of(file, companions[0]);
    if note != files {
        lock.set_note(&files);
    }
    let watched = match role {
        WriterRole::Client => None,
        WriterRole::Daemon => {
            let [path, _] = log.companions();
            let wal = OpenWal::open(path.clone());
            let wal = wal.map_err(|error| OpenError::Io { path, error })?;
            Some(Watched::new(wal))
        }
    };
    Ok(WritableLog { db, lock, log: log.clone(), file, companions, watched })
}

/// A copy that SQLite made (`VACUUM INTO`) has no write-ahead log yet.
fn ensure_wal(db: &Connection, lock: &WriteLock) -> Result<(), OpenError> {
    let mut mode = journal_mode(db)?;
    if mode != "wal" {
        let guard = lock.acquire();
        db.pragma_update(None, "journal_mode", "WAL")?;
        // SQLite creates the write-ahead log when it reads the file for the first time in this mode.
        schema::version(db)?;
        drop(guard);
        mode = journal_mode(db)?;
    }
    if mode == "wal" { Ok(()) } else { Err(OpenError::NoWal(mode)) }
}

/// A connection for a process that holds the lock already: [`for_writing`] could wait for it, and so for itself.
pub(super) fn for_repair(log: &LogPath) -> Result<Connection, OpenError> {
    let db = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_TIMEOUT)?;
    check(&db, file_kind(&db, log)?, log)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    Ok(db)
}

/// A connection to a log all of whose rows are in its file: the write-ahead log was emptied, and until the connection is
/// closed no other program can write. The caller holds the lock.
pub(super) fn with_empty_wal(log: &LogPath) -> Result<Connection, OpenError> {
    let [path, _] = log.companions();
    let failed = |error| OpenError::Io { path: path.clone(), error };
    // SQLite would remove the write-ahead log of a file that was cut off.
    if fs::metadata(log.file()).map_err(failed)?.len() == 0 {
        return Err(sqlite_error(rusqlite::ffi::SQLITE_NOTADB));
    }
    let db = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_TIMEOUT)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    for _ in 0..MOST_EMPTYINGS {
        let is_busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_busy {
            break;
        }
        db.execute_batch("BEGIN IMMEDIATE")?;
        match File::open(&path) {
            Ok(wal) if wal.metadata().map_err(failed)?.len() == 0 => {
                // SQLite does not wait until the disk has it.
                wal.sync_all().map_err(failed)?;
                return Ok(db);
            }
            // Another program wrote in between.
            Ok(_) => db.execute_batch("ROLLBACK")?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(db),
            Err(error) => return Err(failed(error)),
        }
    }
    Err(sqlite_error(rusqlite::ffi::SQLITE_BUSY))
}

fn sqlite_error(code: c_int) -> OpenError {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None).into()
}

/// Notes in the lock file that the write-ahead log at the path belongs to the log at the path: it does not belong to one that is
/// put there later.
pub(super) fn note_files(log: &LogPath, lock: &WriteLock) {
    let [wal, _] = log.companions();
    lock.set_note(&note_of(FileId::at(log.file()), FileId::at(&wal)));
}

/// Takes the write-ahead log of a log that is gone, and the index of it, away from their path. The caller holds the lock.
pub(super) fn set_aside_companions(log: &LogPath, now: Time) -> io::Result<()> {
    for path in log.companions() {
        set_aside(&path, now);
        if path.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
    }
    Ok(())
}

/// Copies all pages of an open log, with those in its write-ahead log, to a new file. They are not looked at: what is wrong
/// with them is wrong in the copy too. Only its owner can read the file.
pub(super) fn copy_pages(from: &Connection, file: &Path) -> Result<(), OpenError> {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    drop(created.map_err(|error| OpenError::Io { path: file.to_owned(), error })?);
    let mut to = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_TIMEOUT)?;
    // A copy that is not finished is removed, so it needs no journal.
    to.pragma_update(None, "journal_mode", "OFF")?;
    let step = Backup::new(from, &mut to)?.step(-1)?;
    if step == StepResult::Done { Ok(()) } else { Err(sqlite_error(rusqlite::ffi::SQLITE_BUSY)) }
}

/// Which file the write-ahead log belongs to, as it is noted in the lock file.
fn note_of(file: FileId, wal: FileId) -> String {
    format!("{}{}", log_note(file), wal_note(wal))
}

fn log_note(file: FileId) -> String {
    format!("log {}, ", file.to_text())
}

fn wal_note(wal: FileId) -> String {
    format!("wal {}", wal.to_text())
}

/// Takes away the write-ahead log of a file that was at this path before: SQLite would read it as a part of the file
/// that is there now. Returns the note in the lock file.
fn set_aside_foreign_wal(log: &LogPath, file: FileId, lock: &WriteLock, now: Time) -> String {
    let note = lock.note();
    if note.starts_with(&log_note(file)) {
        return note; // written for this file
    }
    let [wal, shm] = log.companions();
    let is_foreign = || {
        let (file, wal) = (FileId::at(log.file()), FileId::at(&wal));
        let note = lock.note();
        wal.0.is_some() && note.ends_with(&wal_note(wal)) && note != note_of(file, wal)
    };
    if !note.is_empty() && is_foreign() {
        let guard = lock.acquire();
        if is_foreign() {
            tracing::warn!("another file is in the place of the log");
            set_aside(&wal, now);
            set_aside(&shm, now);
        }
        drop(guard);
    }
    note
}

/// Creates the log so that only its owner can read it: payloads hold what users say to their agents.
/// SQLite gives the files beside the log the same mode. Returns the lock beside the log.
fn create_private(log: &LogPath, now: Time) -> Result<WriteLock, OpenError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |error| OpenError::Io { path, error }
    };
    if let Some(home) = log.file().parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(failed(home))?;
    }
    let lock = WriteLock::open(&log.lock_file())?;
    let guard = lock.acquire();
    // Another process may have created it in the meantime.
    if !log.file().exists() {
        // Files of a log that was deleted: SQLite would read them as a part of the new one.
        log.companions().iter().for_each(|path| set_aside(path, now));
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(log.file());
        match created {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(log.file())(error));
            }
            Ok(_) | Err(_) => {}
        }
    }
    drop(guard);
    Ok(lock)
}

/// A connection that cannot write.
pub(super) fn for_reading(log: &LogPath) -> Result<Connection, OpenError> {
    let path = || log.file().to_owned();
    let found = match fs::metadata(log.file()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing(path()));
        }
        found => found.map_err(|error| OpenError::Io { path: path(), error })?,
    };
    if !found.is_file() {
        return Err(OpenError::Foreign(path()));
    }
    if found.len() == 0 {
        // A writer has just created it and it is no log yet, unless the lock file tells that it was one.
        let was_log = WriteLock::read_note(&log.lock_file()).is_some_and(|note| {
            note.starts_with(&format!("log {},", FileId::of(&found).to_text()))
        });
        return Err(if was_log { OpenError::Emptied(path()) } else { OpenError::Missing(path()) });
    }
    // SQLite would only say that it cannot open the file.
    check_readable(log.file()).map_err(|error| OpenError::Io { path: path(), error })?;
    // Readers of a write-ahead log write to its index; fall back to read-only without permission.
    let writable = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_WRITE, READER_TIMEOUT)
        .and_then(|db| check(&db, file_kind(&db, log)?, log).map(|()| db));
    let db = match writable {
        Err(OpenError::Sqlite(error)) if is_permission_error(&error) => {
            let db = connect(log.file(), OpenFlags::SQLITE_OPEN_READ_ONLY, READER_TIMEOUT)?;
            check(&db, file_kind(&db, log)?, log).map(|()| db)
        }
        Ok(_) | Err(_) => writable,
    }?;
    db.pragma_update(None, "query_only", true)?;
    // Otherwise the last connection to close would checkpoint the write-ahead log.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

/// A copy that was just written, for a look at it.
pub(super) fn in_copy(file: &Path) -> Result<Connection, OpenError> {
    connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_TIMEOUT)
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
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

/// An empty database in memory, to compare schemas with.
#[expect(clippy::disallowed_methods, reason = "the only place that opens SQLite")]
pub(super) fn in_memory() -> rusqlite::Result<Connection> {
    Connection::open_in_memory()
}

/// What is in the file, if it is ours or empty.
fn file_kind(db: &Connection, log: &LogPath) -> Result<FileKind, OpenError> {
    let found = schema::file_kind(db).map_err(|error| foreign_or(error, log))?;
    if found.is_ours { Ok(found) } else { Err(OpenError::Foreign(log.file().to_owned())) }
}

/// Whether it is a log of a version that this program knows.
fn check(db: &Connection, found: FileKind, log: &LogPath) -> Result<(), OpenError> {
    let path = || log.file().to_owned();
    match found.version {
        0 if schema::has_tables(db)? => Err(OpenError::NoVersion(path())),
        // Without tables: a writer is creating it at this moment.
        0 => Err(OpenError::Missing(path())),
        version if version > schema::current() => {
            Err(OpenError::Newer { found: version, known: schema::current() })
        }
        _ => Ok(()),
    }
}

fn journal_mode(db: &Connection) -> rusqlite::Result<String> {
    db.query_row("PRAGMA journal_mode", [], |row| row.get(0))
}

fn foreign_or(error: rusqlite::Error, log: &LogPath) -> OpenError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => OpenError::Foreign(log.file().to_owned()),
        Some(_) | None => error.into(),
    }
}
