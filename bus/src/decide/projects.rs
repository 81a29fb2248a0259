//! The hooks of projects: `.hookbus/hookbus.yaml` in the directory that an agent works in, or in one above
//! it. Each is watched like the person's own.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
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
        Some(self.in_charge(place)?.1)
    }

    /// Where those come from; the nearest file where none makes a project.
    pub fn source(&self, place: &Surroundings) -> Option<Arc<HooksSource>> {
        self.in_charge(place).map(|(source, _)| source).or_else(|| self.nearest(place))
    }

    /// The file that is nearest to where a client stands, whether or not its hooks are asked.
    pub fn nearest(&self, place: &Surroundings) -> Option<Arc<HooksSource>> {
        self.files_above(place).next().map(|file| self.watched(file))
    }

    /// The nearest of which the person agreed to anything, else the nearest: a stranger's file further in
    /// switches nothing off.
    fn in_charge(&self, place: &Surroundings) -> Option<(Arc<HooksSource>, Arc<InForce>)> {
        let mut nearest = None;
        for file in self.files_above(place) {
            let is_agreed_to = self.consents.knows_project(&file);
            let source = self.watched(file);
            let in_force = source.in_force();
            if in_force.has_a_say() {
                let found = (source, in_force);
                if is_agreed_to {
                    return Some(found);
                }
                nearest.get_or_insert(found);
            }
        }
        nearest
    }

    fn watched(&self, file: PathBuf) -> Arc<HooksSource> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(&file) {
            known.clear();
        }
        let source = known.entry(file).or_insert_with_key(|file| {
            let (log, consents) = (self.log.clone(), Arc::clone(&self.consents));
            Arc::new(HooksSource::of_project(file, log, consents))
        });
        Arc::clone(source)
    }

    fn files_above(&self, place: &Surroundings) -> impl Iterator<Item = PathBuf> {
        // Of one whose directory is gone, nobody knows where it is.
        let above = place.cwd.is_absolute().then(|| place.cwd.ancestors());
        let files = above.into_iter().flatten().map(of_project_in);
        files
            .filter(|file| {
                fs::metadata(file).is_ok_and(|found| is_by_somebody_trusted(found.uid()))
            })
            // Consent is kept as text, and two of these could look the same in it.
            .filter(|file| file.to_str().is_some())
            .filter(|file| is_of_a_project(file, &self.home, place))
    }
}

/// The hooks file of the project in `folder`, should it be one.
pub(super) fn of_project_in(folder: &Path) -> PathBuf {
    folder.join(FOLDER).join(FILE)
}

/// As git has it: what another person left in a directory that all can write to is nobody's project. Root
/// looks after everybody's.
fn is_by_somebody_trusted(owner: u32) -> bool {
    may_count(owner, rustix::process::geteuid().as_raw())
}

const fn may_count(owner: u32, me: u32) -> bool {
    owner == me || owner == 0 || me == 0
}

/// Whether a file of this name is a project's. A person's own hooks are in such a folder too, wherever they
/// keep those in force, and whichever way leads there.
pub fn is_of_a_project(file: &Path, home: &Path, place: &Surroundings) -> bool {
    let Some(folder) = file.parent() else { return false };
    let theirs = place.var("HOME").map(|home| Path::new(home).join(FOLDER));
    let own = |folder: &Path| folder == home || theirs.as_deref() == Some(folder);
    let is_named_so = file.file_name() == Some(OsStr::new(FILE))
        && folder.file_name() == Some(OsStr::new(FOLDER));
    if !is_named_so || own(folder) {
        return false;
    }
    // Only now, as it takes a look at every directory on the way.
    let Ok(real) = folder.canonicalize() else { return true };
    let is_real = |own: &Path| own.canonicalize().is_ok_and(|own| own == real);
    !is_real(home) && !theirs.as_deref().is_some_and(is_real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_person_left_there_is_nobody_s_project() {
        assert!(may_count(1000, 1000) && may_count(0, 1000), "one's own, and the machine's");
        assert!(!may_count(65534, 1000));
        assert!(may_count(1000, 0), "root looks after everybody");
    }
}
