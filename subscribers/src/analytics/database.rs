//! An analytics database that is open for writing.

use std::borrow::Borrow;
use std::path::{Path, PathBuf};

use hookbus::event::{BusId, EventId, Seq, Time};
use hookbus::log::Row;
use rusqlite::{Connection, TransactionBehavior};

use super::projection::{Added, Projection};
use super::reading::Said;
use super::schema::{self, FileKind};
use super::{AnalyticsError, load, open, write};
use crate::position::StreamMark;

/// How many sessions are kept in memory at most; more are read again when a row needs them.
const MOST_SESSIONS: usize = 20_000;

/// A row of a bus.
#[derive(Debug, Clone, Copy)]
pub struct AnalyticsRow<'a> {
    /// The bus that recorded it.
    pub bus: BusId,
    /// The row.
    pub row: &'a Row,
}

/// How far a database is.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnalyticsPosition {
    /// The last row of each bus that is counted.
    pub(crate) buses: Vec<(BusId, Seq, EventId)>,
    /// The last message of the stream that is counted.
    pub(crate) mark: Option<StreamMark>,
}

/// An analytics database that is open for writing.
#[derive(Debug)]
pub struct AnalyticsDatabase {
    db: Connection,
    path: PathBuf,
    /// The build and the number of its last transaction that `projection` belongs to; none if it has to be read again.
    known: Option<(EventId, i64)>,
    projection: Projection,
}

impl AnalyticsDatabase {
    /// Opens the database at `path`, and creates an empty one if there is none, or one of another version.
    pub fn open(path: &Path, now: Time) -> Result<Self, AnalyticsError> {
        let mut db = open::for_writing(path)?;
        let kind = schema::file_kind(&db).map_err(|error| open::foreign_or(error, path))?;
        match kind {
            FileKind::Current => {}
            FileKind::Empty => schema::create(&mut db, EventId::mint(now))?,
            FileKind::OtherVersion => {
                tracing::info!("the analytics database is of another version; it is built anew");
                schema::create(&mut db, EventId::mint(now))?;
            }
            FileKind::Foreign => return Err(AnalyticsError::Foreign(path.to_owned())),
        }
        let projection = Projection::default();
        Ok(Self { db, path: path.to_owned(), known: None, projection })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything, so that it is built anew.
    pub fn reset(&mut self, now: Time) -> Result<(), AnalyticsError> {
        self.known = None;
        schema::create(&mut self.db, EventId::mint(now))
    }

    /// How far it is. Rows are to be read from here.
    pub(crate) fn position(&mut self) -> Result<AnalyticsPosition, AnalyticsError> {
        let Self { db, known, projection, .. } = self;
        let transaction = db.transaction()?;
        *known = Some(state(&transaction)?);
        *projection = load::projection(&transaction)?;
        let bus =
            |(bus, state): (&BusId, &super::projection::BusState)| (*bus, state.seq, state.row);
        let buses = projection.buses.iter().map(bus).collect();
        Ok(AnalyticsPosition { buses, mark: projection.stream })
    }

    /// The last row of a bus that is counted.
    pub fn position_of(&mut self, bus: BusId) -> Result<Option<(Seq, EventId)>, AnalyticsError> {
        let position = self.position()?;
        let found = position.buses.iter().find(|(known, ..)| *known == bus);
        Ok(found.map(|(_, seq, row)| (*seq, *row)))
    }

    /// Counts rows in one transaction, those of each bus in log order; rows that were counted before are skipped. Returns
    /// how many were new.
    pub fn add<'a>(
        &mut self,
        rows: impl IntoIterator<Item = AnalyticsRow<'a>>,
    ) -> Result<u64, AnalyticsError> {
        self.add_marked(rows, None)
    }

    /// The same for rows that were read from the stream up to `mark`, or from the log without one.
    pub(crate) fn add_marked<'a>(
        &mut self,
        rows: impl IntoIterator<Item = AnalyticsRow<'a>>,
        mark: Option<StreamMark>,
    ) -> Result<u64, AnalyticsError> {
        self.write(rows.into_iter().map(|AnalyticsRow { bus, row }| (bus, row, None)), mark)
    }

    /// The same for rows of one bus that a [`RowReader`](super::reading::RowReader) has read.
    pub(super) fn add_read(
        &mut self,
        bus: BusId,
        rows: impl Iterator<Item = (Row, Said)>,
    ) -> Result<u64, AnalyticsError> {
        self.write(rows.map(|(row, said)| (bus, row, Some(said))), None)
    }

    fn write<R: Borrow<Row>>(
        &mut self,
        rows: impl Iterator<Item = (BusId, R, Option<Said>)>,
        mark: Option<StreamMark>,
    ) -> Result<u64, AnalyticsError> {
        let known = self.known.take();
        let Self { db, projection, .. } = self;
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (build, writes) = state(&transaction)?;
        match known {
            Some((known, _)) if known != build => return Err(AnalyticsError::Rebuilt),
            Some((_, known)) if known == writes => {}
            // Another process has written since, or nothing was read yet.
            Some(_) | None => *projection = load::projection(&transaction)?,
        }
        let mut counted = 0;
        for (bus, row, said) in rows {
            let row = row.borrow();
            let is_other = projection
                .buses
                .get(&bus)
                .is_some_and(|last| last.seq == row.seq && last.row != row.id);
            // A sender of messages can claim any id; only the log of this machine is believed.
            if is_other && mark.is_none() {
                return Err(AnalyticsError::Diverged);
            }
            counted += u64::from(projection.add(&transaction, bus, row, said)? == Added::Counted);
        }
        projection.stream = mark.or(projection.stream);
        write::write(&transaction, projection)?;
        transaction.execute("UPDATE meta SET writes = writes + 1", [])?;
        transaction.commit()?;
        if projection.sessions.len() > MOST_SESSIONS {
            projection.sessions.clear();
        }
        self.known = Some((build, writes + 1));
        Ok(counted)
    }

    /// The connection, for a rebuild.
    pub(super) fn connection(&mut self) -> &mut Connection {
        self.known = None;
        &mut self.db
    }
}

/// The build, and how many transactions it has seen.
fn state(db: &Connection) -> rusqlite::Result<(EventId, i64)> {
    db.prepare_cached("SELECT build, writes FROM meta")?
        .query_row([], |row| Ok((EventId::from_bytes(row.get(0)?), row.get(1)?)))
}
