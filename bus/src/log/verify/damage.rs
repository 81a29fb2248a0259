//! What SQLite itself finds wrong with the file: damaged pages, indexes that do not agree with their table, and a
//! schema that is not that of a log.

use std::collections::HashMap;

use rusqlite::{Connection, ErrorCode};

use super::flaw::{Flaw, FlawKind, MAX_LISTED};
use crate::log::schema::ObjectName;
use crate::log::{ReadError, schema};

/// What `ANALYZE` adds. It holds numbers for the query planner, and no program but SQLite can create it.
const STATISTICS: &str = "CREATE TABLE sqlite_stat1(tbl,idx,stat)";

/// What to do about what cannot be computed again.
const RESTORE: &str = "restore log.db from a backup or an archive, or move it away and keep it: a new log begins with the next event";

/// How many KiB of pages SQLite may keep in memory while it looks up every row in every index.
const CACHE_KIB: i64 = 128 << 10;

/// Checks all pages, all indexes and the schema.
pub(super) fn find(db: &Connection) -> Result<Vec<Flaw>, ReadError> {
    db.pragma_update(None, "cache_size", -CACHE_KIB)?;
    let mut flaws: Vec<Flaw> = integrity(db)?.into_iter().map(|line| classify(db, &line)).collect();
    flaws.extend(find_in_schema(db)?);
    Ok(flaws)
}

/// Checks the schema only.
pub(super) fn find_in_schema(db: &Connection) -> Result<Vec<Flaw>, ReadError> {
    let mut flaws = schema_differences(db)?;
    if !lacks_table(db)? && !has_bus(db)? {
        let what = "the table `bus` does not hold exactly one id, so that the rows belong to no bus; restore a copy of the log";
        flaws.push(Flaw::of_file(FlawKind::Schema, what));
    }
    Ok(flaws)
}

/// Whether a table of a log is missing, so that its rows cannot be read.
pub(super) fn lacks_table(db: &Connection) -> Result<bool, ReadError> {
    let found = schema::objects(db)?;
    let expected = schema::expected_objects(schema::version(db)?)?;
    Ok(expected.keys().any(|object| object.kind == "table" && !found.contains_key(object)))
}

/// Whether the log has the one id of its bus, which the hash chain begins with.
pub(super) fn has_bus(db: &Connection) -> Result<bool, ReadError> {
    let sql = "SELECT count(*) = 1 AND min(typeof(id) = 'blob' AND length(id) = 16) FROM bus";
    match db.query_row(sql, [], |row| row.get::<_, Option<bool>>(0)) {
        Ok(found) => Ok(found.unwrap_or(false)),
        // The page is damaged, which is told.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The lines of SQLite's own check; none if all is well.
fn integrity(db: &Connection) -> Result<Vec<String>, ReadError> {
    let mut statement = db.prepare(&format!("PRAGMA integrity_check({MAX_LISTED})"))?;
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    loop {
        match rows.next() {
            Ok(Some(row)) => lines.extend(row.get::<_, String>(0)?.lines().map(str::to_owned)),
            Ok(None) => break,
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                lines.push(error.to_string());
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    lines.retain(|line| line != "ok" && !line.starts_with("*** in database"));
    Ok(lines)
}

/// Whether a line is about an index, which can be computed again, or about anything else.
fn classify(db: &Connection, line: &str) -> Flaw {
    let names_index = index_names(db).iter().any(|name| {
        line.ends_with(&format!("index {name}")) || line.ends_with(&format!("INDEX {name}"))
    });
    // "Tree 5 page 7 cell 3: …": the first number is the root page of a table or an index.
    let root = line.strip_prefix("Tree ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    let is_index_tree = root.is_some_and(|root: i64| index_roots(db).contains_key(&root));
    // SQLite gives up without saying where: if all tables can be read, it is an index.
    let is_unknown = root.is_none() && line.contains("malformed");
    if names_index || is_index_tree || (is_unknown && tables_are_readable(db)) {
        let what = format!("{line}; `hookbus verify --repair` builds the index again");
        Flaw::of_file(FlawKind::Index, what)
    } else {
        Flaw::of_file(FlawKind::Page, line)
    }
}

fn tables_are_readable(db: &Connection) -> bool {
    let read = |table: &str| {
        let sql = format!("SELECT * FROM {table} NOT INDEXED");
        let mut statement = db.prepare(&sql)?;
        let last = statement.column_count().saturating_sub(1);
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            row.get_ref(last)?; // reads all pages of the row
        }
        Ok::<_, rusqlite::Error>(())
    };
    let tables = ["events", "origins", "bus"].iter();
    // Logs of the first version have no origins.
    let has_origins = schema::version(db).is_ok_and(|version| version >= 2);
    tables.filter(|table| has_origins || **table != "origins").all(|table| read(table).is_ok())
}

fn index_roots(db: &Connection) -> HashMap<i64, String> {
    let query = "SELECT rootpage, name FROM sqlite_schema WHERE type = 'index'";
    let read = || -> rusqlite::Result<HashMap<i64, String>> {
        db.prepare(query)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    read().unwrap_or_default()
}

fn index_names(db: &Connection) -> Vec<String> {
    index_roots(db).into_values().collect()
}

/// Tables, indexes and triggers that are not those of a log: without its triggers a log can be changed by accident,
/// and another trigger can change what is written.
fn schema_differences(db: &Connection) -> Result<Vec<Flaw>, ReadError> {
    let found = schema::objects(db)?;
    let expected = schema::expected_objects(schema::version(db)?)?;
    let mut flaws = Vec::new();
    for (object, sql) in &expected {
        let ObjectName { kind, name } = object;
        let what = match (found.get(object), kind == "table") {
            (None, false) => {
                format!("the {kind} {name} is missing; `hookbus verify --repair` restores it")
            }
            (None, true) => format!("the table {name} is missing, with what was in it; {RESTORE}"),
            (Some(other), _) if other == sql => continue,
            (Some(other), false) => format!(
                "the {kind} {name} is not the one that hookbus creates: {other}; \
                 `hookbus verify --repair` restores it"
            ),
            (Some(other), true) => {
                format!("the table {name} is not the one that hookbus creates: {other}; {RESTORE}")
            }
        };
        flaws.push(Flaw::of_file(FlawKind::Schema, what));
    }
    let is_foreign =
        |object: &ObjectName, sql: &str| !expected.contains_key(object) && sql != STATISTICS;
    for (object, sql) in found.iter().filter(|(object, sql)| is_foreign(object, sql)) {
        let ObjectName { kind, name } = object;
        let remedy = if kind == "table" {
            "drop it with another program, or leave it: `--repair` removes no data"
        } else {
            "`hookbus verify --repair` removes it"
        };
        let what = format!("the {kind} {name} does not belong to a log: {sql}; {remedy}");
        flaws.push(Flaw::of_file(FlawKind::Schema, what));
    }
    Ok(flaws)
}
