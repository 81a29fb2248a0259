//! Mends what can be computed again: indexes, triggers and derived columns, and removes triggers, views and indexes that
//! do not belong to a log. What the hash covers is never touched.
//! A copy of the file is kept first.

use std::fs;
use std::io;
use std::path::PathBuf;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::damage;
use super::flaw::FlawKind;
use super::row::{ReadRow, columns};
use crate::event::{Column, Derived, DerivedFrom, Time};
use crate::log::open::{self, Durability, WriterRole};
use crate::log::payload::{PayloadReader, ReadParts};
use crate::log::schema::ObjectName;
use crate::log::{LogPath, OpenError, ReadError, schema};

/// How many rows are read in one query.
const PAGE: usize = 1000;

/// Why a log cannot be repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The rows themselves are damaged.
    #[error(
        "the table of events is damaged ({0}), and what is in it cannot be computed again; restore log.db from a \
         backup or an archive, or move it away, and keep it"
    )]
    Damaged(String),
    /// Another program reads the log at this moment.
    #[error(
        "another program is reading the log, so that no complete copy of it can be kept; end that program and try \
         again; nothing was changed"
    )]
    Busy,
    /// The copy cannot be made.
    #[error("cannot keep a copy of the log at {}: {error}; nothing was changed", .file.display())]
    Backup {
        /// Where the copy should be.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<rusqlite::Error> for RepairError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<OpenError> for RepairError {
    fn from(error: OpenError) -> Self {
        Self::Read(error.into())
    }
}

/// What was mended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The copy of the log as it was; none if nothing had to be mended.
    pub backup: Option<PathBuf>,
    /// The indexes that were built again.
    pub indexes: bool,
    /// The indexes and triggers that were missing or had been changed.
    pub restored: Vec<String>,
    /// The triggers, views and indexes that do not belong to a log.
    pub removed: Vec<String>,
    /// How many rows had derived columns that did not follow from the rest of the row.
    pub rows: u64,
}

/// Repairs the log. Other processes wait meanwhile, or put their events into the spool.
pub fn repair(
    log: &LogPath,
    derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
    now: Time,
) -> Result<Repaired, RepairError> {
    let needed = needed(log, derive)?;
    if !needed.is_any() {
        return Ok(Repaired::default());
    }
    let writable = open::for_writing(log, Durability::PowerCut, WriterRole::Daemon, now)?;
    let guard = writable.lock.acquire();
    let db = writable.db;
    // Rows that are only in the write-ahead log would not be in the copy.
    let is_busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if is_busy {
        return Err(RepairError::Busy);
    }
    // Closing any descriptor of the file releases SQLite's locks on it, so no connection is open during the copy.
    drop(db);
    let backup = back_up(log, now)?;
    let mut db = open::for_repair(log)?;
    if needed.indexes {
        rebuild_indexes(&mut db)?;
    }
    let SchemaRepair { restored, removed } = restore_objects(&mut db)?;
    let rows = mend_columns(&mut db, derive)?;
    drop(guard);
    Ok(Repaired { backup: Some(backup), indexes: needed.indexes, restored, removed, rows })
}

/// What has to be mended.
struct Needed {
    indexes: bool,
    objects: bool,
    columns: bool,
}

impl Needed {
    const fn is_any(&self) -> bool {
        self.indexes || self.objects || self.columns
    }
}

fn needed(
    log: &LogPath,
    derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
) -> Result<Needed, RepairError> {
    let db = open::for_reading(log)?;
    let flaws = damage::find(&db)?;
    if let Some(page) = flaws.iter().find(|flaw| flaw.kind == FlawKind::Page) {
        return Err(RepairError::Damaged(page.what.clone()));
    }
    if damage::lacks_table(&db)? {
        return Err(RepairError::Damaged("a table is missing".to_owned()));
    }
    let mut wrong = 0;
    each_row(&db, |_, row| {
        wrong += u64::from(row.wrong_columns(derive).is_some());
        Ok(())
    })?;
    Ok(Needed {
        indexes: flaws.iter().any(|flaw| flaw.kind == FlawKind::Index),
        objects: !ObjectChanges::find(&db)?.is_empty(),
        columns: wrong > 0,
    })
}

/// Copies the file beside itself, and waits until the copy is on disk.
fn back_up(log: &LogPath, now: Time) -> Result<PathBuf, RepairError> {
    let time = now.to_utc().format("%Y%m%dT%H%M%S%.6f");
    let file = log.file().with_file_name(format!("log.db.before-repair-{time}"));
    let failed = |error| RepairError::Backup { file: file.clone(), error };
    let copy = || {
        let mut from = fs::File::open(log.file())?;
        let mut to = private_file(&file)?;
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    };
    copy().map_err(failed)?;
    Ok(file)
}

fn private_file(path: &PathBuf) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Builds all indexes again from their tables.
fn rebuild_indexes(db: &mut Connection) -> Result<(), RepairError> {
    match db.execute_batch("REINDEX") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {}
        done => return Ok(done?),
    }
    // The pages of an index are damaged, so that SQLite cannot empty it. It is forgotten, which leaves its pages
    // unused; `VACUUM` then writes the file anew without them.
    let indexes: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    db.execute_batch(
        "PRAGMA writable_schema = ON; \
         DELETE FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL; \
         PRAGMA writable_schema = RESET; VACUUM",
    )?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (_, sql) in &indexes {
        transaction.execute_batch(sql)?;
    }
    Ok(transaction.commit()?)
}

/// What is to be done to have the indexes and triggers of a log, and no others. Tables stay: they hold data.
struct ObjectChanges {
    removed: Vec<ObjectName>,
    /// With the statements that create them.
    restored: Vec<(ObjectName, String)>,
}

/// The names of what was restored and removed.
struct SchemaRepair {
    restored: Vec<String>,
    removed: Vec<String>,
}

impl ObjectChanges {
    fn find(db: &Connection) -> Result<Self, RepairError> {
        let found = schema::objects(db)?;
        let expected = schema::expected_objects(schema::version(db)?)?;
        let is_wrong = |(object, sql): &(ObjectName, String)| {
            object.kind != "table" && expected.get(object) != Some(sql)
        };
        let is_absent = |(object, sql): &(ObjectName, String)| {
            object.kind != "table" && found.get(object) != Some(sql)
        };
        let removed = found.clone().into_iter().filter(is_wrong).map(|(object, _)| object);
        let mut removed: Vec<ObjectName> = removed.collect();
        // A view takes its triggers with it, so that they have to go first.
        removed.sort_by_key(|object| object.kind != "trigger");
        let restored = expected.clone().into_iter().filter(is_absent).collect();
        Ok(Self { removed, restored })
    }

    const fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.restored.is_empty()
    }
}

fn restore_objects(db: &mut Connection) -> Result<SchemaRepair, RepairError> {
    let ObjectChanges { removed, restored } = ObjectChanges::find(db)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for ObjectName { kind, name } in &removed {
        let name = name.replace('"', "\"\"");
        transaction.execute_batch(&format!("DROP {kind} IF EXISTS \"{name}\""))?;
    }
    for (_, sql) in &restored {
        transaction.execute_batch(sql)?;
    }
    transaction.commit()?;
    let is_restored = |object: &ObjectName| restored.iter().any(|(it, _)| it == object);
    let removed = removed.iter().filter(|object| !is_restored(object));
    Ok(SchemaRepair {
        removed: removed.map(|object| format!("{} {}", object.kind, object.name)).collect(),
        restored: restored.iter().map(|(object, _)| object.name.clone()).collect(),
    })
}

/// Computes derived columns again where they are wrong. The trigger that refuses every change is absent inside of this
/// transaction only.
fn mend_columns(
    db: &mut Connection,
    derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
) -> Result<u64, RepairError> {
    const TRIGGER: &str = "events_are_never_changed";
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let expected = schema::expected_objects(schema::version(&transaction)?)?;
    let Some(trigger) = expected.get(&ObjectName::of_trigger(TRIGGER)) else { return Ok(0) };
    transaction.execute_batch(&format!("DROP TRIGGER IF EXISTS {TRIGGER}"))?;
    let mut mended = 0;
    // Events first: a decision takes its columns from its event.
    for of_decisions in [false, true] {
        let mut wrong = Vec::new();
        each_row(&transaction, |seq, row| {
            if row.is_decision() == of_decisions && row.wrong_columns(derive).is_some() {
                wrong.push((seq, row.mended(derive)));
            }
            Ok(())
        })?;
        for (seq, derived) in wrong {
            set_columns(&transaction, seq, &derived)?;
            mended += 1;
        }
    }
    transaction.execute_batch(trigger)?;
    transaction.commit()?;
    Ok(mended)
}

/// Sets the columns that are known.
fn set_columns(db: &Connection, seq: i64, derived: &Derived) -> Result<(), RepairError> {
    if let Some(kind) = derived.kinds.first() {
        db.execute("UPDATE events SET kind = ?2 WHERE seq = ?1", (seq, kind))?;
    }
    if let Column::Known(session) = &derived.session {
        db.execute("UPDATE events SET session = ?2 WHERE seq = ?1", (seq, session))?;
    }
    if let (Column::Known(turn), Column::Known(tool)) = (&derived.turn, &derived.tool) {
        db.execute("UPDATE events SET turn = ?2, tool = ?3 WHERE seq = ?1", (seq, turn, tool))?;
    }
    if let Column::Known(classes) = &derived.tool_classes {
        let class = classes.first().cloned().flatten();
        db.execute("UPDATE events SET tool_class = ?2 WHERE seq = ?1", (seq, class))?;
    }
    Ok(())
}

/// Calls `each` with every row that can be read, and its seq in this file.
fn each_row(
    db: &Connection,
    mut each: impl FnMut(i64, &ReadRow) -> Result<(), RepairError>,
) -> Result<(), RepairError> {
    let (mut from, parts) = (i64::MIN, ReadParts::default());
    let (payloads, columns) = (PayloadReader::new(db, &parts), columns(db)?);
    let mut statement = db.prepare(&format!(
        "SELECT e.seq, e.cause, {columns} FROM events e NOT INDEXED \
         LEFT JOIN events c NOT INDEXED ON c.seq = e.cause WHERE e.seq >= ?1 ORDER BY e.seq LIMIT {PAGE}"
    ))?;
    loop {
        let mut rows = statement.query([from])?;
        let mut count = 0;
        let mut last = from;
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
            count += 1;
            if let Ok(row) = ReadRow::read(row, &payloads) {
                each(last, &row)?;
            }
        }
        match last.checked_add(1) {
            Some(next) if count == PAGE => from = next,
            Some(_) | None => return Ok(()),
        }
    }
}
