//! The hooks of projects: `.hookbus/hookbus.yaml` in the directory that an agent works in, or in one above
//! it. Each is watched like the person's own, for as long as events come from it: the processes of its plugins go
//! with it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::consent::Consents;
use super::in_force::{HooksSource, InForce};
use super::surroundings::Surroundings;
use crate::log::LogPath;

/// Where a project keeps its hooks.
const FOLDER: &str = ".hookbus";
const FILE: &str = "hookbus.yaml";

/// More projects than this are not remembered: the one that was called longest ago makes way.
const MOST: usize = 256;

/// After this long without an event a project is let go. A plugin of it may remember a session until then, and
/// people come back from lunch.
const IDLE: Duration = Duration::from_mins(30);

/// How often it is looked for projects to let go of.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The projects that events came from.
#[derive(Debug)]
pub struct Projects {
    /// The person's own, which is nobody's project.
    home: PathBuf,
    log: LogPath,
    /// What the person agreed to, whichever project it stands in.
    consents: Arc<Consents>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    files: HashMap<PathBuf, Watched>,
    /// When it was last looked for some to let go of.
    looked_at: Option<Instant>,
}

#[derive(Debug)]
struct Watched {
    source: Arc<HooksSource>,
    called_at: Instant,
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
        self.called(file, Instant::now())
    }

    fn called(&self, file: PathBuf, now: Instant) -> Arc<HooksSource> {
        let mut known = self.known();
        let made_way = if known.files.len() >= MOST && !known.files.contains_key(&file) {
            known.longest_ago().and_then(|file| known.files.remove(&file))
        } else {
            None
        };
        let watched = known.files.entry(file).or_insert_with_key(|file| {
            let (log, consents) = (self.log.clone(), Arc::clone(&self.consents));
            let source = Arc::new(HooksSource::of_project(file, log, consents));
            Watched { source, called_at: now }
        });
        watched.called_at = now;
        let source = Arc::clone(&watched.source);
        drop(known);
        drop(made_way);
        source
    }

    /// Lets go of projects whose file is gone, and of those that nothing was heard of for long. To be called every
    /// now and then, and more often than it has to look.
    pub fn let_go(&self, now: Instant) {
        let mut known = self.known();
        if known.looked_at.is_some_and(|at| now.saturating_duration_since(at) < LOOK_EVERY) {
            return;
        }
        known.looked_at = Some(now);
        let stays = |file: &Path, watched: &Watched| {
            now.saturating_duration_since(watched.called_at) < IDLE && !is_gone(file)
        };
        let gone: Vec<Watched> =
            known.files.extract_if(|file, watched| !stays(file, watched)).map(|it| it.1).collect();
        drop(known);
        // Not while others wait: with them go the processes of their plugins.
        drop(gone);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Known {
    fn longest_ago(&self) -> Option<PathBuf> {
        let oldest = self.files.iter().min_by_key(|(_, watched)| watched.called_at);
        oldest.map(|(file, _)| file.clone())
    }
}

/// Whether there is nothing at its place; one that cannot be looked at just now is there.
fn is_gone(file: &Path) -> bool {
    fs::metadata(file).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
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

    /// Projects of an empty home, and a file in it.
    fn projects() -> (tempfile::TempDir, Projects, PathBuf) {
        let home = tempfile::tempdir().expect("a home");
        let file = home.path().join("a.yaml");
        fs::write(&file, "hooks: {}").expect("a file");
        let projects = Projects::new(home.path(), LogPath::in_home(home.path()));
        (home, projects, file)
    }

    #[test]
    fn a_project_is_let_go_when_nobody_called_for_long_or_its_file_is_gone() {
        let (_home, projects, file) = projects();
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_mins(minutes);
        let is_known = |source: &Arc<HooksSource>| Arc::strong_count(source) > 1;
        let source = projects.called(file.clone(), at(0));
        projects.let_go(at(29));
        assert!(is_known(&source));
        assert!(Arc::ptr_eq(&source, &projects.called(file.clone(), at(29))));
        projects.let_go(at(58));
        assert!(is_known(&source), "somebody called in between");
        projects.let_go(at(59));
        assert!(!is_known(&source));
        let again = projects.called(file.clone(), at(60));
        fs::remove_file(file).expect("it was there");
        projects.let_go(at(61));
        assert!(!is_known(&again));
    }

    #[test]
    fn of_too_many_projects_the_one_called_longest_ago_makes_way() {
        let (home, projects, _) = projects();
        let start = Instant::now();
        let call = |number: u32, second: u64| {
            let file = home.path().join(format!("{number}.yaml"));
            projects.called(file, start + Duration::from_secs(second))
        };
        let most = u32::try_from(MOST).expect("a number");
        let all: Vec<Arc<HooksSource>> = (0..most).map(|n| call(n, u64::from(n))).collect();
        drop(call(0, 1000));
        drop(call(most, 1001));
        let forgotten = all.iter().position(|source| Arc::strong_count(source) == 1);
        assert_eq!(forgotten, Some(1));
        assert_eq!(all.iter().filter(|source| Arc::strong_count(source) > 1).count(), MOST - 1);
    }
}
