//! Counts events in an analytics database. The database itself says how far it is, so its observer reads on from there.

use std::path::{Path, PathBuf};

use hookbus::event::Time;

use crate::analytics::{AnalyticsDatabase, AnalyticsError, AnalyticsRow};
use crate::position::ObserverPosition;
use crate::source::SourceEvent;

/// A database that is opened when it is needed.
#[derive(Debug)]
pub(super) struct AnalyticsWriter {
    path: PathBuf,
    open: Option<Box<AnalyticsDatabase>>,
}

impl AnalyticsWriter {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: None }
    }

    /// Opens the database if it is not open.
    pub(super) fn open(&mut self, now: Time) -> Result<&mut AnalyticsDatabase, AnalyticsError> {
        let database = match self.open.take() {
            Some(database) => database,
            None => Box::new(AnalyticsDatabase::open(&self.path, now)?),
        };
        Ok(self.open.insert(database))
    }

    /// Where to read on: after the last events that are counted.
    pub(super) fn position(&mut self, now: Time) -> Result<ObserverPosition, AnalyticsError> {
        // Opened again, so that a file that was removed or replaced meanwhile is noticed.
        self.open = None;
        let counted = self.open(now)?.position()?;
        let mut position = ObserverPosition::start();
        for (bus, seq, id) in counted.buses {
            position.set(bus, seq, Some(id));
        }
        position.move_mark(counted.mark);
        Ok(position)
    }

    /// Counts the events, all or none; those that are counted already are skipped.
    pub(super) fn add(&mut self, events: &[SourceEvent], now: Time) -> Result<(), AnalyticsError> {
        let database = self.open(now)?;
        let rows = events.iter().map(|event| AnalyticsRow { bus: event.bus, row: &event.row });
        let mark = events.last().and_then(|event| event.mark);
        match database.add_marked(rows, mark) {
            Ok(_) => Ok(()),
            Err(AnalyticsError::Diverged) => {
                tracing::warn!("{}", AnalyticsError::Diverged);
                database.reset(now)?;
                Err(AnalyticsError::Rebuilt)
            }
            Err(error) => {
                // Closed, and opened again for the next event.
                self.open = None;
                Err(error)
            }
        }
    }
}
