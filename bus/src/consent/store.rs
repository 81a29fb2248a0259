//! `consent.json`, beside the user's own hooks file: the approvals, entry by entry, with the hash of each
//! covered file. One entry can have several approvals: `./check.sh` is another file in another directory.
//!
//! A file that cannot be read, is damaged or has vanished is read again at the next event, and until then
//! everything that was approved counts as lapsed, which blocks. What was approved is known from memory, else
//! from the rows of kind `hooks.approved` in the log. These rows also tell whether a single approval has vanished
//! from a file that can be read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::evidence::Evidence;
use super::item::{ApprovalItem, FileChanges};
use super::logged::{LoggedApprovals, UnreadableLog};
use super::record::{ApprovalRecord, EntryKey, Files, records_in};
use crate::caller::Caller;
use crate::config::{Approval, EventKey};
use crate::event::Time;
use crate::exec::{EnvironmentCache, Recorded, UserEnvironment, hook_caller};
use crate::files::{FileDigest, HashCache, Stamp, read_private};
use crate::log::{BusRow, LogPath, RecordedApproval};
use crate::plugins::{ManifestCache, PluginForm};

/// What the user has approved.
#[derive(Debug, Default)]
pub struct ApprovalStore {
    file: PathBuf,
    /// Says what was approved, if the file does not.
    logged: LoggedApprovals,
    cached: Mutex<Cache>,
    environment: EnvironmentCache,
    /// Hashes of the files that are compared with it.
    pub(super) hashes: HashCache,
    /// Manifests of the plugins that are compared with it.
    pub(super) manifests: ManifestCache,
}

/// The stamp of the file. If there is none, also that of the user's environment, which every approval writes:
/// an approval whose file vanished before this process saw it is noticed then.
pub(super) type Stamps = (Stamp, Stamp);

/// What is known of the approvals.
#[derive(Debug, Default)]
struct Cache {
    /// What the file held at these stamps. Nothing is kept of a file that cannot be read.
    read: Option<(Stamps, Arc<[ApprovalRecord]>)>,
    /// What was approved when it was last known; none before anything was read.
    last_known: Option<Arc<[ApprovalRecord]>>,
}

/// The approvals now.
enum Approvals {
    /// Those in the file.
    Read(Arc<[ApprovalRecord]>),
    /// The file cannot be read.
    Lost(LostApprovals),
}

/// What was approved before the file was lost.
struct LostApprovals {
    records: Arc<[ApprovalRecord]>,
    /// Whether more than these may have been approved: every entry of the user's own file counts then.
    maybe_more: bool,
    why: StoreError,
}

impl LostApprovals {
    fn covers(&self, key: EntryKey<'_>) -> bool {
        self.maybe_more && key.project.is_none() || self.records.iter().any(|it| it.is_for(key))
    }
}

/// Why the approvals cannot be read. What was approved counts as lapsed then.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system cannot read the file.
    #[error("{} cannot be read: {error}; what you approved is blocked until it can be", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not in the form that hookbus writes.
    #[error(
        "{} is broken, and what you approved is blocked; restore the file, or run `hookbus hooks approve` again",
        .0.display()
    )]
    Broken(PathBuf),
    /// The file is gone, although the user has approved hooks.
    #[error(
        "{} is gone, and what you approved is blocked; restore the file, or run `hookbus hooks approve` again",
        .0.display()
    )]
    Gone(PathBuf),
    /// There is no file, and the log cannot tell whether the user has approved hooks.
    #[error(
        "there is no {}, and the log, which tells whether you approved anything, cannot be read; until then hooks that \
         need an approval are blocked: {error}",
        .file.display()
    )]
    Unknown {
        /// The file.
        file: PathBuf,
        /// Why the log cannot be read.
        error: String,
    },
}

impl StoreError {
    /// Whether the user may never have approved anything.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

impl ApprovalStore {
    /// The approvals beside the hooks file in `base`.
    pub fn beside(base: &Path) -> Self {
        let logged = LoggedApprovals::of(LogPath::in_home(base));
        Self { file: base.join("consent.json"), logged, ..Self::default() }
    }

    /// The home of the bus.
    fn home(&self) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("/")).to_owned()
    }

    /// `agent` as a hook gets it that wants the variables in `pass` as the agent has them: with the user's own
    /// `PATH` and home directory, as they were recorded in the home, and without what changes programs.
    pub fn hook_caller(&self, agent: &Caller, pass: &[String]) -> Caller {
        let home = self.home();
        let user = match self.environment.recorded(&home) {
            Recorded::Known(user) => user,
            Recorded::Nothing => Arc::new(UserEnvironment::of_caller(agent)),
            Recorded::Unreadable => Arc::new(UserEnvironment::of_system()),
        };
        hook_caller(agent, &user, Some(&home), pass)
    }

    /// Whether the user's own `PATH` was recorded and cannot be read. Which programs the user approved is not known
    /// then.
    pub(super) fn has_lost_path(&self) -> bool {
        matches!(self.environment.recorded(&self.home()), Recorded::Unreadable)
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
        match self.approvals() {
            Approvals::Read(_) => None,
            Approvals::Lost(lost) => Some(lost.why),
        }
    }

    /// Whether the file can be read now, or there is none because nothing was approved yet.
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self.approvals(), Approvals::Read(_))
    }

    /// Whether the user has approved the entry with this evidence.
    pub(super) fn approval(&self, key: EntryKey<'_>, evidence: &Evidence) -> Approval {
        match self.approvals() {
            Approvals::Read(records) => match compare(&of_entry(&records, key), evidence) {
                Approval::NotApproved => self.approval_by_log(key, evidence, records.is_empty()),
                known @ (Approval::Approved | Approval::Lapsed | Approval::Lost) => known,
            },
            Approvals::Lost(lost) if lost.covers(key) => Approval::Lapsed,
            Approvals::Lost(_) => Approval::NotApproved,
        }
    }

    /// The approval of an entry that has none in the file, which holds others or is `is_empty`: lost, if the log
    /// says that it was given and not revoked, because a program or a person has removed it from the file. What an
    /// agent removes must not count as never approved, which would let everything pass.
    fn approval_by_log(&self, key: EntryKey<'_>, evidence: &Evidence, is_empty: bool) -> Approval {
        let by_log = |records: &[ApprovalRecord]| match compare(&of_entry(records, key), evidence) {
            Approval::Approved | Approval::Lost => Approval::Lost,
            other @ (Approval::NotApproved | Approval::Lapsed) => other,
        };
        let stamps = self.stamps();
        let earlier = self.logged.earlier(stamps).map(|records| by_log(&records));
        if earlier == Some(Approval::NotApproved) {
            return Approval::NotApproved;
        }
        // `hooks revoke` changes the file before the log, so this is looked up each time.
        match self.logged.now(stamps) {
            Ok(records) => by_log(&records),
            Err(_) => earlier.unwrap_or({
                // A file with other approvals is believed: a locked log must not make new hooks block. Lost
                // approvals of a project cannot be told from a project that the user has never seen.
                let is_believed = !is_empty || key.project.is_some();
                if is_believed { Approval::NotApproved } else { Approval::Lost }
            }),
        }
    }

    /// Whether the file can be read and holds no approval.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.approvals(), Approvals::Read(records) if records.is_empty())
    }

    /// Whether the log could not be read a moment ago.
    pub(super) fn has_unreadable_log(&self) -> bool {
        self.logged.recent_failure().is_some()
    }

    /// Whether the log has to be read to tell if this entry was approved. That can take a while.
    pub(super) fn needs_log(&self, key: EntryKey<'_>) -> bool {
        let has_entry = |records: &[ApprovalRecord]| records.iter().any(|it| it.is_for(key));
        !has_entry(&self.known_records())
            && !self.has_unreadable_log()
            && self.logged.earlier(self.stamps()).is_none_or(|records| has_entry(&records))
    }

    /// How the files differ from the approval of this entry that has most in common with them.
    pub(super) fn changes(&self, key: EntryKey<'_>, evidence: &Evidence) -> Option<FileChanges> {
        let files = by_path(&evidence.files);
        let records = self.known_records();
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
        let mut records = self.known_records();
        if of_entry(&records, key).is_empty() {
            records = self.logged.earlier_or_now(self.stamps()).unwrap_or_default();
        }
        let of_entry = of_entry(&records, key);
        // A lost approval of an entry that the log does not know can have been for anything.
        !of_entry.is_empty() && of_entry.into_iter().all(is_gateway)
    }

    /// Whether the user approved the text of an entry of a project; its files may have changed since. No text
    /// counts as approved while the file cannot be read.
    pub(crate) fn has_approved_text(
        &self,
        project: &Path,
        on: &EventKey,
        entry_digest: &str,
    ) -> bool {
        let event = on.to_string();
        let Approvals::Read(records) = self.approvals() else { return false };
        records.iter().any(|it| {
            it.is_in(Some(project)) && it.event == event && it.entry_digest == entry_digest
        })
    }

    /// A project's file around `folder` in which the user approved hooks, and which is gone.
    pub(crate) fn lost_project(&self, folder: &Path) -> Option<PathBuf> {
        let records = self.known_records();
        let mut around = records.iter().filter(|it| it.project.is_some() && it.counts_in(folder));
        around.find_map(|it| it.project.as_ref().map(PathBuf::from).filter(|file| !file.exists()))
    }

    /// Whether the user approved anything in this project's file.
    pub(crate) fn has_approved_project(&self, project: &Path) -> bool {
        let is_in = |records: &[ApprovalRecord]| records.iter().any(|it| it.is_in(Some(project)));
        is_in(&self.known_records()) || {
            let logged = self.logged.earlier_or_now(self.stamps());
            logged.is_ok_and(|records| is_in(&records))
        }
    }

    /// The approvals in the file, or those that were known before it was lost.
    fn known_records(&self) -> Arc<[ApprovalRecord]> {
        match self.approvals() {
            Approvals::Read(records) => records,
            Approvals::Lost(lost) => lost.records,
        }
    }

    fn stamps(&self) -> Stamps {
        let own = self.stamp();
        let is_missing = own == Stamp::default();
        let environment = || Stamp::of(&UserEnvironment::file(&self.home()));
        (own, if is_missing { environment() } else { Stamp::default() })
    }

    /// The approvals now. The file is read when it has changed, and again each time while it cannot be read.
    fn approvals(&self) -> Approvals {
        let mut cache = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.stamps();
        if let Some((_, records)) = cache.read.as_ref().filter(|(read_at, _)| *read_at == stamps) {
            return Approvals::Read(Arc::clone(records));
        }
        match self.read_file() {
            Ok(Some(records)) => {
                let records: Arc<[ApprovalRecord]> = records.into();
                cache.read = Some((stamps, Arc::clone(&records)));
                cache.last_known = Some(Arc::clone(&records));
                Approvals::Read(records)
            }
            Ok(None) => match self.last_known(&mut cache, stamps) {
                Ok(records) if records.is_empty() => {
                    // Look into the log again at the next approval.
                    *cache = Cache { read: Some((stamps, Arc::clone(&records))), last_known: None };
                    Approvals::Read(records)
                }
                Ok(records) => {
                    let why = StoreError::Gone(self.file.clone());
                    Approvals::Lost(LostApprovals { records, maybe_more: false, why })
                }
                Err(error) => {
                    let (file, error) = (self.file.clone(), error.to_string());
                    let why = StoreError::Unknown { file, error };
                    Approvals::Lost(LostApprovals { records: Arc::new([]), maybe_more: true, why })
                }
            },
            Err(why) => {
                let records = self.last_known(&mut cache, stamps).unwrap_or_default();
                Approvals::Lost(LostApprovals { records, maybe_more: true, why })
            }
        }
    }

    /// What was approved when it was last known: by this process, else by the log.
    fn last_known(
        &self,
        cache: &mut Cache,
        stamps: Stamps,
    ) -> Result<Arc<[ApprovalRecord]>, UnreadableLog> {
        cache.read = None;
        if let Some(known) = &cache.last_known {
            return Ok(Arc::clone(known));
        }
        let records = self.logged.now(stamps)?;
        cache.last_known = Some(Arc::clone(&records));
        Ok(records)
    }

    /// The approvals in the file; none if there is no file.
    fn read_file(&self) -> Result<Option<Vec<ApprovalRecord>>, StoreError> {
        let text = match read_private(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(StoreError::Broken(self.file.clone()));
            }
            Err(error) => return Err(StoreError::Unreadable { file: self.file.clone(), error }),
        };
        records_in(&text).map(Some).ok_or_else(|| StoreError::Broken(self.file.clone()))
    }

    /// The rows for the log about a change of the file from one text to another, other than by `hooks approve` and
    /// `hooks revoke`. None stands for no file.
    pub fn rows_of_change(&self, before: Option<&str>, after: Option<&str>) -> Vec<BusRow> {
        let records = |text: Option<&str>| text.and_then(records_in).unwrap_or_default();
        let (before, after) = (records(before), records(after));
        let own_file = self.home().join("hookbus.yaml");
        let recorded = |it: &ApprovalRecord| RecordedApproval {
            how: Some("connect".to_owned()),
            ..it.to_recorded(&own_file)
        };
        let added = after.iter().filter(|it| !before.contains(it));
        let removed = before.iter().filter(|it| !after.iter().any(|now| now.is_for(it.key())));
        let added = added.map(|it| BusRow::HooksApproved(recorded(it)));
        added.chain(removed.map(|it| BusRow::HooksRevoked(recorded(it)))).collect()
    }

    /// The approvals that a changed file starts from. Lost ones stay in it as lapsed: approving one hook again
    /// must not make the others look as if they had never been approved.
    fn records_to_change(&self) -> Result<Vec<ApprovalRecord>, StoreError> {
        match self.approvals() {
            Approvals::Read(records) => Ok(records.to_vec()),
            Approvals::Lost(LostApprovals { why: why @ StoreError::Unreadable { .. }, .. }) => {
                Err(why)
            }
            Approvals::Lost(lost) => {
                let lapsed = |it: &ApprovalRecord| ApprovalRecord {
                    entry_digest: String::new(),
                    ..it.clone()
                };
                Ok(lost.records.iter().map(lapsed).collect())
            }
        }
    }

    /// The file's text with `approved` added at `at`. Removes earlier approvals of the same files, and those of
    /// entries that are not in `all` any more.
    pub fn with(
        &self,
        approved: &[&ApprovalItem],
        all: &[ApprovalItem],
        at: Time,
    ) -> Result<String, StoreError> {
        let mut records = self.records_to_change()?;
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
    /// contain `folder`; and those that were removed.
    pub fn without(
        &self,
        commands: &[String],
        folder: &Path,
    ) -> Result<(String, Vec<RecordedApproval>), StoreError> {
        let is_revoked =
            |it: &ApprovalRecord| commands.contains(&it.command) && it.counts_in(folder);
        let (mut revoked, left): (Vec<ApprovalRecord>, Vec<ApprovalRecord>) =
            self.records_to_change()?.into_iter().partition(is_revoked);
        // Those that have vanished from the file are revoked by their row in the log.
        let logged = self.logged.now(self.stamps()).unwrap_or_default();
        for lost in logged.iter().filter(|it| is_revoked(it)) {
            if of_entry(&revoked, lost.key()).is_empty() {
                revoked.push(lost.clone());
            }
        }
        let own_file = self.file.with_file_name("hookbus.yaml");
        let revoked = revoked.iter().map(|it| it.to_recorded(&own_file)).collect();
        Ok((to_text(&left), revoked))
    }
}

fn of_entry<'r>(records: &'r [ApprovalRecord], key: EntryKey<'_>) -> Vec<&'r ApprovalRecord> {
    records.iter().filter(|it| it.is_for(key)).collect()
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
