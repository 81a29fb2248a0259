//! Finding plugins on disk, as Hermes does: a directory with a manifest, or a directory of such, by name;
//! a category is one level in between.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::super::code_files::{CodeFile, CodeFiles, Extent};
use super::super::readings::Readings;
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
    /// How much of its directory is its code.
    pub(super) extent: Extent,
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
        let found = CodeFiles::below(std::slice::from_ref(&self.folder), self.extent);
        if found.too_many {
            tracing::warn!(folder = %self.folder.display(), "a plugin has too many files; not all are watched");
        }
        match known {
            Some(known) if known.files == found.files => known.clone(),
            Some(_) | None => Code { hash: self.hash(&found.files), files: found.files },
        }
    }

    fn hash(&self, files: &[CodeFile]) -> String {
        let readings = Readings::default();
        let mut reader = readings.reader();
        let mut hash = Sha256::new();
        for CodeFile { path, stamp } in files {
            hash.update(
                path.strip_prefix(&self.folder).unwrap_or(path).as_os_str().as_encoded_bytes(),
            );
            hash.update([0]);
            let content = reader.hash(path, *stamp);
            hash.update(hex::decode(&content).unwrap_or_else(|_| content.into_bytes()));
        }
        hex::encode(hash.finalize())
    }
}

/// One version of a plugin's code.
#[derive(Debug, Clone)]
pub(super) struct Code {
    /// Which files there are, and what changes when they do.
    files: Vec<CodeFile>,
    /// Of what is in them, so that the log knows which version spoke.
    pub(super) hash: String,
}

/// What is in the files says which version it is: one that was only touched need not be started anew.
impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Code {}

/// The plugins at `place`, in the order of their names.
pub(super) fn find(place: &Path, lists: &Lists) -> Vec<Found> {
    if let Some(found) = read(place, None) {
        return vec![found].into_iter().filter(|found| !names(&lists.disabled, found)).collect();
    }
    let mut all = below(place);
    let opted_in = |found: &Found| found.form == Form::Gateway || names(&lists.enabled, found);
    all.retain(|found| opted_in(found) && !names(&lists.disabled, found));
    all
}

/// What lies at `place`, by name: what is switched off, and the rest.
pub(in crate::decide) fn lying(place: &Path, lists: &Lists) -> (Vec<String>, Vec<String>) {
    let found = read(place, None).map_or_else(|| below(place), |found| vec![found]);
    let (off, other): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|found| names(&lists.disabled, found));
    let keys = |found: Vec<Found>| found.into_iter().map(|found| found.key).collect();
    (keys(off), keys(other))
}

fn below(place: &Path) -> Vec<Found> {
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
    Some(Found { folder: folder.to_owned(), key, form, manifest, extent: Extent::ItsOwn, broken })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_what_holds_something_else() {
        let place = tempfile::tempdir().expect("a place");
        let at = |name: &str| place.path().join("plugin").join(name);
        let shared = place.path().join("shared");
        fs::create_dir_all(at("")).expect("a folder");
        fs::create_dir_all(&shared).expect("a folder");
        std::os::unix::fs::symlink(&shared, at("lib")).expect("a link");
        for (file, text) in [
            (at("plugin.yaml"), "name: p"),
            (at("__init__.py"), ""),
            (at("state.json"), "{}"),
            (shared.join("words.py"), "x = 1"),
        ] {
            fs::write(file, text).expect("a file");
        }
        let found = find(&at(""), &Lists::default()).pop().expect("a plugin");
        let first = found.code(None);
        for same in [at("state.json"), at("__init__.py")] {
            let text = fs::read(&same).expect("a file");
            fs::write(same, text).expect("touched");
        }
        assert_eq!(found.code(Some(&first)), first);
        fs::write(shared.join("words.py"), "x = 2").expect("an edit");
        let second = found.code(Some(&first));
        assert_ne!(second, first);
        fs::write(at("more.so"), "").expect("one more");
        assert_ne!(found.code(Some(&second)), second);
    }
}
