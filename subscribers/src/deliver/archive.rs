//! Appends events to an archive: a log in another directory with the rows of many buses.

use std::path::{Path, PathBuf};

use hookbus::event::Time;
use hookbus::log::{Archive, ArchiveError, LogPath, Received};

use crate::source::SourceEvent;

/// An archive that is opened with the first event.
#[derive(Debug)]
pub(super) struct ArchiveWriter {
    folder: PathBuf,
    open: Option<Archive>,
}

impl ArchiveWriter {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None }
    }

    /// Appends the events, all or none; those that it has already are skipped.
    pub(super) fn append(&mut self, events: &[SourceEvent], now: Time) -> Result<(), ArchiveError> {
        let mut archive = match self.open.take() {
            Some(archive) => archive,
            None => Archive::open(&LogPath::in_home(&self.folder), now)?,
        };
        let row =
            |event: &SourceEvent| Received { bus: event.bus, row: event.row.clone(), stored: None };
        let rows: Vec<Received> = events.iter().map(row).collect();
        // After an error the file is closed, and opened again for the next event.
        archive.append(&rows)?;
        self.open = Some(archive);
        Ok(())
    }
}
