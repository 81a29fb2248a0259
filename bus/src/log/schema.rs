//! The schema of the log as numbered migrations. A migration is never edited after its release.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior};

use super::OpenError;
use crate::event::{BusId, Time};

const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001_events.sql"),
    include_str!("schema/0002_archive.sql"),
    include_str!("schema/0003_parts.sql"),
    include_str!("schema/0004_retention.sql"),
    include_str!("schema/0005_redaction.sql"),
    include_str!("schema/0006_identities.sql"),
];

/// Marks the file as ours, in SQLite's header: "hkbs".
const APPLICATION_ID: i64 = 0x686b_6273;

/// The schema version that this program writes.
pub(super) fn current() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The schema version of an open file.
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

/// The column of packed payloads in the table `table`, or what stands for it in a file of an earlier version, which has
/// none.
pub(super) fn packed_column(db: &Connection, table: &str) -> rusqlite::Result<String> {
    Ok(if version(db)? < 3 { "NULL".to_owned() } else { format!("{table}.packed") })
}

/// The column with the digests of removed payloads in the table `table`, or what stands for it in a file of an earlier
/// version.
pub(super) fn digest_column(db: &Connection, table: &str) -> rusqlite::Result<String> {
    Ok(if has_removals(db)? { format!("{table}.digest") } else { "NULL".to_owned() })
}

/// The columns that tell of redacted rows in the table `table`, or what stands for them in a file of an earlier version.
pub(super) fn redaction_columns(db: &Connection, table: &str) -> rusqlite::Result<String> {
    Ok(if version(db)? >= 5 {
        format!("{table}.redacted, {table}.redacted_columns")
    } else {
        "NULL, NULL".to_owned()
    })
}

/// An expression that is not NULL if the payload of a row in the table `table` was removed.
pub(super) fn removed_expression(db: &Connection, table: &str) -> rusqlite::Result<String> {
    let digest = digest_column(db, table)?;
    Ok(if version(db)? >= 5 { format!("CASE WHEN {IS_REMOVED} THEN {digest} END") } else { digest })
}

/// Whether the payload of a row was removed. That of a redacted row is there, and never empty: it holds marks.
pub(super) const IS_REMOVED: &str =
    "(digest IS NOT NULL AND (redacted IS NULL OR (packed IS NULL AND payload = '{}')))";

/// Whether the file is of a version that can hold removed payloads and rows.
pub(super) fn has_removals(db: &Connection) -> rusqlite::Result<bool> {
    Ok(version(db)? >= 4)
}

/// What kind of file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileKind {
    /// Whether it is ours, or empty and may become ours.
    pub(super) is_ours: bool,
    /// Its schema version; 0 if it is empty.
    pub(super) version: i64,
}

/// What kind of file is open.
pub(super) fn file_kind(db: &Connection) -> rusqlite::Result<FileKind> {
    // One statement: between two of them another process could create its schema.
    let sql = "SELECT (SELECT application_id FROM pragma_application_id), \
               (SELECT user_version FROM pragma_user_version), count(*) FROM sqlite_schema";
    db.query_row(sql, [], |row| {
        let (application, version, tables): (i64, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let is_ours = application == APPLICATION_ID || (application == 0 && tables == 0);
        Ok(FileKind { is_ours, version })
    })
}

/// Whether the file holds anything.
pub(super) fn has_tables(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

/// Migrates the file to the current version; a new log gets its bus id.
pub(super) fn migrate(db: &mut Connection, now: Time) -> Result<(), OpenError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?; // another process may have migrated it meanwhile
    if found > current() {
        return Err(OpenError::Newer { found, known: current() });
    }
    for sql in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(sql)?;
    }
    if found == 0 {
        let bus = BusId::mint(now);
        transaction.execute(
            "INSERT INTO bus (id, created) VALUES (?1, ?2)",
            (bus.as_bytes(), now.micros()),
        )?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.pragma_update(None, "user_version", current())?;
    Ok(transaction.commit()?)
}

/// The tables, indexes and triggers of a file, with the statements that create them.
pub(super) type Objects = BTreeMap<ObjectName, String>;

/// What names one of them. A trigger can have the name of an index, so the name alone is not enough.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectName {
    /// `table`, `index`, `trigger` or `view`.
    pub(super) kind: String,
    pub(super) name: String,
}

impl ObjectName {
    pub(super) fn of_trigger(name: &str) -> Self {
        Self { kind: "trigger".to_owned(), name: name.to_owned() }
    }
}

/// The objects of a log with this version.
pub(super) fn expected_objects(version: i64) -> rusqlite::Result<Objects> {
    let db = super::open::in_memory()?;
    for sql in MIGRATIONS.iter().take(usize::try_from(version).unwrap_or(0)) {
        db.execute_batch(sql)?;
    }
    objects(&db)
}

/// The objects of an open file.
pub(super) fn objects(db: &Connection) -> rusqlite::Result<Objects> {
    let query = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL";
    let object = |row: &rusqlite::Row<'_>| {
        Ok((ObjectName { kind: row.get(0)?, name: row.get(1)? }, row.get(2)?))
    };
    db.prepare(query)?.query_map([], object)?.collect()
}
