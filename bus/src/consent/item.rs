//! An entry that needs an approval, as it is shown to the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::evidence::Evidence;
use super::record::EntryKey;
use crate::config::{Approval, Hook};
use crate::files::FileDigest;
use crate::log::RecordedApproval;

/// An entry that needs an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalItem {
    /// The project's file that it is in, if it is not the user's own.
    pub project: Option<PathBuf>,
    /// The event key that it is under.
    pub event: String,
    /// The hook's name.
    pub hook: String,
    /// The command or the directory, as written; the action and name of an entry that runs nothing.
    pub command: String,
    /// Whether a program or a plugin runs for it.
    pub runs_something: bool,
    /// The program and its arguments; empty if the command line cannot be split.
    pub words: Vec<OsString>,
    /// The entry as it is written, as JSON.
    pub written: String,
    /// How it runs, by the entry: variables, the interpreter.
    pub settings: Vec<String>,
    /// The hash of its text.
    pub entry_digest: String,
    /// The files that an approval covers.
    pub files: Vec<FileDigest>,
    /// How they differ from those of an earlier approval, if there is one.
    pub changes: Option<FileChanges>,
    /// There are more files than the limits allow.
    pub too_many: bool,
    /// Files that the entry needs and that do not exist.
    pub missing: Vec<PathBuf>,
    /// Its program, if it may not be executed.
    pub not_executable: Option<PathBuf>,
    /// Whether the user has approved it.
    pub approval: Approval,
    /// Its line in the file.
    pub line: usize,
}

/// How files differ from those that were approved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// New ones, and those with other content.
    pub changed: Vec<PathBuf>,
    /// Those that do not exist any more, or are not covered any more.
    pub gone: Vec<PathBuf>,
}

impl ApprovalItem {
    pub(super) fn new(
        project: Option<PathBuf>,
        hook: &Hook,
        evidence: Evidence,
        approval: Approval,
        changes: Option<FileChanges>,
    ) -> Self {
        let Evidence {
            words,
            settings,
            entry_digest,
            files,
            too_many,
            missing,
            not_executable,
            ..
        } = evidence;
        Self {
            project,
            event: hook.on.to_string(),
            hook: hook.name.clone(),
            command: hook.what_runs(),
            runs_something: hook.runs_outside(),
            words,
            written: hook.written.clone(),
            settings,
            entry_digest,
            files,
            changes,
            too_many,
            missing,
            not_executable,
            approval,
            line: hook.line,
        }
    }

    /// Why it cannot be approved as it is, if so, ending with what to do.
    pub fn obstacle(&self) -> Option<String> {
        if self.too_many {
            return Some("too many files to approve; name a smaller directory".to_owned());
        }
        if let Some(file) = &self.not_executable {
            let file = file.display();
            return Some(format!(
                "{file} is not executable; run `chmod +x {file}`, and this again"
            ));
        }
        let file = self.missing.first()?.display();
        Some(format!("{file} does not exist; create it, or correct the entry, and run this again"))
    }

    /// Its approval as the log records it; `own_file` is the user's own hooks file.
    pub fn to_record(&self, own_file: &Path, how: &str) -> RecordedApproval {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        RecordedApproval {
            hook: Some(self.hook.clone()),
            event: self.event.clone(),
            command: self.command.clone(),
            file: text(self.project.as_deref().unwrap_or(own_file)),
            of_project: self.project.is_some(),
            entry: self.entry_digest.clone(),
            files: self.files.iter().map(|file| (text(&file.path), file.hash.clone())).collect(),
            how: Some(how.to_owned()),
        }
    }

    /// The key of its approval.
    pub(super) fn key(&self) -> EntryKey<'_> {
        let Self { project, event, command, .. } = self;
        EntryKey { project: project.as_deref(), event, command }
    }
}
