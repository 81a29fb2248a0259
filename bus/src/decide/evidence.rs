//! What somebody agrees to who agrees to an entry: everything that it says about what runs, and the content
//! of every file that it names. What is not in here can change without anybody being asked.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::hook::{Action, Command, Hook, Python};
use super::launch;
use super::named::{self, Named};
use super::surroundings::Surroundings;

/// A bigger file counts by its size and the time of its last change; reading it would cost the agent time.
const LARGEST: u64 = 4 << 20;

/// More files than this are not looked at for every event.
const MOST_FILES: usize = 5000;

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhibit {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds: a SHA-256 in hex, or what was looked at instead.
    pub hash: String,
}

/// What stands behind an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The words that are run; none where the command cannot be split.
    pub(super) words: Vec<String>,
    /// What the entry says about how: variables, the interpreter.
    pub(super) settings: Vec<String>,
    /// The files.
    pub(super) files: Vec<Exhibit>,
    /// Whether the code that runs is among them, as far as can be told.
    pub(super) made_out: bool,
    /// The hash of all of it; none where there is too much.
    pub(super) hash: Option<String>,
}

/// What stands behind `hook`; none where there is nothing to agree to. `plugins` is the host's word
/// on what it would load.
pub(super) fn of(
    hook: &Hook,
    plugins: Option<&str>,
    place: &Surroundings,
    base: &Path,
) -> Option<Evidence> {
    let found = match &hook.action {
        Action::Command(command) => Some(of_command(hook, command, place, base)),
        Action::Python(python) => Some(of_python(python, plugins, place, base)),
        Action::Rule(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Broken(_)
        | Action::Unread { .. } => None,
    };
    if hook.of_project { Some(of_entry(hook, found)) } else { found }
}

/// A stranger may have written a project's file: all that its entries say is agreed to, those too
/// that run nothing. A rule can change what the agent does.
fn of_entry(hook: &Hook, found: Option<Evidence>) -> Evidence {
    let nothing_runs =
        || Evidence { made_out: true, hash: Some(String::new()), ..Evidence::default() };
    let found = found.unwrap_or_else(nothing_runs);
    let all_of_it = |files: String| digest(&json!({"entry": hook.written, "files": files}));
    Evidence { hash: found.hash.map(all_of_it), ..found }
}

/// The hash of an entry's own words.
pub(super) fn of_words(written: &str) -> String {
    hex::encode(Sha256::digest(written))
}

/// What stands behind a command.
pub(super) fn of_command(
    hook: &Hook,
    command: &Command,
    place: &Surroundings,
    base: &Path,
) -> Evidence {
    let words = launch::words(command, hook.manner(), place, base).unwrap_or_default();
    let Named { files, folders, made_out } = named::by(&words, &command.env, place);
    let mut exhibits: Vec<Exhibit> = files.iter().map(|file| exhibit(file)).collect();
    let all_seen = folders.iter().all(|folder| walk(folder, &mut exhibits));
    // By name, not by place: the same script is the same wherever the agent stands.
    let content: Vec<Value> = exhibits
        .iter()
        .map(|Exhibit { path, hash }| {
            json!([path.file_name().map(|name| name.to_string_lossy()), hash])
        })
        .collect();
    let hash = digest(&json!({"env": command.env, "files": content}));
    let hash = all_seen.then_some(hash);
    let settings = command.env.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Evidence { words, settings, files: exhibits, made_out, hash }
}

fn of_python(
    python: &Python,
    plugins: Option<&str>,
    place: &Surroundings,
    base: &Path,
) -> Evidence {
    let folder = launch::folder(&python.folder, place, base);
    let interpreter = launch::with_home(&python.launch.interpreter, place);
    let mut files = Vec::new();
    let all_seen = walk(&folder, &mut files);
    let within =
        |path: &Path| path.strip_prefix(&folder).unwrap_or(path).to_string_lossy().into_owned();
    let content: Vec<Value> =
        files.iter().map(|Exhibit { path, hash }| json!([within(path), hash])).collect();
    let mut runs = json!(null);
    if interpreter.contains('/') {
        let program = exhibit(&place.cwd.join(&interpreter));
        runs = json!(program.hash);
        files.insert(0, program);
    }
    let hash = digest(&json!({
        "interpreter": python.launch.interpreter, "program": runs, "files": content,
        "plugins": plugins,
    }));
    Evidence {
        settings: vec![format!("interpreter {interpreter}")],
        words: vec![interpreter],
        made_out: !files.is_empty(),
        files,
        hash: all_seen.then_some(hash),
    }
}

fn digest(value: &Value) -> String {
    hex::encode(Sha256::digest(value.to_string()))
}

fn exhibit(path: &Path) -> Exhibit {
    Exhibit { path: path.to_owned(), hash: content(path) }
}

fn content(path: &Path) -> String {
    let Ok(about) = fs::metadata(path) else { return "it cannot be read".to_owned() };
    if about.is_file() && about.len() <= LARGEST {
        let mut bytes = Vec::new();
        // Not more than it had a moment ago, should it be growing.
        let read = fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
        if read.is_ok() {
            return hex::encode(Sha256::digest(bytes));
        }
    }
    format!("{} bytes of {}.{:09}", about.len(), about.mtime(), about.mtime_nsec())
}

/// Every file below `folder`, by name; no where there are too many. A link to a directory is not followed,
/// but where it leads counts. What Python compiled from the rest does not count.
fn walk(folder: &Path, found: &mut Vec<Exhibit>) -> bool {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if found.len() >= MOST_FILES {
            return false;
        }
        let passed_by =
            path.file_name().is_some_and(|name| name == "__pycache__" || name == ".git");
        match fs::read_link(&path) {
            _ if passed_by && path.is_dir() => {}
            Ok(target) if path.is_dir() => {
                let hash = format!("leads to {}", target.display());
                found.push(Exhibit { path, hash });
            }
            Err(_) if path.is_dir() => {
                if !walk(&path, found) {
                    return false;
                }
            }
            Ok(_) | Err(_) => found.push(exhibit(&path)),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_a_directory_counts() {
        let place = tempfile::tempdir().expect("a place");
        let at = |name: &str| place.path().join(name);
        for folder in ["_impl", "__pycache__", ".hidden"] {
            fs::create_dir(at(folder)).expect("a folder");
            fs::write(at(folder).join("a.py"), "x").expect("a file");
        }
        std::os::unix::fs::symlink("/", at("out")).expect("a link");
        let mut found = Vec::new();
        assert!(walk(place.path(), &mut found));
        let paths: Vec<PathBuf> = found.into_iter().map(|exhibit| exhibit.path).collect();
        assert_eq!(paths, [at(".hidden/a.py"), at("_impl/a.py"), at("out")]);
    }
}
