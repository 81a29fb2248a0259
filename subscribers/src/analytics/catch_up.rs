//! Brings a database up to date with the log of its home, without an observer.

use std::path::Path;

use hookbus::event::{BusId, Seq, Time};
use hookbus::log::{LogPath, LogReader, OpenError, Query, Row};

use super::database::{AnalyticsDatabase, AnalyticsRow};
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
    let log_reader = match LogReader::open(log) {
        Ok(log) => log,
        Err(OpenError::Missing(_)) => return Ok(CatchUp::default()),
        Err(error) => return Err(error.into()),
    };
    let bus = log_reader.bus()?;
    if let Some((seq, id)) = database.position_of(bus)?
        && log_reader.seq_of(id)? != Some(seq)
        && !log_reader.is_removed(seq)?
    {
        tracing::warn!("the log was restored to an older state; the analytics database is rebuilt");
        drop(database);
        return rebuild(log, path, now, progress);
    }
    add_rows(&log_reader, bus, &mut database, progress)
}

/// Counts the rows of an open log.
pub(super) fn add_rows(
    log: &LogReader,
    bus: BusId,
    database: &mut AnalyticsDatabase,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CatchUp, AnalyticsError> {
    let total = log.head()?.map_or(0, |(seq, _)| seq.as_i64().unsigned_abs());
    let mut done = CatchUp::default();
    let mut last = database.position_of(bus)?.map(|(seq, _)| seq);
    let first = last.map_or(0, |seq| seq.as_i64().unsigned_abs());
    loop {
        let (rows, damaged, end) = next_rows(log, last)?;
        let Some(end) = end else { return Ok(done) };
        match database.add(rows.iter().map(|row| AnalyticsRow { bus, row })) {
            Ok(counted) => done.counted += counted,
            // The observer, or another command, has rebuilt it: go on from where it is now.
            Err(AnalyticsError::Rebuilt) => {
                last = database.position_of(bus)?.map(|(seq, _)| seq);
                continue;
            }
            Err(error) => return Err(error),
        }
        done.damaged += damaged;
        last = Some(end);
        progress(end.as_i64().unsigned_abs().saturating_sub(first), total.saturating_sub(first));
    }
}

/// The rows of one transaction, how many between them are damaged, and the seq of the last one; none at the end.
fn next_rows(
    log: &LogReader,
    mut last: Option<Seq>,
) -> Result<(Vec<Row>, u64, Option<Seq>), AnalyticsError> {
    let (mut rows, mut damaged, mut bytes, mut end) = (Vec::new(), 0, 0, None);
    while rows.len() < MOST_ROWS && bytes < MOST_BYTES {
        let page = log.after_with_damage(&Query::default(), last, PAGE)?;
        let is_last = page.len() < PAGE;
        for row in page {
            match row {
                Ok(row) => {
                    end = Some(row.seq);
                    bytes += row.payload.len();
                    rows.push(row);
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
    Ok((rows, damaged, end))
}
