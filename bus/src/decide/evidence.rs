//! What somebody agrees to who agrees to an entry: what it says about how it is run, and the content of the
//! scripts and the plugin code that it names. What those read or import from elsewhere is not in here, and what
//! they write is not code.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::hook::{Action, Command, Hook, Mode, Python};
use super::host::MANIFESTS;
use super::launch;
use super::named;
use super::surroundings::Surroundings;

/// A bigger file counts by its size and the time of its last change; reading it would cost the agent time.
const LARGEST: u64 = 4 << 20;

/// More files than this nobody can look through.
const MOST_FILES: usize = 2000;
const DEEPEST: usize = 12;

/// Besides its `.py` files, what a plugin is loaded from.
const CODE: [&str; 5] = ["py", "pyc", "so", "pyd", "sh"];

/// Where in a person's own plugins nothing of the plugin itself lies.
const NOT_ITS_OWN: [&str; 4] = ["venv", ".venv", "node_modules", "site-packages"];

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhibit {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds: a SHA-256 in hex, or what was looked at instead.
    pub hash: String,
}

impl Exhibit {
    /// Whether it held just this.
    pub fn held(&self, content: &[u8]) -> bool {
        self.hash == sha256(content)
    }
}

/// What stands behind an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The words that are run; none where the command cannot be split.
    pub(super) words: Vec<String>,
    /// What the entry says about how: variables, the interpreter.
    pub(super) settings: Vec<String>,
    /// The hash of what the entry says.
    pub(super) terms: String,
    /// The files.
    pub(super) files: Vec<Exhibit>,
    /// The directory that they belong to as a whole, if it is known.
    pub(super) root: Option<PathBuf>,
    /// Where the words were looked for.
    pub(super) place: PathBuf,
    /// Whether all code that runs is among them, as far as can be told.
    pub(super) made_out: bool,
    /// There are more files than anybody can look through.
    pub(super) too_many: bool,
}

/// What stands behind `hook`; none where there is nothing to agree to.
pub(super) fn of(
    hook: &Hook,
    place: &Surroundings,
    base: &Path,
    read: &Readings,
) -> Option<Evidence> {
    // An observer runs in the directory of its file, wherever its events come from.
    let place = match hook.mode {
        Mode::Observe => &Surroundings { cwd: base.to_owned(), ..place.clone() },
        Mode::Decide => place,
    };
    let found = match &hook.action {
        Action::Command(command) => Some(of_command(hook, command, place, base, read)),
        Action::Python(python) => Some(of_python(hook, python, place, base, read)),
        Action::Rule(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Broken(_)
        | Action::Unread { .. } => None,
    };
    if !hook.of_project {
        return found;
    }
    // A stranger may have written a project's file: all that its entries say is agreed to, those too that run
    // nothing. A rule can change what the agent does.
    let found = found.unwrap_or_else(|| Evidence { made_out: true, ..Evidence::default() });
    Some(Evidence { terms: terms_of(&hook.written), ..found })
}

/// The hash of all that an entry of a project says.
pub(super) fn terms_of(written: &str) -> String {
    sha256(written.as_bytes())
}

fn of_command(
    hook: &Hook,
    command: &Command,
    place: &Surroundings,
    base: &Path,
    read: &Readings,
) -> Evidence {
    let words = launch::words(command, hook.manner(), place, base).unwrap_or_default();
    let named = named::by(&words, &command.env, place);
    let mut found = Walk { everything: hook.of_project, ..Walk::new(read) };
    found.files.extend(named.files.iter().map(|file| read.exhibit(file)));
    for folder in &named.folders {
        found.enter(folder, 0);
    }
    Evidence {
        settings: command.env.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        terms: digest(&json!({"env": command.env})),
        made_out: named.is_made_out(),
        too_many: found.too_many,
        files: found.files,
        root: None,
        place: place.cwd.clone(),
        words,
    }
}

fn of_python(
    hook: &Hook,
    python: &Python,
    place: &Surroundings,
    base: &Path,
    read: &Readings,
) -> Evidence {
    let folder = launch::folder(&python.folder, place, base);
    let interpreter = launch::with_home(&python.launch.interpreter, place);
    let mut found = Walk { everything: hook.of_project, ..Walk::new(read) };
    found.enter(&folder, 0);
    let made_out = !found.files.is_empty();
    let words = vec![interpreter.clone()];
    // Where it is started, and looked for.
    let place = &Surroundings { cwd: "/".into(), ..place.clone() };
    let own = named::by(&words, &[], place);
    found.files.extend(own.files.iter().map(|file| read.exhibit(file)));
    Evidence {
        settings: vec![format!("interpreter {interpreter}")],
        terms: digest(&json!({"interpreter": python.launch.interpreter})),
        words,
        made_out,
        too_many: found.too_many,
        files: found.files,
        place: folder.clone(),
        root: Some(folder),
    }
}

/// The code below a directory, by name. Links are followed, each directory once.
struct Walk<'a> {
    read: &'a Readings,
    files: Vec<Exhibit>,
    seen: HashSet<(u64, u64)>,
    /// Also what a person's own plugin keeps other people's code in.
    everything: bool,
    too_many: bool,
}

impl<'a> Walk<'a> {
    fn new(read: &'a Readings) -> Self {
        let (files, seen) = (Vec::new(), HashSet::new());
        Self { read, files, seen, everything: false, too_many: false }
    }

    fn enter(&mut self, folder: &Path, depth: usize) {
        let id = fs::metadata(folder).map(|about| (about.dev(), about.ino()));
        if self.too_many || !id.is_ok_and(|id| self.seen.insert(id)) {
            return;
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            if self.files.len() >= MOST_FILES || self.seen.len() >= MOST_FILES || depth > DEEPEST {
                self.too_many = true;
                return;
            }
            let name = path.file_name().unwrap_or_default();
            let passed_by = name == ".git" // nor does the host load anything from there
                || !self.everything && NOT_ITS_OWN.iter().any(|other| name == *other);
            // Asked once: an agent waits while a plugin with a thousand files is looked through.
            let Ok(about) = fs::metadata(&path) else { continue };
            if about.is_dir() && !passed_by {
                self.enter(&path, depth + 1);
            } else if about.is_file() && is_code(&path, &about) && !is_compiled(&path) {
                let hash = self.read.hash(&path, &about);
                self.files.push(Exhibit { path, hash });
            }
        }
    }
}

/// What Python compiled from the rest, which the host does not load.
fn is_compiled(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name == "__pycache__")
        && file.extension().is_some_and(|end| end == "pyc")
}

fn is_code(file: &Path, about: &Metadata) -> bool {
    let by_ending = file.extension().is_some_and(|end| CODE.iter().any(|one| end == *one));
    let name = file.file_name().unwrap_or_default();
    by_ending || MANIFESTS.iter().any(|one| name == *one) || about.permissions().mode() & 0o111 != 0
}

/// What files hold, read once for as long as nothing about them changes.
#[derive(Debug, Default)]
pub(super) struct Readings {
    known: Mutex<HashMap<PathBuf, (Stamp, String)>>,
}

/// Device, inode, size, and when anything about the file changed, which no tool can turn back.
type Stamp = (u64, u64, u64, i64, i64);

impl Readings {
    fn exhibit(&self, path: &Path) -> Exhibit {
        let hash = fs::metadata(path).map(|about| self.hash(path, &about));
        let hash = hash.unwrap_or_else(|_| "it cannot be read".to_owned());
        Exhibit { path: path.to_owned(), hash }
    }

    fn hash(&self, path: &Path, about: &Metadata) -> String {
        let stamp = (about.dev(), about.ino(), about.len(), about.ctime(), about.ctime_nsec());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, hash)) = known.get(path)
            && *then == stamp
        {
            return hash.clone();
        }
        let hash = content(path, about.len())
            .unwrap_or_else(|| format!("{} bytes of {}.{:09}", stamp.2, stamp.3, stamp.4));
        known.insert(path.to_owned(), (stamp, hash.clone()));
        hash
    }
}

fn content(path: &Path, size: u64) -> Option<String> {
    if size > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    // Not more than it had a moment ago, should it be growing.
    fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)).ok()?;
    Some(sha256(&bytes))
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn digest(value: &Value) -> String {
    sha256(value.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_below_a_directory_counts_and_what_it_writes_does_not() {
        let place = tempfile::tempdir().expect("a place");
        let at = |name: &str| place.path().join(name);
        let elsewhere = tempfile::tempdir().expect("another");
        for folder in ["_impl", "__pycache__", ".hidden", "venv"] {
            fs::create_dir(at(folder)).expect("a folder");
            fs::write(at(folder).join("a.py"), "x").expect("a file");
        }
        fs::write(at("__pycache__/a.cpython-311.pyc"), "x").expect("a file");
        for state in ["state.json", "state.yaml"] {
            fs::write(at(state), "{}").expect("a file");
        }
        fs::write(elsewhere.path().join("b.py"), "x").expect("a file");
        std::os::unix::fs::symlink(elsewhere.path(), at("out")).expect("a link");
        std::os::unix::fs::symlink(place.path(), at("round")).expect("a link");
        let readings = Readings::default();
        let found = |everything: bool| {
            let mut walk = Walk { everything, ..Walk::new(&readings) };
            walk.enter(place.path(), 0);
            walk.files.into_iter().map(|exhibit| exhibit.path).collect::<Vec<PathBuf>>()
        };
        let own = [".hidden/a.py", "__pycache__/a.py", "_impl/a.py", "out/b.py"].map(at);
        assert_eq!(found(false), own);
        assert_eq!(found(true).len(), 5, "a project hides nothing in a venv");
    }
}
