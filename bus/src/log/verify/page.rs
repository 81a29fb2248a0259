//! Reads the rows of one bus page by page, in the order of the chain, and checks each row as far as that needs no other
//! pages. A page is one query: a long read transaction would keep the writer from checkpointing.

use rusqlite::{ErrorCode, OptionalExtension};

use super::row::{ReadRow, columns};
use super::walked_row::WalkedRow;
use crate::event::{BusId, Derived, DerivedFrom};
use crate::log::{LogReader, ReadError};

/// How many rows are in a page.
pub(super) const PAGE: usize = 1000;

/// How many rows of a page come before its last one.
const BEFORE_LAST: i64 = 999;

/// Computes the columns that follow from the rest of a row, on any thread.
pub(super) type Derive<'a> = dyn Fn(&DerivedFrom<'_>) -> Derived + Sync + 'a;

/// The places of the rows of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRange {
    pub(super) from: i64,
    /// The last place; none for the end of the log, where rows may be added meanwhile.
    pub(super) to: Option<i64>,
}

impl PageRange {
    /// The page that begins at `from`.
    pub(super) fn find(log: &LogReader, bus: BusId, from: i64) -> Result<Self, ReadError> {
        let sql = if log.is_archive() {
            "SELECT bus_seq FROM origins WHERE bus = ?1 AND bus_seq >= ?2 ORDER BY bus_seq LIMIT 1 OFFSET ?3"
        } else {
            // By the rowid, not by an index, which may be damaged.
            "SELECT seq FROM events NOT INDEXED WHERE ?1 IS NOT NULL AND seq >= ?2 ORDER BY seq LIMIT 1 OFFSET ?3"
        };
        let mut statement = log.db.prepare_cached(sql)?;
        match statement.query_row((bus.as_bytes(), from, BEFORE_LAST), |row| row.get(0)).optional()
        {
            Ok(to) => Ok(Self { from, to }),
            // Reading the rows finds out how far it goes.
            Err(error) if is_damage(&error) => Ok(Self { from, to: None }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Some rows in the order of the chain, each with its place in it.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) rows: Vec<(i64, rusqlite::Result<WalkedRow>)>,
    /// Why there are no more.
    pub(super) damage: Option<rusqlite::Error>,
}

impl Page {
    /// Reads and checks the rows of a page.
    pub(super) fn read(
        log: &LogReader,
        bus: BusId,
        range: PageRange,
        derive: &Derive<'_>,
    ) -> Result<Self, ReadError> {
        let columns = columns(&log.db)?;
        // By the rowid, not by an index, which may be damaged.
        let sql = if log.is_archive() {
            format!(
                "SELECT o.bus_seq, o.bus_cause, {columns} FROM origins o JOIN events e ON e.seq = o.seq \
                 LEFT JOIN events c ON c.seq = e.cause \
                 WHERE o.bus = ?1 AND o.bus_seq BETWEEN ?2 AND ?3 ORDER BY o.bus_seq LIMIT {PAGE}"
            )
        } else {
            format!(
                "SELECT e.seq, e.cause, {columns} FROM events e NOT INDEXED \
                 LEFT JOIN events c NOT INDEXED ON c.seq = e.cause \
                 WHERE ?1 IS NOT NULL AND e.seq BETWEEN ?2 AND ?3 ORDER BY e.seq LIMIT {PAGE}"
            )
        };
        let mut statement = log.db.prepare_cached(&sql)?;
        let to = range.to.unwrap_or(i64::MAX);
        let mut rows = statement.query((bus.as_bytes(), range.from, to))?;
        let mut page = Self { rows: Vec::with_capacity(PAGE), damage: None };
        let payloads = log.payloads();
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let seq = row.get(0)?;
                    let before = page.rows.last().and_then(|(_, before)| before.as_ref().ok());
                    let checked = ReadRow::read(row, &payloads)
                        .map(|row| WalkedRow::of(row, before, log.is_archive(), derive));
                    page.rows.push((seq, checked));
                }
                Ok(None) => return Ok(page),
                Err(error) if is_damage(&error) => {
                    page.damage = Some(error);
                    return Ok(page);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}
