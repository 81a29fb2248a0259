//! `consent.json`, beside the user's own hooks file: the approvals, entry by entry, with the hash of each
//! covered file. One entry can have several approvals: `./check.sh` is another file in another directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use serde_json::{Value, json};

use super::evidence::Evidence;
use super::item::{ApprovalItem, FileChanges};
use crate::config::{Approval, EventKey};
use crate::event::Time;
use crate::files::{FileDigest, HashCache, Stamp};
use crate::plugins::{ManifestCache, PluginForm};

/// The directory and file of a project's hooks.
const PROJECT_FILE: &str = ".hookbus/hookbus.yaml";

/// What the user has approved.
#[derive(Debug, Default)]
pub struct ApprovalStore {
    file: PathBuf,
    cached: Mutex<Option<(Stamp, Arc<[ApprovalRecord]>)>>,
    /// Hashes of the files that are compared with it.
    pub(super) hashes: HashCache,
    /// Manifests of the plugins that are compared with it.
    pub(super) manifests: ManifestCache,
}

/// Why the approvals cannot be read. Then nothing counts as approved.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system cannot read the file.
    #[error("{} cannot be read: {error}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not in the form that hookbus writes.
    #[error("{} is broken; correct it, or remove it and approve again", .0.display())]
    Broken(PathBuf),
}

/// The key of an approval: the project's file (if it is not the user's own), the event and what is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryKey<'a> {
    pub(super) project: Option<&'a Path>,
    pub(super) event: &'a str,
    pub(super) command: &'a str,
}

type Files = BTreeMap<PathBuf, String>;

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ApprovalRecord {
    project: Option<String>,
    event: String,
    command: String,
    entry_digest: String,
    files: Files,
    at: String,
}

impl ApprovalRecord {
    fn is_for(&self, key: EntryKey<'_>) -> bool {
        self.event == key.event && self.command == key.command && self.is_in(key.project)
    }

    fn is_in(&self, project: Option<&Path>) -> bool {
        self.project.as_deref().map(Path::new) == project
    }

    /// Whether it is about the user's own file, or about that of a project that contains `folder`.
    fn counts_in(&self, folder: &Path) -> bool {
        let project = self.project.as_deref().map(Path::new);
        project.is_none_or(|file| folder.ancestors().any(|it| it.join(PROJECT_FILE) == file))
    }

    fn to_json(&self) -> Value {
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|(path, hash)| {
                let mut file = json!({"path": path.to_string_lossy(), "hash": hash});
                // Two paths that are not UTF-8 could have the same text.
                if path.to_str().is_none() {
                    file["bytes"] = json!(hex::encode(path.as_os_str().as_bytes()));
                }
                file
            })
            .collect();
        // `terms` is the key that earlier versions wrote.
        let mut row = json!({
            "event": self.event, "command": self.command, "terms": self.entry_digest,
            "files": files, "approved_at": self.at,
        });
        if let Some(project) = &self.project {
            row["project"] = json!(project);
        }
        row
    }

    fn from_json(row: &Value) -> Option<Self> {
        let text = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
        let path = |row: &Value| match text(row, "bytes") {
            Some(bytes) => Some(OsString::from_vec(hex::decode(bytes).ok()?).into()),
            None => Some(PathBuf::from(text(row, "path")?)),
        };
        let file = |row: &Value| Some((path(row)?, text(row, "hash")?));
        Some(Self {
            project: text(row, "project"),
            event: text(row, "event")?,
            command: text(row, "command")?,
            entry_digest: text(row, "terms")?,
            files: row["files"].as_array()?.iter().filter_map(file).collect(),
            at: text(row, "approved_at").unwrap_or_default(),
        })
    }
}

impl ApprovalStore {
    /// The approvals beside the hooks file in `base`.
    pub fn beside(base: &Path) -> Self {
        Self { file: base.join("consent.json"), ..Self::default() }
    }

    /// The file that holds them.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The stamp of the file, which changes when an approval is added or removed.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::of(&self.file)
    }

    /// What is wrong with the file, if it cannot be read.
    pub fn problem(&self) -> Option<StoreError> {
        self.read_records().err()
    }

    /// Whether the user has approved the entry with this evidence.
    pub(super) fn approval(&self, key: EntryKey<'_>, evidence: &Evidence) -> Approval {
        let records = self.cached_records();
        let of_entry: Vec<&ApprovalRecord> = records.iter().filter(|it| it.is_for(key)).collect();
        compare(&of_entry, evidence)
    }

    /// How the files differ from the approval of this entry that has most in common with them.
    pub(super) fn changes(&self, key: EntryKey<'_>, evidence: &Evidence) -> Option<FileChanges> {
        let files = by_path(&evidence.files);
        let records = self.cached_records();
        let shared =
            |it: &&ApprovalRecord| it.files.keys().filter(|path| files.contains_key(*path)).count();
        let approved = &records.iter().filter(|it| it.is_for(key)).max_by_key(shared)?.files;
        let differs = |(path, hash): &(&PathBuf, &String)| approved.get(*path) != Some(*hash);
        let changed = files.iter().filter(differs).map(|(path, _)| path.clone());
        let gone = approved.keys().filter(|path| !files.contains_key(*path)).cloned();
        Some(FileChanges { changed: changed.collect(), gone: gone.collect() })
    }

    /// Whether everything that was ever approved under this entry is a gateway hook.
    pub(super) fn has_only_gateway_hooks(&self, key: EntryKey<'_>) -> bool {
        let is_gateway = |it: &ApprovalRecord| {
            let has =
                |form| it.files.keys().any(|path| PluginForm::of_manifest(path) == Some(form));
            has(PluginForm::Gateway) && !has(PluginForm::Plugin)
        };
        self.cached_records().iter().filter(|it| it.is_for(key)).all(is_gateway)
    }

    /// Whether the user approved the text of an entry of a project; its files may have changed since.
    pub(crate) fn has_approved_text(
        &self,
        project: &Path,
        on: &EventKey,
        entry_digest: &str,
    ) -> bool {
        let event = on.to_string();
        self.cached_records().iter().any(|it| {
            it.is_in(Some(project)) && it.event == event && it.entry_digest == entry_digest
        })
    }

    /// Whether the user approved anything in this project's file.
    pub(crate) fn has_approved_project(&self, project: &Path) -> bool {
        self.cached_records().iter().any(|it| it.is_in(Some(project)))
    }

    fn cached_records(&self) -> Arc<[ApprovalRecord]> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        match &mut *cached {
            Some((cached_stamp, records)) if *cached_stamp == stamp => Arc::clone(records),
            outdated => {
                let records = self.read_records().unwrap_or_default().into();
                Arc::clone(&outdated.insert((stamp, records)).1)
            }
        }
    }

    fn read_records(&self) -> Result<Vec<ApprovalRecord>, StoreError> {
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::Unreadable { file: self.file.clone(), error }),
        };
        let json = serde_json::from_str::<Value>(&text).ok();
        let rows = json.and_then(|json| json["approvals"].as_array().cloned());
        let rows = rows.ok_or_else(|| StoreError::Broken(self.file.clone()))?;
        // Rows of the first version cover too little to count.
        Ok(rows.iter().filter_map(ApprovalRecord::from_json).collect())
    }

    /// The file's text with `approved` added at `at`. Removes earlier approvals of the same files, and those of
    /// entries that are not in `all` any more.
    pub fn with(
        &self,
        approved: &[&ApprovalItem],
        all: &[ApprovalItem],
        at: Time,
    ) -> Result<String, StoreError> {
        let mut records = self.read_records()?;
        for item in approved.iter().filter(|item| item.obstacle().is_none()) {
            let (key, files) = (item.key(), by_path(&item.files));
            let still_written = |record: &ApprovalRecord| {
                all.iter()
                    .any(|it| record.is_for(it.key()) && record.entry_digest == it.entry_digest)
            };
            // Another entry for the same script keeps its own approval.
            let is_superseded = |record: &ApprovalRecord| {
                record.entry_digest == item.entry_digest && supersedes(&files, &record.files)
            };
            records.retain(|it| !it.is_for(key) || still_written(it) && !is_superseded(it));
            records.push(ApprovalRecord {
                project: item.project.as_ref().map(|file| file.to_string_lossy().into_owned()),
                event: item.event.clone(),
                command: item.command.clone(),
                entry_digest: item.entry_digest.clone(),
                files,
                at: at.to_string(),
            });
        }
        Ok(to_text(&records))
    }

    /// The file's text without the approvals of `commands`, in the user's own file and in the projects that
    /// contain `folder`; and how many were removed.
    pub fn without(
        &self,
        commands: &[String],
        folder: &Path,
    ) -> Result<(String, usize), StoreError> {
        let mut records = self.read_records()?;
        let before = records.len();
        records.retain(|it| !(commands.contains(&it.command) && it.counts_in(folder)));
        Ok((to_text(&records), before - records.len()))
    }
}

/// Compares the approvals of one entry with its text and files now.
fn compare(approvals: &[&ApprovalRecord], evidence: &Evidence) -> Approval {
    let files = by_path(&evidence.files);
    let covers_text = |it: &&&ApprovalRecord| {
        [&evidence.entry_digest, &evidence.old_digest].contains(&&it.entry_digest)
    };
    if approvals.is_empty() {
        return Approval::NotApproved;
    }
    let same_text: Vec<&&ApprovalRecord> = approvals.iter().filter(covers_text).collect();
    if same_text.is_empty() {
        return Approval::Lapsed;
    }
    let is_complete = evidence.missing.is_empty();
    if is_complete && same_text.iter().any(|it| it.files == files) {
        return Approval::Approved;
    }
    // An approval that covers none of these paths can be for the same command in another directory.
    let is_current_path =
        |path: &PathBuf| files.contains_key(path) || evidence.missing.contains(path);
    let is_of_this_folder = |it: &&&ApprovalRecord| it.files.keys().any(is_current_path);
    let has_no_files = files.is_empty() && evidence.missing.is_empty();
    let is_of_other_folder =
        evidence.depends_on_cwd && !has_no_files && !same_text.iter().any(is_of_this_folder);
    if is_of_other_folder { Approval::NotApproved } else { Approval::Lapsed }
}

/// Whether an approval of `new` replaces one of `old`: it is about the same paths, or about another version
/// of one of them.
fn supersedes(new: &Files, old: &Files) -> bool {
    let is_other_version =
        |(path, hash): (&PathBuf, &String)| new.get(path).is_some_and(|it| it != hash);
    old.keys().eq(new.keys()) || old.iter().any(is_other_version)
}

fn to_text(records: &[ApprovalRecord]) -> String {
    let rows: Vec<Value> = records.iter().map(ApprovalRecord::to_json).collect();
    format!("{:#}\n", json!({"approvals": rows}))
}

fn by_path(files: &[FileDigest]) -> Files {
    files.iter().map(|file| (file.path.clone(), file.hash.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter().map(|(path, hash)| (PathBuf::from(path), (*hash).to_owned())).collect()
    }

    fn approved(list: &[(&str, &str)]) -> ApprovalRecord {
        ApprovalRecord {
            project: None,
            event: "tool.before".to_owned(),
            command: "./p.sh".to_owned(),
            entry_digest: "text".to_owned(),
            files: files(list),
            at: String::new(),
        }
    }

    fn now(list: &[(&str, &str)], missing: &[&str]) -> Evidence {
        let digest = |(path, hash): &(&str, &str)| FileDigest {
            path: PathBuf::from(path),
            hash: (*hash).to_owned(),
        };
        Evidence {
            entry_digest: "text".to_owned(),
            files: list.iter().map(digest).collect(),
            missing: missing.iter().map(PathBuf::from).collect(),
            depends_on_cwd: true,
            ..Evidence::default()
        }
    }

    #[test]
    fn only_exactly_the_approved_files_are_approved() {
        let record = approved(&[("/a/p.sh", "1"), ("/a/q.sh", "2")]);
        let approval = |evidence: &Evidence| compare(&[&record], evidence);
        assert_eq!(approval(&now(&[("/a/p.sh", "1"), ("/a/q.sh", "2")], &[])), Approval::Approved);
        for (files, missing) in [
            (&[("/a/p.sh", "1"), ("/a/q.sh", "3")][..], &[][..]),
            (&[("/a/p.sh", "1")], &[]),
            (&[("/a/p.sh", "1"), ("/a/q.sh", "2"), ("/a/r.sh", "3")], &[]),
            (&[("/a/q.sh", "2")], &["/a/p.sh"]),
            (&[], &["/a/p.sh"]),
            (&[], &[]),
        ] {
            assert_eq!(approval(&now(files, missing)), Approval::Lapsed, "{files:?} {missing:?}");
        }
    }

    #[test]
    fn in_another_directory_the_same_command_is_not_approved() {
        let record = approved(&[("/a/p.sh", "1")]);
        assert_eq!(compare(&[&record], &now(&[("/b/p.sh", "1")], &[])), Approval::NotApproved);
        assert_eq!(compare(&[&record], &now(&[], &["/b/p.sh"])), Approval::NotApproved);
        let plugin = Evidence { depends_on_cwd: false, ..now(&[("/b/p.sh", "1")], &[]) };
        assert_eq!(compare(&[&record], &plugin), Approval::Lapsed, "a directory has one place");
    }

    #[test]
    fn an_edited_entry_has_to_be_approved_again() {
        let record = approved(&[("/a/p.sh", "1")]);
        let files = &[("/a/p.sh", "1")];
        let edited = Evidence { entry_digest: "other".to_owned(), ..now(files, &[]) };
        assert_eq!(compare(&[&record], &edited), Approval::Lapsed);
        let old = Evidence { old_digest: "text".to_owned(), ..edited };
        assert_eq!(compare(&[&record], &old), Approval::Approved, "an approval of an old version");
        assert_eq!(compare(&[], &now(files, &[])), Approval::NotApproved);
    }

    #[test]
    fn two_directories_that_share_a_file_have_an_approval_each() {
        let (a, b) =
            (files(&[("/x/r", "1"), ("/a/p", "2")]), files(&[("/x/r", "1"), ("/b/p", "3")]));
        assert!(!supersedes(&b, &a) && !supersedes(&a, &b));
        assert!(supersedes(&a, &a));
        assert!(supersedes(&files(&[("/x/r", "2"), ("/b/p", "3")]), &a), "it was edited since");
    }
}
