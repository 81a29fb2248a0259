//! Brings a database up to date with the log of its home, without an observer. One thread reads rows, another one what they
//! say, the third one counts and writes: on two cores that is a bit less than half of the time that one thread takes.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};
use std::{io, vec};

use hookbus::event::{Seq, Time};
use hookbus::log::{LogPath, LogReader, OpenError, Query, Row};

use super::database::AnalyticsDatabase;
use super::reading::{RowReader, Said};
use super::{AnalyticsError, rebuild};

/// Rows that are read at a time: few, so that they are still in the cache of a core when the next thread gets them.
const PAGE: usize = 250;

/// Pages that wait between two threads.
const WAITING: usize = 8;

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
    let (to_read, pages) = sync_channel(WAITING);
    let (read, said) = sync_channel(WAITING);
    thread::scope(|scope| {
        start(scope, "analytics-rows", move || read_pages(log, last, &to_read))?;
        start(scope, "analytics-payloads", move || read_payloads(pages, &read))?;
        while let Ok(page) = said.recv() {
            let mut rows = TransactionRows::new(page?, &said);
            done.counted += database.add_read(bus, &mut rows)?;
            done.damaged += rows.damaged;
            let end = rows.end.as_i64().unsigned_abs();
            progress(end.saturating_sub(first), total.saturating_sub(first));
            rows.failed.map_or(Ok(()), Err)?;
        }
        Ok(())
    })
}

fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), AnalyticsError> {
    let started: io::Result<_> =
        thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
    started.map(drop).map_err(AnalyticsError::Thread)
}

/// Rows, or rows with what they say.
struct Page<R> {
    rows: Vec<R>,
    /// How many bytes of payloads they have.
    bytes: usize,
    /// How many between them are damaged.
    damaged: u64,
    /// The seq of the last one.
    end: Seq,
}

/// A page that was read, or why it cannot be.
type Read<R> = Result<Page<R>, AnalyticsError>;

/// Reads all rows after `last`, until the next thread wants no more of them.
fn read_pages(log: &LogReader, mut last: Option<Seq>, pages: &SyncSender<Read<Row>>) {
    while let Some(page) = read_page(log, last).transpose() {
        last = page.as_ref().map_or(last, |page| Some(page.end));
        let is_over = page.is_err();
        if pages.send(page).is_err() || is_over {
            return;
        }
    }
}

/// The next rows; none at the end.
fn read_page(log: &LogReader, last: Option<Seq>) -> Result<Option<Page<Row>>, AnalyticsError> {
    let (mut rows, mut damaged, mut bytes, mut end) = (Vec::with_capacity(PAGE), 0, 0, None);
    for row in log.after_with_damage(&Query::default(), last, PAGE)? {
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
    Ok(end.map(|end| Page { rows, bytes, damaged, end }))
}

/// Reads what the rows say.
fn read_payloads(pages: Receiver<Read<Row>>, said: &SyncSender<Read<(Row, Said)>>) {
    let mut reader = RowReader::default();
    for page in pages {
        let page = page.map(|Page { rows, bytes, damaged, end }| {
            let read = |mut row: Row| {
                let said = reader.read_next(&row);
                // A result may have no call, and is then read as one.
                if !matches!(&said, Said::Event(event) if event.result.is_some()) {
                    (row.payload, row.context) = (Vec::new(), None);
                }
                (row, said)
            };
            Page { rows: rows.into_iter().map(read).collect(), bytes, damaged, end }
        });
        if said.send(page).is_err() {
            return;
        }
    }
}

/// The rows of one transaction, page by page as they are read.
struct TransactionRows<'a> {
    pages: &'a Receiver<Read<(Row, Said)>>,
    page: vec::IntoIter<(Row, Said)>,
    rows: usize,
    bytes: usize,
    damaged: u64,
    /// The seq of the last row.
    end: Seq,
    failed: Option<AnalyticsError>,
}

impl<'a> TransactionRows<'a> {
    fn new(first: Page<(Row, Said)>, pages: &'a Receiver<Read<(Row, Said)>>) -> Self {
        let Page { rows, bytes, damaged, end } = first;
        let count = rows.len();
        Self { pages, page: rows.into_iter(), rows: count, bytes, damaged, end, failed: None }
    }

    /// Takes the next page; says whether there is one.
    fn next_page(&mut self) -> bool {
        if self.rows >= MOST_ROWS || self.bytes >= MOST_BYTES || self.failed.is_some() {
            return false;
        }
        match self.pages.recv() {
            Ok(Ok(Page { rows, bytes, damaged, end })) => {
                self.rows += rows.len();
                self.bytes += bytes;
                self.damaged += damaged;
                self.end = end;
                self.page = rows.into_iter();
                true
            }
            Ok(Err(error)) => {
                self.failed = Some(error);
                false
            }
            // Everything is read.
            Err(_) => false,
        }
    }
}

impl Iterator for TransactionRows<'_> {
    type Item = (Row, Said);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.page.next() {
                return Some(row);
            }
            if !self.next_page() {
                return None;
            }
        }
    }
}
