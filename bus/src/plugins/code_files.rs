//! Which files below a plugin's directory are code. The same answer is used for approvals, for the hash in
//! the log and for restarting an edited plugin. Symlinks are followed, each directory once. State files that
//! a plugin writes are not code, and neither is what Python compiled from it.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::discovery::MANIFESTS;
use crate::files::Stamp;

/// A plugin with more code files is refused.
const MOST_FILES: usize = 2000;

/// A plugin with code in deeper directories is refused.
const DEEPEST: usize = 12;

/// A plugin with more directory entries of any kind is refused.
const MOST_ENTRIES: usize = 100_000;

/// The endings of code files. A file that is executable is code too.
const ENDINGS: [&str; 5] = ["py", "pyc", "so", "pyd", "sh"];

/// Directories of installed dependencies.
const VENDORED: [&str; 4] = ["venv", ".venv", "node_modules", "site-packages"];

/// How much of a directory counts as code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CodeExtent {
    /// Without vendored directories: the user's own plugins.
    #[default]
    Own,
    /// All of it: a project's plugins, which may come from anyone.
    Everything,
}

impl CodeExtent {
    /// The extent for plugins of a project's hooks file, or of the user's own.
    pub(crate) const fn of(is_of_project: bool) -> Self {
        if is_of_project { Self::Everything } else { Self::Own }
    }
}

/// A file that is code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeFile {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
}

/// The code below some directories, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct CodeFiles {
    pub(crate) files: Vec<CodeFile>,
    /// There are more files than the limits allow; the list is not complete.
    pub(crate) too_many: bool,
    extent: CodeExtent,
    entered: HashSet<(u64, u64)>,
    entries: usize,
}

impl CodeFiles {
    /// All code below `folders`.
    pub(crate) fn below(folders: &[PathBuf], extent: CodeExtent) -> Self {
        let mut found = Self { extent, ..Self::default() };
        for folder in folders {
            found.enter(folder, 0);
        }
        found
    }

    fn enter(&mut self, folder: &Path, depth: usize) {
        let id = fs::metadata(folder).map(|metadata| (metadata.dev(), metadata.ino()));
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
            // One system call per entry: an agent waits while a plugin with a thousand files is searched.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_dir() && !self.skips(&path) {
                self.enter(&path, depth + 1);
            } else if metadata.is_file() && is_code(&path, &metadata) && !is_compiled(&path) {
                self.files.push(CodeFile { path, stamp: Stamp::from(&metadata) });
            }
        }
    }

    fn is_full(&self) -> bool {
        let larger = self.files.len().max(self.entered.len());
        larger >= MOST_FILES || self.entries > MOST_ENTRIES
    }

    fn skips(&self, folder: &Path) -> bool {
        let name = folder.file_name().unwrap_or_default();
        let is_vendored = || VENDORED.iter().any(|other| name == *other);
        // The host never imports code from `.git`.
        name == ".git" || self.extent == CodeExtent::Own && is_vendored()
    }
}

fn is_compiled(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name == "__pycache__")
        && file.extension().is_some_and(|end| end == "pyc")
}

/// Of YAML files only the manifest is code: a plugin may keep its state in others.
fn is_code(file: &Path, metadata: &Metadata) -> bool {
    let by_ending = file.extension().is_some_and(|end| ENDINGS.iter().any(|one| end == *one));
    let name = file.file_name().unwrap_or_default();
    by_ending
        || MANIFESTS.iter().any(|one| name == *one)
        || metadata.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_counts_and_state_does_not() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join(name);
        let elsewhere = tempfile::tempdir().expect("a directory");
        for name in ["_impl", "__pycache__", ".hidden", "venv", ".git"] {
            fs::create_dir(at(name)).expect("a directory");
            fs::write(at(name).join("a.py"), "x").expect("a file");
        }
        fs::write(at("__pycache__/a.cpython-311.pyc"), "x").expect("a file");
        for state in ["state.json", "state.yaml"] {
            fs::write(at(state), "{}").expect("a file");
        }
        fs::write(elsewhere.path().join("b.py"), "x").expect("a file");
        std::os::unix::fs::symlink(elsewhere.path(), at("out")).expect("a link");
        std::os::unix::fs::symlink(folder.path(), at("round")).expect("a link");
        let found = |extent: CodeExtent| {
            let found = CodeFiles::below(&[folder.path().to_owned()], extent);
            assert!(!found.too_many);
            found.files.into_iter().map(|file| file.path).collect::<Vec<PathBuf>>()
        };
        let own = [".hidden/a.py", "__pycache__/a.py", "_impl/a.py", "out/b.py"].map(at);
        assert_eq!(found(CodeExtent::Own), own);
        assert_eq!(found(CodeExtent::Everything).len(), 5, "in a project, a venv counts too");
    }

    #[test]
    fn the_number_of_files_is_limited() {
        let folder = tempfile::tempdir().expect("a directory");
        for number in 0..=MOST_FILES {
            fs::write(folder.path().join(format!("{number}.py")), "").expect("a file");
        }
        let found = CodeFiles::below(&[folder.path().to_owned()], CodeExtent::Own);
        assert!(found.too_many && found.files.len() == MOST_FILES);
    }
}
