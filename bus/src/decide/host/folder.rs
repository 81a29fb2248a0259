//! Finding plugins on disk, as Hermes does: a directory with a manifest, or a directory of such, by name;
//! a category is one level in between.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::super::yaml;

/// `plugins:` in the hooks file, in the words of Hermes' own configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::decide) struct Lists {
    /// Those in a directory of plugins that are loaded.
    pub(in crate::decide) enabled: Vec<String>,
    /// Those that never are.
    pub(in crate::decide) disabled: Vec<String>,
}

/// What makes a directory a plugin.
pub(in crate::decide) const MANIFESTS: [&str; 3] = ["plugin.yaml", "plugin.yml", "HOOK.yaml"];

/// Which of the two forms a directory has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `plugin.yaml` and `register(ctx)`.
    Plugin,
    /// `HOOK.yaml` and `handler.py`.
    Gateway,
}

impl Form {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Gateway => "gateway",
        }
    }
}

/// A plugin that was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) folder: PathBuf,
    /// What Hermes calls it: its manifest's name, or `category/directory`.
    pub(super) key: String,
    pub(super) form: Form,
    pub(super) manifest: Map<String, Value>,
    /// Why it cannot be loaded.
    pub(super) broken: Option<String>,
}

impl Found {
    /// The variables it says it needs, in the plain form or the one with descriptions.
    pub(super) fn needed_variables(&self) -> Vec<String> {
        let list = self.manifest.get("requires_env").and_then(Value::as_array);
        let name = |entry: &Value| {
            entry.as_str().or_else(|| entry.get("name")?.as_str()).map(str::to_owned)
        };
        list.into_iter().flatten().filter_map(name).collect()
    }

    /// Its code as it lies there now. Reading is left out where nothing changed since `known`.
    pub(super) fn code(&self, known: Option<&Code>) -> Code {
        let files = files(&self.folder);
        let mut stamp = Sha256::new();
        for file in &files {
            stamp.update(file.as_os_str().as_encoded_bytes());
            let about = fs::metadata(file);
            let edited = about.as_ref().ok().and_then(|about| about.modified().ok());
            let edited = edited.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let size = about.map_or(0, |about| about.len());
            stamp.update(format!("\0{edited:?} {size}\0"));
        }
        let stamp = hex::encode(stamp.finalize());
        match known {
            Some(known) if known.stamp == stamp => known.clone(),
            Some(_) | None => Code { stamp, hash: self.hash(&files) },
        }
    }

    fn hash(&self, files: &[PathBuf]) -> String {
        let mut hash = Sha256::new();
        for file in files {
            hash.update(
                file.strip_prefix(&self.folder).unwrap_or(file).to_string_lossy().as_bytes(),
            );
            hash.update([0]);
            hash.update(Sha256::digest(fs::read(file).unwrap_or_default()));
        }
        hex::encode(hash.finalize())
    }
}

/// One version of a plugin's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code {
    /// Which files there are, and when each was edited.
    stamp: String,
    /// Of what is in them, so that the log knows which version spoke.
    pub(super) hash: String,
}

/// The plugins at `place`, in the order of their names.
pub(super) fn find(place: &Path, lists: &Lists) -> Vec<Found> {
    if let Some(found) = read(place, None) {
        return vec![found].into_iter().filter(|found| !names(&lists.disabled, found)).collect();
    }
    let mut all = Vec::new();
    for folder in folders(place) {
        match read(&folder, None) {
            Some(found) => all.push(found),
            None => {
                let category =
                    folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                all.extend(
                    folders(&folder).iter().filter_map(|inner| read(inner, Some(&category))),
                );
            }
        }
    }
    let opted_in = |found: &Found| found.form == Form::Gateway || names(&lists.enabled, found);
    all.retain(|found| opted_in(found) && !names(&lists.disabled, found));
    all
}

/// The plugins at `place` by name, each with the variables that it says it needs.
pub(in crate::decide) fn needs(place: &Path, lists: &Lists) -> Vec<(String, Vec<String>)> {
    let needed = |found: Found| (found.key.clone(), found.needed_variables());
    find(place, lists).into_iter().map(needed).collect()
}

/// Those to be loaded that none of `places` has.
pub(in crate::decide) fn absent(places: &[PathBuf], lists: &Lists) -> Vec<String> {
    let there: Vec<Found> = places.iter().flat_map(|place| find(place, lists)).collect();
    let is_there = |name: &String| {
        let list = std::slice::from_ref(name);
        lists.disabled.contains(name) || there.iter().any(|found| names(list, found))
    };
    lists.enabled.iter().filter(|name| !is_there(name)).cloned().collect()
}

fn names(list: &[String], found: &Found) -> bool {
    let name = found.manifest.get("name").and_then(Value::as_str);
    list.iter().any(|entry| *entry == found.key || Some(entry.as_str()) == name)
}

fn read(folder: &Path, category: Option<&str>) -> Option<Found> {
    // Our own bridge would carry every event back to where it came from.
    if folder.join("bridge.json").is_file() && folder.join("client.py").is_file() {
        return None;
    }
    let file = MANIFESTS.into_iter().find(|name| folder.join(name).is_file())?;
    let form = if file == "HOOK.yaml" { Form::Gateway } else { Form::Plugin };
    let directory = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let (mut manifest, mut broken) =
        match yaml::parse(&text).map(|node| node.map(|node| node.to_json())) {
            Ok(Some(Value::Object(manifest))) => (manifest, None),
            Ok(_) => (Map::new(), None),
            Err(problem) => (Map::new(), Some(format!("{file}: {problem}"))),
        };
    manifest.entry("name").or_insert_with(|| json!(directory));
    let name = manifest.get("name").and_then(Value::as_str).unwrap_or(&directory).to_owned();
    let code = match form {
        Form::Plugin => "__init__.py",
        Form::Gateway => "handler.py",
    };
    if !folder.join(code).is_file() {
        broken = broken.or_else(|| Some(format!("there is no {code} beside its {file}")));
    }
    let key = category.map_or(name, |category| format!("{category}/{directory}"));
    Some(Found { folder: folder.to_owned(), key, form, manifest, broken })
}

fn folders(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    let hidden = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']))
    };
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir() && !hidden(path)).collect();
    folders.sort();
    folders
}

/// Where nothing of the plugin's own lies, or nothing that it is loaded from.
const NOT_ITS_OWN: [&str; 6] =
    ["venv", ".venv", "node_modules", "site-packages", "__pycache__", ".git"];

/// A plugin has fewer files and directories than this, and they lie less deep.
const MOST: usize = 20_000;
const DEEPEST: usize = 12;

/// Its code and its manifest, in the order of their names. Directories that are links are not entered: they
/// may lead in a circle, or to all of the disk.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut waiting = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST {
                tracing::warn!(folder = %folder.display(), "a plugin has too many files; not all are watched");
                found.sort();
                return found;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && depth < DEEPEST && NOT_ITS_OWN.iter().all(|other| name != *other) {
                waiting.push((path, depth + 1));
            } else if is_code(&path) && path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Of YAML only the manifest: a plugin may keep its own state in such a file.
fn is_code(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    path.extension().is_some_and(|end| end == "py") || MANIFESTS.iter().any(|one| name == *one)
}
