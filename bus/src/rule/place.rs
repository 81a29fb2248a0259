//! Where a call happens: its working directory, the project, the directories that `$home`, `$tmp` and `$hookbus`
//! stand for, and how links are followed. The bus finds it out once per event and records it with the event, so that a
//! replay compares paths as they were when the event happened, whatever is on the disk today.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::directory::below;
use crate::caller::Caller;
use crate::event::Event;
use crate::files::{lexical_path, real_path, real_path_with};
use crate::sys::fs::read_link_at;
use crate::sys::user::user_home;

/// What marks the top directory of a repository.
const REPOSITORY_MARKS: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Where every user keeps temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Where those lead. Looked up once per process, like the home directory.
static REAL_TEMPORARY: LazyLock<Vec<PathBuf>> =
    LazyLock::new(|| TEMPORARY.iter().map(|folder| real_or(Path::new(folder))).collect());
static REAL_HOME: LazyLock<Option<PathBuf>> = LazyLock::new(|| user_home().map(real_or));

/// Where the directories of policies lead, and when that was found out.
static FOLLOWED: LazyLock<Mutex<HashMap<PathBuf, (Instant, PathBuf)>>> =
    LazyLock::new(Mutex::default);
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const MOST_FOLLOWED: usize = 4096;

/// Where a call happens.
#[derive(Debug, Default)]
pub struct Place {
    /// The agent's working directory.
    pub cwd: PathBuf,
    /// The repository that it works in; without one, the working directory.
    pub project: PathBuf,
    /// The user's home directory, by the password database.
    pub home: Option<PathBuf>,
    /// What the agent's environment calls the home directory. A repository's `.env` may have set it, so it widens
    /// what is guarded and never what is allowed.
    pub claimed_home: Option<PathBuf>,
    /// Where temporary files go.
    pub temporary: Vec<PathBuf>,
    /// The home of the bus.
    pub bus: PathBuf,
    links: Links,
}

/// How links are followed.
#[derive(Debug)]
enum Links {
    /// By a look at the disk. Remembers every path that led elsewhere.
    OnDisk(Mutex<BTreeMap<String, String>>),
    /// As they were when the event was recorded.
    Recorded(BTreeMap<String, String>),
}

impl Default for Links {
    fn default() -> Self {
        Self::Recorded(BTreeMap::new())
    }
}

impl Place {
    /// The place of a live call, by a look at the disk. `bus` is the home of the bus.
    pub fn of_call(event: &Event, caller: &Caller, bus: &Path) -> Self {
        let cwd = working_directory(event, caller);
        let real = real_or(&cwd);
        let project = repository_of(&real).unwrap_or_else(|| real.clone());
        let claimed = caller.var("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        Self {
            cwd: real,
            project,
            claimed_home: claimed
                .filter(|home| user_home() != Some(home))
                .map(|home| real_or(&home)),
            home: REAL_HOME.clone(),
            temporary: REAL_TEMPORARY.clone(),
            bus: real_or(bus),
            links: Links::OnDisk(Mutex::default()),
        }
    }

    /// The place of a recorded event, from its context. Events of earlier versions have only a working directory: the
    /// disk of today says which repository that is in, and links are not followed.
    pub fn of_recorded(event: &Event, context: &str, bus: &Path) -> Self {
        let context: Value = serde_json::from_str(context).unwrap_or_default();
        let home = || user_home().map(|home| cleaned(home.to_owned()));
        Self::from_context(event, &context, bus, repository_of, home)
    }

    /// The same without a look at the disk: where the context does not say it, the working directory is the project, and
    /// the home directory is not known.
    pub fn of_context(event: &Event, context: &Value) -> Self {
        Self::from_context(event, context, Path::new(""), |_| None, || None)
    }

    fn from_context(
        event: &Event,
        context: &Value,
        bus: &Path,
        repository_of: impl FnOnce(&Path) -> Option<PathBuf>,
        user_home: impl FnOnce() -> Option<PathBuf>,
    ) -> Self {
        let text =
            |key: &str| context.get("place")?.get(key)?.as_str().map(|it| cleaned(it.into()));
        let caller_cwd = context.get("cwd").and_then(Value::as_str).unwrap_or("/");
        let caller = Caller { cwd: PathBuf::from(caller_cwd), ..Caller::default() };
        let cwd = text("cwd").unwrap_or_else(|| lexical_path(&working_directory(event, &caller)));
        let project = text("project").or_else(|| match context.get("place") {
            Some(_) => None,
            None => repository_of(&cwd),
        });
        let links = context.get("place").and_then(|place| place.get("links")?.as_object());
        let pairs = links.into_iter().flatten();
        Self {
            project: project.unwrap_or_else(|| cwd.clone()),
            cwd,
            home: text("home").or_else(user_home),
            claimed_home: text("claimed_home"),
            temporary: TEMPORARY.iter().map(PathBuf::from).chain(text("tmp")).collect(),
            bus: text("bus").unwrap_or_else(|| bus.to_owned()),
            links: Links::Recorded(
                pairs
                    .filter_map(|(from, to)| Some((from.clone(), to.as_str()?.to_owned())))
                    .collect(),
            ),
        }
    }

    /// A made-up place without links, for the examples of a rule: a project in the home directory of a user. The
    /// working directory is the project's, if the event names no other.
    pub fn of_examples(event: &Event) -> Self {
        let home = PathBuf::from("/home/you");
        let caller = Caller { cwd: home.join("project"), ..Caller::default() };
        Self {
            cwd: lexical_path(&working_directory(event, &caller)),
            project: home.join("project"),
            bus: home.join(".hookbus"),
            home: Some(home),
            claimed_home: None,
            temporary: TEMPORARY.iter().map(PathBuf::from).collect(),
            links: Links::Recorded(BTreeMap::new()),
        }
    }

    /// The part of the context that [`of_recorded`](Self::of_recorded) reads.
    pub fn to_record(&self) -> Map<String, Value> {
        let mut place = Map::new();
        let mut add = |key: &str, path: &Path| {
            place.insert(key.to_owned(), json!(path.to_string_lossy()));
        };
        add("cwd", &self.cwd);
        if self.project != self.cwd {
            add("project", &self.project);
        }
        if let Some(home) = &self.home {
            add("home", home);
        }
        if let Some(home) = &self.claimed_home {
            add("claimed_home", home);
        }
        add("bus", &self.bus);
        // `/tmp` itself may be a link.
        if let Some(folder) = self.temporary.first().filter(|it| it.as_os_str() != TEMPORARY[0]) {
            add("tmp", folder);
        }
        let links = match &self.links {
            Links::OnDisk(seen) => seen.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Links::Recorded(links) => links.clone(),
        };
        if !links.is_empty() {
            place.insert("links".to_owned(), json!(links));
        }
        place
    }

    /// Hashes all of a recorded place. Returns false for one whose links are followed on disk: they may change.
    pub(super) fn hash_recorded(&self, state: &mut impl Hasher) -> bool {
        let Links::Recorded(links) = &self.links else { return false };
        let Self { cwd, project, home, claimed_home, temporary, bus, links: _ } = self;
        // A path itself is hashed part by part, which takes longer.
        [cwd, project, bus].map(|path| path.as_os_str()).hash(state);
        [home, claimed_home].map(|path| path.as_deref().map(Path::as_os_str)).hash(state);
        for path in temporary {
            path.as_os_str().hash(state);
        }
        links.hash(state);
        true
    }

    /// Whether any path may lead elsewhere than it says.
    pub(super) fn may_have_links(&self) -> bool {
        match &self.links {
            Links::OnDisk(_) => true,
            Links::Recorded(links) => !links.is_empty(),
        }
    }

    /// The place that an absolute path leads to; none if its links go in a circle.
    pub fn follow(&self, path: &Path) -> Option<PathBuf> {
        match &self.links {
            Links::Recorded(links) => {
                let text = path.to_str();
                let recorded = text.and_then(|path| links.get(path));
                Some(recorded.map_or_else(|| cleaned(path.to_owned()), PathBuf::from))
            }
            Links::OnDisk(seen) => {
                let real = real_path_with(path, |link| read_link_at(link, &self.cwd)).ok();
                if let (Some(from), Some(real)) = (path.to_str(), &real)
                    && *real != lexical_path(path)
                {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.insert(from.to_owned(), real.to_string_lossy().into_owned());
                }
                real
            }
        }
    }

    /// [`follow`](Self::follow) for a directory that a policy names. It is looked up again after a moment only: a policy
    /// names many, and every call is compared with them.
    pub(super) fn follow_directory(&self, path: &Path) -> Option<PathBuf> {
        let Links::OnDisk(seen) = &self.links else { return self.follow(path) };
        let mut known = FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, real)) = known.get(path)
            && at.elapsed() < LOOK_AGAIN
        {
            if let (Some(from), true) = (path.to_str(), real != path) {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.insert(from.to_owned(), real.to_string_lossy().into_owned());
            }
            return Some(real.clone());
        }
        let real = self.follow(path)?;
        if known.len() > MOST_FOLLOWED {
            known.clear();
        }
        known.insert(path.to_owned(), (Instant::now(), real.clone()));
        Some(real)
    }

    /// The directories that a home directory may be: the user's own, and what the environment says.
    pub fn homes(&self) -> impl Iterator<Item = &Path> {
        self.home.iter().chain(&self.claimed_home).map(PathBuf::as_path)
    }

    /// Whether a resolved path is in a directory for temporary files. What lies below a home directory, the home of
    /// the bus or the directory around the project is not temporary, also where that is below `/tmp`.
    pub fn is_temporary(&self, path: &Path) -> bool {
        let Some(folder) = self.temporary.iter().find(|folder| below(path, folder).is_some())
        else {
            return false;
        };
        let is_apart = |kept: &Path| below(kept, folder).is_some() && below(path, kept).is_some();
        let around_project = self.project.parent().filter(|around| *around != folder.as_path());
        !self.homes().chain([self.bus.as_path()]).chain(around_project).any(is_apart)
    }
}

fn real_or(path: &Path) -> PathBuf {
    real_path(path).unwrap_or_else(|_| cleaned(path.to_owned()))
}

/// Without `.`, `..` and doubled slashes. Most paths have none, which is quickly seen.
fn cleaned(path: PathBuf) -> PathBuf {
    let is_clean = path.to_str().is_some_and(|text| {
        text.starts_with('/')
            && !text.contains("/.")
            && !text.contains("//")
            && !text.ends_with('/')
    });
    if is_clean { path } else { lexical_path(&path) }
}

/// The agent's own working directory: the payload names it, else it is the client's. The model does not choose it.
fn working_directory(event: &Event, caller: &Caller) -> PathBuf {
    let named = event.field("cwd").and_then(Value::as_str).map(PathBuf::from);
    let own = named.filter(|cwd| cwd.is_absolute());
    own.or_else(|| caller.cwd.is_absolute().then(|| caller.cwd.clone()))
        .unwrap_or_else(|| "/".into())
}

/// The nearest directory above that is the top of a repository. The root directory is none.
fn repository_of(cwd: &Path) -> Option<PathBuf> {
    let is_top = |folder: &&Path| REPOSITORY_MARKS.iter().any(|mark| folder.join(mark).exists());
    let above = cwd.ancestors().filter(|folder| folder.parent().is_some());
    above.take_while(|folder| REAL_HOME.as_deref() != Some(folder)).find(is_top).map(Path::to_owned)
}
