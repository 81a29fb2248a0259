//! Prunes a log: [`plan_prune`] says what would go, [`prune`] removes it.
//!
//! It works in batches, each a transaction under the lock of writers, so that agents wait for one batch at most. It can be
//! killed at any moment and started again: a batch and its record are committed together.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension};

use super::checked_row::CheckedRow;
use super::error::PruneError;
use super::hold::HeldSessions;
use super::limit::Sizes;
use super::marks::Marks;
use super::record::Removal;
use super::remove::remove_batch;
use super::selection::{OtherRun, PruneRequest, Selected, decision_about};
use super::sweep::Sweep;
use crate::event::{Clock, EventId};
use crate::log::lock::WriteLock;
use crate::log::open::{self, Durability, WritableLog, WriterRole};
use crate::log::payload::{PayloadReader, ReadParts};
use crate::log::redact::RecordedRedactions;
use crate::log::space::{Keeping, Rewrite, log_size};
use crate::log::{LogPath, schema};

/// The limits of one batch: agents wait for it.
const BATCH_ROWS: usize = 2000;
const BATCH_BYTES: u64 = 16 << 20;

/// About what a row takes besides its payload, with its entries in the indexes.
const ROW_BYTES: u64 = 250;

/// What a prune would remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// How many events.
    pub events: u64,
    /// How many decisions about them.
    pub decisions: u64,
    /// How many sessions they belong to.
    pub sessions: u64,
    /// About how many bytes are given back.
    pub bytes: u64,
    /// Sessions that the selection names, and that stay because they are held.
    pub held: Vec<String>,
    /// The session that was active last, which stays because it was not named.
    pub latest: Option<String>,
}

/// What a prune removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many payloads.
    pub payloads: u64,
    /// How many rows.
    pub rows: u64,
    /// Events that stay because they were changed after they were recorded, or cannot be read.
    pub damaged: u64,
    /// The size of the log before, with its write-ahead log.
    pub bytes_before: u64,
    /// Its size afterwards.
    pub bytes_after: u64,
    /// Sessions that the selection names, and that stay because they are held.
    pub held: Vec<String>,
    /// The session that was active last, which stays because it was not named.
    pub latest: Option<String>,
}

/// Finds what [`prune`] would remove. Writes nothing.
pub fn plan_prune(log: &LogPath, request: &PruneRequest) -> Result<PrunePlan, PruneError> {
    let db = open::for_reading(log)?;
    if !schema::has_removals(&db)? {
        return Err(PruneError::OldSchema);
    }
    let held = HeldSessions::read(&db)?;
    let Selected { events, held, latest } = select(&db, request, &held)?;
    let mut plan = PrunePlan {
        events: events.len(),
        bytes: Sizes::measure(&db, &events, request.strength)?.given_back(),
        held: held.into_iter().collect(),
        latest,
        ..PrunePlan::default()
    };
    let mut sessions: BTreeSet<String> = BTreeSet::new();
    let mut event = db.prepare("SELECT id, session FROM events WHERE seq = ?1")?;
    for seq in events.iter() {
        let event = event.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((id, session)) = event else { continue };
        plan.decisions += u64::from(decision_about(&db, EventId::from_bytes(id))?.is_some());
        sessions.insert(session);
    }
    plan.sessions = sessions.len() as u64;
    Ok(plan)
}

/// Whether [`prune`] would find any event, or anything that a run which was killed has left behind. Costs less than [`plan_prune`], for those who ask every hour.
pub fn selects_any(log: &LogPath, request: &PruneRequest) -> Result<bool, PruneError> {
    let db = open::for_reading(log)?;
    if !schema::has_removals(&db)? {
        return Ok(false);
    }
    let held = HeldSessions::read(&db)?;
    Ok(!select(&db, request, &held)?.events.is_empty() || Keeping::is_sweep_due(log))
}

fn select(
    db: &Connection,
    request: &PruneRequest,
    held: &HeldSessions,
) -> Result<Selected, PruneError> {
    if !request.is_restricted() {
        return Err(PruneError::Everything);
    }
    if schema::is_archive(db)? {
        return Err(PruneError::IsArchive);
    }
    if let Some(most) = request.max_bytes.filter(|most| used_bytes(db).is_ok_and(|it| it <= *most))
    {
        tracing::debug!(most, "the log is not larger than that");
        return Ok(Selected::default());
    }
    let mut selected = Selected::find(db, request, held)?;
    if let Some(most) = request.max_bytes {
        let sizes = Sizes::measure(db, &selected.events, request.strength)?;
        selected.events = sizes.oldest_over(db, &selected.events, most)?;
    }
    Ok(selected)
}

/// The bytes of the pages that are used.
fn used_bytes(db: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma: &str| -> rusqlite::Result<u64> {
        db.query_row(pragma, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let pages = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
    Ok(pages.saturating_mul(number("PRAGMA page_size")?))
}

/// Removes what `request` names, and gives the space back to the disk. Calls `progress` with the number of events that
/// are done, and of all.
pub fn prune(
    log: &LogPath,
    request: &PruneRequest,
    clock: &dyn Clock,
    mut progress: impl FnMut(u64, u64),
) -> Result<Pruned, PruneError> {
    // A log that does not exist is not created.
    drop(open::for_reading(log)?);
    let bytes_before = log_size(log);
    // Before it is opened: another process may put a copy in its place.
    let mut keeping = match request.other_run {
        OtherRun::WaitFor => Keeping::begin(log)?,
        OtherRun::GiveUp => Keeping::try_begin(log)?.ok_or(PruneError::OtherRun)?,
    };
    let mut opened = open::for_writing(log, Durability::PowerCut, WriterRole::Daemon, clock.now())?;
    let WritableLog { db, lock, .. } = &mut opened;
    // What was removed must not be found in unused pages of the file.
    db.pragma_update(None, "secure_delete", true)?;
    let mut held = HeldSessions::read(db)?;
    let redactions = RecordedRedactions::read(db)?;
    let Selected { events, held: mut staying, latest } = select(db, request, &held)?;
    let (mut pruned, parts) =
        (Pruned { bytes_before, latest, ..Pruned::default() }, ReadParts::default());
    let (mut seqs, mut done, total) = (events.iter().peekable(), 0, events.len());
    while seqs.peek().is_some() {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some(seq) = seqs.next() else { break };
            done += 1;
            match CheckedRow::read(db, &PayloadReader::new(db, &parts), &redactions, seq)? {
                Some(row) => {
                    bytes += row.bytes;
                    batch.push(row);
                }
                None => pruned.damaged += 1,
            }
        }
        keeping.set_sweep_due(true);
        let guard = lock.acquire();
        let removed = remove_batch(db, batch, (&mut held, &redactions), request, clock.now())?;
        drop(guard);
        keeping.add_removed(removed.bytes + removed.rows.saturating_mul(ROW_BYTES));
        pruned.payloads += removed.payloads;
        pruned.rows += removed.rows;
        pruned.damaged += removed.damaged;
        staying.extend(removed.held);
        progress(done, total);
    }
    sweep(db, lock, &mut keeping, request, clock)?;
    keeping.set_sweep_due(false);
    // A reader may keep the write-ahead log from being emptied; the next checkpoint does it then.
    let (Rewrite::Done | Rewrite::WalIsBusy) =
        keeping.give_back_space(db, lock).map_err(PruneError::Space)?;
    if !opened.close_at_its_path() {
        return Err(PruneError::Replaced);
    }
    pruned.held = staying.into_iter().collect();
    pruned.bytes_after = log_size(log);
    Ok(pruned)
}

/// Deletes the parts that no row needs any more, also those that a run before this one left behind.
fn sweep(
    db: &mut Connection,
    lock: &WriteLock,
    keeping: &mut Keeping,
    request: &PruneRequest,
    clock: &dyn Clock,
) -> Result<(), PruneError> {
    let mut sweep = Sweep::begin(db, Marks::default())?;
    while let Some(unneeded) = sweep.next(db)? {
        let guard = lock.acquire();
        let record = |parts, bytes| {
            let removal = Removal { parts, bytes, ..Removal::default() };
            removal.to_draft(request, clock.now())
        };
        let bytes = sweep.delete(db, unneeded, record)?;
        drop(guard);
        keeping.add_removed(bytes);
    }
    Ok(())
}
