//! Which files below a directory are code. There is one answer, for what somebody agrees to, for the hash in the
//! log, and for when a plugin is started anew. Links are followed, each directory once; what a plugin writes is
//! not code, and what Python compiled from the rest is not loaded.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::host::MANIFESTS;
use super::stamp::Stamp;

/// More files than this nobody can look through.
const MOST_FILES: usize = 2000;
const DEEPEST: usize = 12;

/// Nor does anybody wait until so many are told apart.
const MOST_ENTRIES: usize = 100_000;

/// What code ends with; the rest of it can be executed.
const ENDINGS: [&str; 5] = ["py", "pyc", "so", "pyd", "sh"];

/// Where a person keeps other people's code, in their own plugins.
const NOT_ITS_OWN: [&str; 4] = ["venv", ".venv", "node_modules", "site-packages"];

/// How much of a directory counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Extent {
    /// A person's own plugin, without what it brings along from others.
    #[default]
    ItsOwn,
    /// A stranger may have written it, and hides nothing anywhere.
    Everything,
}

impl Extent {
    /// In a project's file, or in a person's own.
    pub(super) const fn of(is_of_project: bool) -> Self {
        if is_of_project { Self::Everything } else { Self::ItsOwn }
    }
}

/// A file that is code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeFile {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// The code below some directories, in the order of their names.
#[derive(Debug, Default)]
pub(super) struct CodeFiles {
    pub(super) files: Vec<CodeFile>,
    /// There are more than anybody can look through, and not all are here.
    pub(super) too_many: bool,
    extent: Extent,
    entered: HashSet<(u64, u64)>,
    entries: usize,
}

impl CodeFiles {
    /// All code below `folders`.
    pub(super) fn below(folders: &[PathBuf], extent: Extent) -> Self {
        let mut found = Self { extent, ..Self::default() };
        for folder in folders {
            found.enter(folder, 0);
        }
        found
    }

    fn enter(&mut self, folder: &Path, depth: usize) {
        let id = fs::metadata(folder).map(|about| (about.dev(), about.ino()));
        if self.too_many || !id.is_ok_and(|id| self.entered.insert(id)) {
            return;
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let entries = entries.take(MOST_ENTRIES.saturating_sub(self.entries) + 1);
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            self.entries += 1;
            if self.is_full() || depth > DEEPEST {
                self.too_many = true;
                return;
            }
            // Asked once: an agent waits while a plugin with a thousand files is looked through.
            let Ok(about) = fs::metadata(&path) else { continue };
            if about.is_dir() && !self.passes_by(&path) {
                self.enter(&path, depth + 1);
            } else if about.is_file() && is_code(&path, &about) && !is_compiled(&path) {
                self.files.push(CodeFile { path, stamp: Stamp::from(&about) });
            }
        }
    }

    fn is_full(&self) -> bool {
        let most = self.files.len().max(self.entered.len());
        most >= MOST_FILES || self.entries > MOST_ENTRIES
    }

    fn passes_by(&self, folder: &Path) -> bool {
        let name = folder.file_name().unwrap_or_default();
        let is_others = || NOT_ITS_OWN.iter().any(|other| name == *other);
        // The host does not load anything from there.
        name == ".git" || self.extent == Extent::ItsOwn && is_others()
    }
}

fn is_compiled(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name == "__pycache__")
        && file.extension().is_some_and(|end| end == "pyc")
}

/// Of YAML only the manifest: a plugin may keep its own state in such a file.
fn is_code(file: &Path, about: &Metadata) -> bool {
    let by_ending = file.extension().is_some_and(|end| ENDINGS.iter().any(|one| end == *one));
    let name = file.file_name().unwrap_or_default();
    by_ending || MANIFESTS.iter().any(|one| name == *one) || about.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_below_a_directory_counts_and_what_it_writes_does_not() {
        let place = tempfile::tempdir().expect("a place");
        let at = |name: &str| place.path().join(name);
        let elsewhere = tempfile::tempdir().expect("another");
        for folder in ["_impl", "__pycache__", ".hidden", "venv", ".git"] {
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
        let found = |extent: Extent| {
            let found = CodeFiles::below(&[place.path().to_owned()], extent);
            assert!(!found.too_many);
            found.files.into_iter().map(|file| file.path).collect::<Vec<PathBuf>>()
        };
        let own = [".hidden/a.py", "__pycache__/a.py", "_impl/a.py", "out/b.py"].map(at);
        assert_eq!(found(Extent::ItsOwn), own);
        assert_eq!(found(Extent::Everything).len(), 5, "a project hides nothing in a venv");
    }

    #[test]
    fn nobody_looks_through_everything() {
        let place = tempfile::tempdir().expect("a place");
        for number in 0..=MOST_FILES {
            fs::write(place.path().join(format!("{number}.py")), "").expect("a file");
        }
        let found = CodeFiles::below(&[place.path().to_owned()], Extent::ItsOwn);
        assert!(found.too_many && found.files.len() == MOST_FILES);
    }
}
