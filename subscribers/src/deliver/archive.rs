//! Keeping events in a log elsewhere, put together from many buses.

use std::path::{Path, PathBuf};

use hookbus::envelope::Travelled;
use hookbus::event::Time;
use hookbus::log::{Archive, LogPath};

use crate::source::Arrived;

/// An archive that is opened with the first event.
#[derive(Debug)]
pub(super) struct Keeper {
    folder: PathBuf,
    open: Option<Archive>,
}

impl Keeper {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None }
    }

    pub(super) fn keep(&mut self, arrived: &[Arrived], now: Time) -> Result<(), String> {
        let mut archive = match self.open.take() {
            Some(archive) => archive,
            None => {
                let log = LogPath::in_home(&self.folder);
                Archive::open(&log, now).map_err(|error| error.to_string())?
            }
        };
        let rows: Vec<Travelled> = arrived
            .iter()
            .map(|Arrived { bus, row, .. }| Travelled { bus: *bus, row: row.clone(), stored: None })
            .collect();
        // After an error nothing is known about the file any more: it is opened anew.
        archive.take_in(&rows).map_err(|error| error.to_string())?;
        self.open = Some(archive);
        Ok(())
    }
}
