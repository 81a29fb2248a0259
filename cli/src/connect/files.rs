//! The files that a connection touches: what each held before, what it holds then, and how that is
//! written without ever leaving half a file.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::files::behind_links;
pub(super) use crate::files::write;

/// A text file, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    /// What was there without us; none if there was no file.
    pub(super) before: Option<String>,
    /// What is there with us.
    pub(super) after: String,
}

/// What a connection did, kept in the home of hookbus until it is taken back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) changes: Vec<Change>,
    /// The directories that were made, outermost first.
    pub(super) made: Vec<PathBuf>,
}

impl Record {
    /// Where the record about an agent's home is kept.
    pub(super) fn file(hookbus: &Path, agent: &str, home: &Path) -> PathBuf {
        let digest = hex::encode(Sha256::digest(home.to_string_lossy().as_bytes()));
        hookbus.join("connected").join(format!("{agent}-{}.json", &digest[..12]))
    }

    /// All records about homes of an agent, in the order of their names.
    pub(super) fn files(hookbus: &Path, agent: &str) -> Vec<PathBuf> {
        let found = fs::read_dir(hookbus.join("connected")).into_iter().flatten().flatten();
        let (start, end) = (format!("{agent}-"), ".json");
        let is_ours = |name: &str| name.starts_with(&start) && name.ends_with(end);
        let found = found.filter(|file| file.file_name().to_str().is_some_and(is_ours));
        let mut files: Vec<PathBuf> = found.map(|file| file.path()).collect();
        files.sort();
        files
    }

    /// The record in `file`; empty where there is none.
    pub(super) fn load(file: &Path) -> Result<Self> {
        let Some(text) = read(file)? else { return Ok(Self::default()) };
        let broken = || {
            format!(
                "{} is broken; see what can be read of what Hermes had before, delete it, then run `hookbus disconnect hermes`, which takes out what is plainly ours",
                file.display()
            )
        };
        let json: Value = serde_json::from_str(&text).with_context(broken)?;
        let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
        let change = |row: &Value| {
            let text = |key: &str| row[key].as_str().map(str::to_owned);
            let path = PathBuf::from(text("path")?);
            Some(Change { path, before: text("before"), after: text("after")? })
        };
        let changes: Option<Vec<Change>> = list("files").iter().map(change).collect();
        let made = list("made").iter().filter_map(Value::as_str).map(PathBuf::from).collect();
        Ok(Self { changes: changes.with_context(broken)?, made })
    }

    /// Keeps the record.
    pub(super) fn save(&self, file: &Path) -> Result<()> {
        let files: Vec<Value> = self
            .changes
            .iter()
            .map(|Change { path, before, after }| {
                json!({"path": path.to_string_lossy(), "before": before, "after": after})
            })
            .collect();
        let made: Vec<_> = self.made.iter().map(|path| path.to_string_lossy()).collect();
        let text = json!({"files": files, "made": made}).to_string();
        make_folders(file, PRIVATE)?;
        write(file, &text)
    }

    /// What is known of a file.
    pub(super) fn of(&self, path: &Path) -> Option<&Change> {
        self.changes.iter().find(|change| change.path == path)
    }
}

/// A file's text; none where there is no file.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The same place however it is spelled, whether or not all of it is there.
pub(super) fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|start| Some((start, fs::canonicalize(start).ok()?)));
    let Some((start, place)) = there else { return path.to_owned() };
    let rest = path.strip_prefix(start).unwrap_or(path);
    if rest.as_os_str().is_empty() { place } else { place.join(rest) }
}

/// For whoever the home belongs to: it holds what people say to their agents.
pub(super) const PRIVATE: u32 = 0o700;

/// Makes the directories of `path`; gives back the ones that were not there, outermost first.
pub(super) fn make_folders(path: &Path, mode: u32) -> Result<Vec<PathBuf>> {
    let Some(folder) = path.parent() else { return Ok(Vec::new()) };
    let mut missing: Vec<PathBuf> =
        folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    missing.reverse();
    let made = fs::DirBuilder::new().recursive(true).mode(mode).create(folder);
    made.with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(missing)
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(behind_links(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes directories that we made, innermost first, unless somebody put something in.
pub(super) fn remove_folders(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        // What Python left behind when it read our files is ours too.
        drop(fs::remove_dir_all(folder.join("__pycache__")));
        if let Err(error) = fs::remove_dir(folder) {
            tracing::debug!(%error, folder = %folder.display(), "a folder stays");
        }
    }
}
