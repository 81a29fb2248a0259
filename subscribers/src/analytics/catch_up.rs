//! Brings a database up to date with the log of its home, without an observer. One thread reads rows and what they say, the
//! other one counts and writes.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use hookbus::event::{Kind, Seq, Time};
use hookbus::log::{LogPath, LogReader, OpenError, Query, Row};

use super::database::AnalyticsDatabase;
use super::reading::{RowReader, Said};
use super::{AnalyticsError, rebuild};

/// Rows that are read at a time.
const PAGE: usize = 250;

/// Rows and payload bytes of one transaction.
const MOST_ROWS: usize = 10_000;
const MOST_BYTES: usize = 32 << 20;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatchUp {
    /// How many rows were counted.
    pub counted: u64,
    /// How many rows cannot be read, and are not counted.
    pub damaged: u64,
}

/// Counts the rows of the log that the database at `path` does not hold yet. `progress` is told how many of how many
/// rows are done.
pub fn catch_up(
    log: &LogPath,
    path: &Path,
    now: Time,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CatchUp, AnalyticsError> {
    let mut database = AnalyticsDatabase::open(path, now)?;
    let mut reader = match LogReader::open(log) {
        Ok(reader) => reader,
        Err(OpenError::Missing(_)) => return Ok(CatchUp::default()),
        Err(error) => return Err(error.into()),
    };
    if let Some((seq, id)) = database.position_of(reader.bus()?)?
        && reader.seq_of(id)? != Some(seq)
        && !reader.is_removed(seq)?
    {
        tracing::warn!("the log was restored to an older state; the analytics database is rebuilt");
        drop(database);
        return rebuild(log, path, now, progress);
    }
    add_rows(&mut reader, &mut database, progress)
}

/// Counts the rows of an open log.
pub(super) fn add_rows(
    log: &mut LogReader,
    database: &mut AnalyticsDatabase,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CatchUp, AnalyticsError> {
    let mut done = CatchUp::default();
    loop {
        match add_rows_after_position(log, database, &mut done, progress) {
            // The observer, or another command, has rebuilt it: go on from where it is now.
            Err(AnalyticsError::Rebuilt) => {}
            ended => return ended.map(|()| done),
        }
    }
}

fn add_rows_after_position(
    log: &mut LogReader,
    database: &mut AnalyticsDatabase,
    done: &mut CatchUp,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), AnalyticsError> {
    let bus = log.bus()?;
    let total = log.head()?.map_or(0, |(seq, _)| seq.as_i64().unsigned_abs());
    let last = database.position_of(bus)?.map(|(seq, _)| seq);
    let first = last.map_or(0, |seq| seq.as_i64().unsigned_abs());
    // One batch waits while another one is counted, and a third one is being read.
    let (sender, batches) = sync_channel(1);
    thread::scope(|scope| {
        let read = move || read_batches(log, last, &sender);
        let started = thread::Builder::new().name("analytics-reader".to_owned());
        if let Err(error) = started.spawn_scoped(scope, read) {
            return Err(AnalyticsError::Thread(error));
        }
        for batch in batches {
            let Batch { rows, damaged, end } = batch?;
            done.counted += database.add_read(bus, rows)?;
            done.damaged += damaged;
            progress(
                end.as_i64().unsigned_abs().saturating_sub(first),
                total.saturating_sub(first),
            );
        }
        Ok(())
    })
}

/// The rows of one transaction.
struct Batch {
    rows: Vec<(Row, Said)>,
    /// How many between them are damaged.
    damaged: u64,
    /// The seq of the last one.
    end: Seq,
}

/// Reads all rows after `last`, until the other thread wants no more of them.
fn read_batches(
    log: &LogReader,
    mut last: Option<Seq>,
    batches: &SyncSender<Result<Batch, AnalyticsError>>,
) {
    let mut reader = RowReader::default();
    loop {
        let batch = read_batch(log, last, &mut reader).transpose();
        let Some(batch) = batch else { return };
        last = batch.as_ref().map_or(last, |batch| Some(batch.end));
        let is_over = batch.is_err();
        if batches.send(batch).is_err() || is_over {
            return;
        }
    }
}

/// The next rows; none at the end.
fn read_batch(
    log: &LogReader,
    mut last: Option<Seq>,
    reader: &mut RowReader,
) -> Result<Option<Batch>, AnalyticsError> {
    let (mut rows, mut damaged, mut bytes, mut end) = (Vec::new(), 0, 0, None);
    while rows.len() < MOST_ROWS && bytes < MOST_BYTES {
        let page = log.after_with_damage(&Query::default(), last, PAGE)?;
        let is_last = page.len() < PAGE;
        for row in page {
            match row {
                Ok(row) => {
                    end = Some(row.seq);
                    bytes += row.payload.len();
                    let said = reader.read_next(&row);
                    rows.push((without_payload(row), said));
                }
                Err(row) => {
                    end = Some(row.seq);
                    damaged += 1;
                }
            }
        }
        last = end.or(last);
        if is_last {
            break;
        }
    }
    Ok(end.map(|end| Batch { rows, damaged, end }))
}

/// The row without what was read from it. A result may have no call, and is then read as one.
fn without_payload(row: Row) -> Row {
    let is_result =
        [Kind::ToolAfter, Kind::ToolFailed].iter().any(|kind| kind.as_str() == row.kind);
    if is_result { row } else { Row { payload: Vec::new(), context: None, ..row } }
}
