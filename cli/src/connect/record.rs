//! The record of a connection: what each file held before `connect` and what it wrote, kept as JSON in `connected/` in
//! the home of hookbus until `disconnect`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::files;
use super::shell_hooks::{self, ShellHook};

/// A text file before and after `connect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    /// Its text without us; none if there was no such file.
    pub(super) before: Option<String>,
    /// The text that `connect` wrote.
    pub(super) after: String,
}

/// What `connect` did to one home of an agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) changes: Vec<FileChange>,
    /// The directories that it created, outermost first.
    pub(super) created_folders: Vec<PathBuf>,
    /// Hooks that an earlier `connect` removed from the agent's configuration and that `changes` does not have, because
    /// the user edited that file before `connect` ran again.
    pub(super) removed_hooks: Vec<ShellHook>,
}

impl Record {
    /// The file that keeps the record about an agent's home.
    pub(super) fn file(hookbus: &Path, agent: &str, home: &Path) -> PathBuf {
        let digest = hex::encode(Sha256::digest(home.to_string_lossy().as_bytes()));
        hookbus.join("connected").join(format!("{agent}-{}.json", &digest[..12]))
    }

    /// The files of all records about an agent, sorted by name.
    pub(super) fn files(hookbus: &Path, agent: &str) -> Vec<PathBuf> {
        let found = fs::read_dir(hookbus.join("connected")).into_iter().flatten().flatten();
        let (start, end) = (format!("{agent}-"), ".json");
        let is_record = |name: &str| name.starts_with(&start) && name.ends_with(end);
        let found = found.filter(|file| file.file_name().to_str().is_some_and(is_record));
        let mut files: Vec<PathBuf> = found.map(|file| file.path()).collect();
        files.sort();
        files
    }

    /// The record in `file`; empty if there is no such file.
    pub(super) fn load(file: &Path) -> Result<Self> {
        let Some(text) = files::read(file)? else { return Ok(Self::default()) };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let agent = name.split('-').next().unwrap_or_default();
        let broken = || {
            format!(
                "{} is broken; copy from it what you need of the text that the agent's files had before, delete it, then run `hookbus disconnect {agent}`, which removes what is ours without it",
                file.display()
            )
        };
        let json: Value = serde_json::from_str(&text).with_context(broken)?;
        let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
        let change = |row: &Value| {
            let text = |key: &str| row[key].as_str().map(str::to_owned);
            let path = PathBuf::from(text("path")?);
            Some(FileChange { path, before: text("before"), after: text("after")? })
        };
        let changes: Option<Vec<FileChange>> = list("files").iter().map(change).collect();
        let folders = list("made");
        let hook = |row: &Value| {
            let event = row["event"].as_str()?.to_owned();
            Some(ShellHook { event, entry: row["entry"].clone() })
        };
        Ok(Self {
            changes: changes.with_context(broken)?,
            created_folders: folders.iter().filter_map(Value::as_str).map(PathBuf::from).collect(),
            removed_hooks: list("removed_hooks").iter().filter_map(hook).collect(),
        })
    }

    /// Writes the record.
    pub(super) fn save(&self, file: &Path) -> Result<()> {
        let change = |FileChange { path, before, after }: &FileChange| json!({"path": path.to_string_lossy(), "before": before, "after": after});
        let hook = |ShellHook { event, entry }: &ShellHook| json!({"event": event, "entry": entry});
        let folders = self.created_folders.iter().map(|path| path.to_string_lossy());
        let json = json!({
            "files": self.changes.iter().map(change).collect::<Vec<_>>(),
            "made": folders.collect::<Vec<_>>(),
            "removed_hooks": self.removed_hooks.iter().map(hook).collect::<Vec<_>>(),
        });
        files::create_folders(file, files::PRIVATE)?;
        files::write(file, &json.to_string())
    }

    /// What `connect` did to a file.
    pub(super) fn change_of(&self, path: &Path) -> Option<&FileChange> {
        self.changes.iter().find(|change| change.path == path)
    }

    /// All hooks that `connect` removed from the configuration in `config`.
    pub(super) fn all_removed_hooks(&self, config: &Path) -> Vec<ShellHook> {
        let mut removed = self.removed_hooks.clone();
        if let Some(FileChange { before, after, .. }) = self.change_of(config) {
            let before = shell_hooks::in_text(before.as_deref().unwrap_or_default());
            removed.extend(shell_hooks::missing(&before, &shell_hooks::in_text(after)));
        }
        removed
    }
}
