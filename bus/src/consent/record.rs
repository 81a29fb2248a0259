//! One approval in `consent.json`, and its forms: as JSON there, and as a row of the log.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::log::RecordedApproval;

/// The directory and file of a project's hooks.
const PROJECT_FILE: &str = ".hookbus/hookbus.yaml";

/// The key of an approval: the project's file (if it is not the user's own), the event and what is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryKey<'a> {
    pub(super) project: Option<&'a Path>,
    pub(super) event: &'a str,
    pub(super) command: &'a str,
}

pub(super) type Files = BTreeMap<PathBuf, String>;

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApprovalRecord {
    pub(super) project: Option<String>,
    pub(super) event: String,
    pub(super) command: String,
    pub(super) entry_digest: String,
    pub(super) files: Files,
    pub(super) at: String,
}

impl ApprovalRecord {
    pub(super) fn is_for(&self, key: EntryKey<'_>) -> bool {
        self.event == key.event && self.command == key.command && self.is_in(key.project)
    }

    pub(super) fn is_in(&self, project: Option<&Path>) -> bool {
        self.project.as_deref().map(Path::new) == project
    }

    /// Whether it is about the user's own file, or about that of a project that contains `folder`.
    pub(super) fn counts_in(&self, folder: &Path) -> bool {
        let project = self.project.as_deref().map(Path::new);
        project.is_none_or(|file| folder.ancestors().any(|it| it.join(PROJECT_FILE) == file))
    }

    pub(super) fn key(&self) -> EntryKey<'_> {
        let Self { project, event, command, .. } = self;
        EntryKey { project: project.as_deref().map(Path::new), event, command }
    }

    pub(super) fn from_recorded(approval: RecordedApproval) -> Self {
        let RecordedApproval { event, command, file, of_project, entry, files, .. } = approval;
        Self {
            project: of_project.then_some(file),
            event,
            command,
            entry_digest: entry,
            files: files.into_iter().map(|(path, hash)| (path.into(), hash)).collect(),
            at: String::new(),
        }
    }

    pub(super) fn to_recorded(&self, own_file: &Path) -> RecordedApproval {
        let own_file = || own_file.to_string_lossy().into_owned();
        let files = self.files.iter();
        RecordedApproval {
            hook: None,
            event: self.event.clone(),
            command: self.command.clone(),
            file: self.project.clone().unwrap_or_else(own_file),
            of_project: self.project.is_some(),
            entry: self.entry_digest.clone(),
            files: files
                .map(|(path, hash)| (path.to_string_lossy().into(), hash.clone()))
                .collect(),
            how: None,
        }
    }

    pub(super) fn to_json(&self) -> Value {
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

    pub(super) fn from_json(row: &Value) -> Option<Self> {
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

/// The approvals in the text of the file; none if it is not in the form that hookbus writes.
pub(super) fn records_in(text: &str) -> Option<Vec<ApprovalRecord>> {
    let json: Value = serde_json::from_str(text).ok()?;
    let rows = json["approvals"].as_array()?;
    // Rows of the first version cover too little to count.
    Some(rows.iter().filter_map(ApprovalRecord::from_json).collect())
}
