//! A plugin on disk: what its manifest says, and which version of its code lies there.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::super::code_files::{CodeFile, CodeFiles, Extent};
use super::super::consent::Readings;
use super::lying::{Form, Lists, Lying, sort};
use super::manifests::Manifests;

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

/// The plugins at `place` that are loaded, in the order of their names.
pub(super) fn find(place: &Path, lists: &Lists) -> Vec<Found> {
    sort(place, lists, &Manifests::default()).loaded.into_iter().map(Found::from).collect()
}

impl From<Lying> for Found {
    fn from(Lying { folder, key, form, file, manifest }: Lying) -> Self {
        let code = match form {
            Form::Plugin => "__init__.py",
            Form::Gateway => "handler.py",
        };
        let has_code = folder.join(code).is_file();
        let no_code = || (!has_code).then(|| format!("there is no {code} beside its {file}"));
        let broken = manifest.broken.clone().or_else(no_code);
        let manifest = manifest.fields.clone();
        Self { folder, key, form, manifest, extent: Extent::ItsOwn, broken }
    }
}

/// The plugins at `place` by name, each with the variables that it says it needs.
pub(in crate::decide) fn needs(place: &Path, lists: &Lists) -> Vec<(String, Vec<String>)> {
    let needed = |found: Found| (found.key.clone(), found.needed_variables());
    find(place, lists).into_iter().map(needed).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

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
