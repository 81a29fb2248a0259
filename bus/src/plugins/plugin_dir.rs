//! A plugin's directory: its manifest, and the version of the code in it. The version is a hash of the content,
//! recorded with every verdict; another version restarts the plugin.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::code_files::{CodeExtent, CodeFile, CodeFiles};
use super::discovery::{InstalledPlugin, PluginForm, discover};
use super::manifest::ManifestCache;
use crate::config::PluginLists;
use crate::files::HashCache;

/// The directory of a plugin that is loaded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PluginDir {
    pub(super) folder: PathBuf,
    /// Hermes' name for it: its manifest's name, or `category/directory`.
    pub(super) key: String,
    pub(super) form: PluginForm,
    pub(super) manifest: Map<String, Value>,
    /// How much of the directory counts as its code.
    pub(super) extent: CodeExtent,
    /// Why it cannot be loaded.
    pub(super) broken: Option<String>,
}

impl PluginDir {
    /// The variables in its `requires_env`, in the plain form or the one with descriptions.
    pub(super) fn required_variables(&self) -> Vec<String> {
        let list = self.manifest.get("requires_env").and_then(Value::as_array);
        let name = |entry: &Value| {
            entry.as_str().or_else(|| entry.get("name")?.as_str()).map(str::to_owned)
        };
        list.into_iter().flatten().filter_map(name).collect()
    }

    /// The version of its code on disk. Nothing is read if no file changed since `known`.
    pub(super) fn code(&self, known: Option<&CodeVersion>) -> CodeVersion {
        let found = CodeFiles::below(std::slice::from_ref(&self.folder), self.extent);
        if found.too_many {
            tracing::warn!(folder = %self.folder.display(), "a plugin has too many files; not all are watched");
        }
        match known {
            Some(known) if known.files == found.files => known.clone(),
            Some(_) | None => CodeVersion { hash: self.hash(&found.files), files: found.files },
        }
    }

    fn hash(&self, files: &[CodeFile]) -> String {
        let cache = HashCache::default();
        let mut reader = cache.reader();
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
pub(super) struct CodeVersion {
    /// The files with their stamps.
    files: Vec<CodeFile>,
    /// The hash of their content, recorded with every verdict.
    pub(super) hash: String,
}

/// Content decides: a plugin whose files were only touched is not restarted.
impl PartialEq for CodeVersion {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for CodeVersion {}

/// The directories of the plugins at `path` that are loaded, in the order of their names.
pub(super) fn find(path: &Path, lists: &PluginLists) -> Vec<PluginDir> {
    discover(path, lists, &ManifestCache::default())
        .loaded
        .into_iter()
        .map(PluginDir::from)
        .collect()
}

impl From<InstalledPlugin> for PluginDir {
    fn from(InstalledPlugin { folder, key, form, file, manifest }: InstalledPlugin) -> Self {
        let code = match form {
            PluginForm::Plugin => "__init__.py",
            PluginForm::Gateway => "handler.py",
        };
        let has_code = folder.join(code).is_file();
        let no_code = || (!has_code).then(|| format!("there is no {code} beside its {file}"));
        let broken = manifest.broken.clone().or_else(no_code);
        let manifest = manifest.fields.clone();
        Self { folder, key, form, manifest, extent: CodeExtent::Own, broken }
    }
}

/// The loaded plugins at `path` by name, each with the variables in its `requires_env`.
pub fn required_variables(path: &Path, lists: &PluginLists) -> Vec<(String, Vec<String>)> {
    let required = |dir: PluginDir| (dir.key.clone(), dir.required_variables());
    find(path, lists).into_iter().map(required).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_changed_code_makes_another_version() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join("plugin").join(name);
        let shared = folder.path().join("shared");
        fs::create_dir_all(at("")).expect("a directory");
        fs::create_dir_all(&shared).expect("a directory");
        std::os::unix::fs::symlink(&shared, at("lib")).expect("a link");
        for (file, text) in [
            (at("plugin.yaml"), "name: p"),
            (at("__init__.py"), ""),
            (at("state.json"), "{}"),
            (shared.join("words.py"), "x = 1"),
        ] {
            fs::write(file, text).expect("a file");
        }
        let found = find(&at(""), &PluginLists::default()).pop().expect("a plugin");
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
