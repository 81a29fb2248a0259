//! The hooks of projects: `.hookbus/hookbus.yaml` in the directory that an agent works in, or in the
//! nearest one above it that has such a file. Each is watched like the person's own.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::consents::Consents;
use super::in_force::{HooksSource, InForce};
use super::surroundings::Surroundings;
use crate::log::LogPath;

/// Where a project keeps its hooks.
const FOLDER: &str = ".hookbus";
const FILE: &str = "hookbus.yaml";

/// More projects than this are not remembered; the next event reads its own again.
const MOST: usize = 256;

/// The projects that events came from.
#[derive(Debug)]
pub struct Projects {
    /// The person's own, which is nobody's project.
    home: PathBuf,
    log: LogPath,
    /// What the person agreed to, whichever project it stands in.
    consents: Arc<Consents>,
    known: Mutex<HashMap<PathBuf, Arc<HooksSource>>>,
}

impl Projects {
    /// Those of whoever has this home.
    pub fn new(home: &Path, log: LogPath) -> Self {
        let consents = Arc::new(Consents::beside(home));
        Self { home: home.to_owned(), log, consents, known: Mutex::default() }
    }

    /// The hooks of the project that a client stands in, if it has any. A file without hooks makes none.
    pub fn at(&self, place: &Surroundings) -> Option<Arc<InForce>> {
        Some(self.source(place)?.in_force()).filter(|it| it.has_a_say())
    }

    /// Where those come from.
    pub fn source(&self, place: &Surroundings) -> Option<Arc<HooksSource>> {
        let file = self.file_above(place)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(&file) {
            known.clear();
        }
        let source = known.entry(file).or_insert_with_key(|file| {
            let (log, consents) = (self.log.clone(), Arc::clone(&self.consents));
            Arc::new(HooksSource::of_project(file, log, consents))
        });
        Some(Arc::clone(source))
    }

    fn file_above(&self, place: &Surroundings) -> Option<PathBuf> {
        // A person's own hooks are in such a folder too, wherever they keep those in force.
        let theirs = place.var("HOME").map(|home| Path::new(home).join(FOLDER));
        let own = |folder: &Path| folder == self.home || theirs.as_deref() == Some(folder);
        let folders = place.cwd.ancestors().map(|folder| folder.join(FOLDER));
        folders
            .filter(|folder| !own(folder))
            .map(|folder| folder.join(FILE))
            .find(|file| file.exists())
    }
}

/// Whether a file of this name is a project's.
pub fn is_of_a_project(file: &Path, home: &Path) -> bool {
    let folder = file.parent();
    file.file_name() == Some(OsStr::new(FILE))
        && folder != Some(home)
        && folder.and_then(Path::file_name) == Some(OsStr::new(FOLDER))
}
