//! The schema of an analytics database. It is never migrated: a database of another version is built anew from the log,
//! so a change of these files, or of how rows are read, only needs a higher [`VERSION`].

use hookbus::event::EventId;
use rusqlite::{Connection, TransactionBehavior};

use super::AnalyticsError;

/// The version of the tables and of what they are filled with.
pub(super) const VERSION: i64 = 2;

/// Marks the file as ours, in SQLite's header: "hkan".
const APPLICATION_ID: i64 = 0x686b_616e;

const TABLES: [&str; 4] = [
    include_str!("schema/0001_state.sql"),
    include_str!("schema/0002_details.sql"),
    include_str!("schema/0003_figures.sql"),
    include_str!("schema/0004_views.sql"),
];

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Nothing.
    Empty,
    /// An analytics database of this version.
    Current,
    /// An analytics database of an earlier or later version.
    OtherVersion,
    /// Something else.
    Foreign,
}

/// What the open file holds.
pub(super) fn file_kind(db: &Connection) -> rusqlite::Result<FileKind> {
    let sql = "SELECT (SELECT application_id FROM pragma_application_id), \
               (SELECT user_version FROM pragma_user_version), count(*) FROM sqlite_schema";
    db.query_row(sql, [], |row| {
        let (application, version, tables): (i64, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(match (application, version) {
            (0, _) if tables == 0 => FileKind::Empty,
            (APPLICATION_ID, VERSION) => FileKind::Current,
            (APPLICATION_ID, _) => FileKind::OtherVersion,
            (_, _) => FileKind::Foreign,
        })
    })
}

/// Removes what is there and creates empty tables, in one transaction. `build` is the id of this build.
pub(super) fn create(db: &mut Connection, build: EventId) -> Result<(), AnalyticsError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let objects: Vec<(String, String)> = transaction
        .prepare(
            "SELECT type, name FROM sqlite_schema WHERE type IN ('view', 'table') \
             AND name NOT LIKE 'sqlite_%' ORDER BY type DESC",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (kind, name) in objects {
        let name = name.replace('"', "\"\"");
        transaction.execute_batch(&format!("DROP {kind} \"{name}\""))?;
    }
    for tables in TABLES {
        transaction.execute_batch(tables)?;
    }
    transaction
        .execute("INSERT INTO meta (only, build, writes) VALUES (1, ?1, 0)", [build.as_bytes()])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}
