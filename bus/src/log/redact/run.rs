//! Redacts the rows of a log: [`redact_rows`].
//!
//! It works in batches, each a transaction under the lock of writers, so that agents wait for one batch at most, and at the
//! end while the file is written anew. It can be killed at any moment and started again: a batch and its record are
//! committed together, and what is left to do for the file is noted before the first batch.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params_from_iter};

use super::batch::redact_batch;
use super::clean_row::{COLUMNS, CleanRow, Found};
use super::error::RedactError;
use super::record::{Record, RecordedRedactions};
use crate::event::{Clock, Seq};
use crate::log::lock::WriteLock;
use crate::log::open::{self, Durability, WritableLog, WriterRole};
use crate::log::payload::{PayloadReader, ReadParts};
use crate::log::prune::{CheckedRow, HeldSessions, Marks, Sweep};
use crate::log::read::condition;
use crate::log::space::{Keeping, Rewrite, log_size};
use crate::log::{LogPath, Query, schema};

/// How many rows are looked at in one query.
const PAGE: usize = 500;

/// The limits of one batch: agents wait for it.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 16 << 20;

/// What the user wants to have redacted.
#[derive(Debug, Clone, Default)]
pub struct RedactRequest {
    /// Only the rows of this session (a complete id).
    pub session: Option<String>,
    /// Who wants it: `user@host`.
    pub by: String,
}

/// What was redacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactedRows {
    /// How many rows.
    pub rows: u64,
    /// How many secrets were in them.
    pub secrets: u64,
    /// Rows that stay because they were changed after they were recorded, or cannot be read.
    pub damaged: u64,
    /// Sessions that hold secrets, and stay because they are held.
    pub held: Vec<String>,
    /// The size of the log before, with its write-ahead log.
    pub bytes_before: u64,
    /// Its size afterwards.
    pub bytes_after: u64,
}

/// Redacts what `redact` finds in the rows that `request` names, and writes the file anew, so that it holds nothing of it
/// any more. `redact` returns none for bytes without secrets. Calls `progress` with the seq that it has come to. Your own
/// policy (`hooks.loaded`), the records of removals and redactions, and signed checkpoints stay as they are.
pub fn redact_rows(
    log: &LogPath,
    request: &RedactRequest,
    redact: &dyn Fn(&[u8]) -> Option<Found>,
    clock: &dyn Clock,
    mut progress: impl FnMut(i64),
) -> Result<RedactedRows, RedactError> {
    // A log that does not exist is not created.
    drop(open::for_reading(log)?);
    let bytes_before = log_size(log);
    // Before it is opened: another process may put a copy in its place.
    let mut keeping = Keeping::begin(log)?;
    let mut opened = open::for_writing(log, Durability::PowerCut, WriterRole::Daemon, clock.now())?;
    let WritableLog { db, lock, .. } = &mut opened;
    if schema::is_archive(db)? {
        return Err(RedactError::IsArchive);
    }
    // What was replaced must not be found in unused places of the file.
    db.pragma_update(None, "secure_delete", true)?;
    let mut held = HeldSessions::read(db)?;
    let mut redactions = RecordedRedactions::read(db)?;
    let mut done = RedactedRows { bytes_before, ..RedactedRows::default() };
    let (mut staying, mut after) = (BTreeSet::new(), None);
    loop {
        let page = read_page(db, request, after, redact)?;
        let Some(last) = page.last else { break };
        after = Some(Seq::from_i64(last));
        let mut rows = Vec::new();
        let parts = ReadParts::default();
        for row in page.rows {
            let payloads = PayloadReader::new(db, &parts);
            match CheckedRow::read(db, &payloads, &redactions, row.seq)? {
                Some(was) => rows.push((was, row)),
                None => done.damaged += 1,
            }
        }
        done.damaged += page.unreadable;
        if !rows.is_empty() {
            // Noted before: a run that is killed leaves it to the next one.
            keeping.needs_rewrite(db)?;
            let guard = lock.acquire();
            let who = (request.by.as_str(), clock.now());
            let batch = redact_batch(db, rows, &mut held, &mut redactions, who)?;
            drop(guard);
            done.rows += batch.rows;
            done.secrets += batch.secrets;
            staying.extend(batch.held);
        }
        progress(last);
    }
    sweep(db, lock, &mut keeping, &request.by, clock)?;
    let rewrite = keeping.give_back_space(db, lock).map_err(RedactError::Space)?;
    if rewrite == Rewrite::WalIsBusy {
        return Err(RedactError::Busy);
    }
    if !opened.close_at_its_path() {
        return Err(RedactError::Replaced);
    }
    done.held = staying.into_iter().collect();
    done.bytes_after = log_size(log);
    Ok(done)
}

/// Some rows that hold secrets.
struct Page {
    rows: Vec<CleanRow>,
    /// Rows that cannot be read.
    unreadable: u64,
    /// The last row that was looked at; none if there are no more.
    last: Option<i64>,
}

fn read_page(
    db: &Connection,
    request: &RedactRequest,
    after: Option<Seq>,
    redact: &dyn Fn(&[u8]) -> Option<Found>,
) -> Result<Page, RedactError> {
    let query = Query { session: request.session.clone(), ..Query::default() };
    let (condition, values) = condition(&query, &(1..=i64::MAX), after);
    let sql = format!(
        "SELECT {COLUMNS} FROM events WHERE {condition} \
         AND NOT (agent = 'hookbus' AND kind IN ('hooks.loaded', 'log.pruned', 'log.redacted', 'log.checkpoint')) \
         ORDER BY seq LIMIT {PAGE}"
    );
    let parts = ReadParts::default();
    let payloads = PayloadReader::new(db, &parts);
    let mut statement = db.prepare_cached(&sql)?;
    let mut found = statement.query(params_from_iter(values))?;
    let mut page = Page { rows: Vec::new(), unreadable: 0, last: None };
    let mut bytes = 0;
    let mut events = BTreeMap::new();
    while let Some(row) = found.next()? {
        page.last = Some(row.get(0)?);
        let event = row.get::<_, Option<i64>>(5)?.and_then(|cause| events.get(&cause));
        match CleanRow::of_columns(row, &payloads, redact, event) {
            Ok(Some(row)) => {
                bytes += row.payload.as_ref().map_or(0, Vec::len);
                if let Some(elsewhere) = &row.elsewhere {
                    events.insert(row.seq, elsewhere.clone());
                }
                page.rows.push(row);
            }
            Ok(None) => {}
            Err(
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..),
            ) => page.unreadable += 1,
            Err(error) => return Err(error.into()),
        }
        if page.rows.len() >= BATCH_ROWS || bytes > BATCH_BYTES {
            break;
        }
    }
    let decisions = decisions_behind(db, &payloads, &page, redact)?;
    page.rows.extend(decisions);
    Ok(page)
}

/// The decisions about events of the page that come behind it. They are changed with their events: what the secrets are is only
/// known as long as the events hold them.
fn decisions_behind(
    db: &Connection,
    payloads: &PayloadReader<'_>,
    page: &Page,
    redact: &dyn Fn(&[u8]) -> Option<Found>,
) -> Result<Vec<CleanRow>, RedactError> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE id = ?1 AND seq > ?2");
    let mut statement = db.prepare_cached(&sql)?;
    let mut decisions = Vec::new();
    for event in &page.rows {
        let Some(elsewhere) = &event.elsewhere else { continue };
        let mut found = statement.query((event.id.of_decision().as_bytes(), page.last))?;
        if let Some(row) = found.next()? {
            // One that cannot be read is counted when its turn comes.
            let clean = CleanRow::of_columns(row, payloads, redact, Some(elsewhere));
            decisions.extend(clean.ok().flatten());
        }
    }
    Ok(decisions)
}

/// Deletes the parts that no row needs any more, also those that others are compressed with.
fn sweep(
    db: &mut Connection,
    lock: &WriteLock,
    keeping: &mut Keeping,
    by: &str,
    clock: &dyn Clock,
) -> Result<(), RedactError> {
    let mut sweep = Sweep::begin(db, Marks::without_bases())?;
    while let Some(unneeded) = sweep.next(db)? {
        keeping.needs_rewrite(db)?;
        let guard = lock.acquire();
        let record =
            |parts, bytes| Record { parts, bytes, ..Record::default() }.to_draft(by, clock.now());
        sweep.delete(db, unneeded, record)?;
        drop(guard);
    }
    Ok(())
}
