//! The hooks of one file while they are in force: the file's content, the check of its approvals, and the
//! processes of its plugins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::redaction::ActiveRedaction;
use crate::caller::Caller;
use crate::config::{Hook, HooksFile, Place, Problem, Reach, RetainRule, Retention};
use crate::consent::{ApprovalCheck, ApprovalItem, ApprovalStore};
use crate::log::HooksSnapshot;
use crate::plugins::{PluginPool, PluginSelection, log_path};
use crate::redact::Redactor;

/// The hooks of one file, in force.
#[derive(Debug)]
pub struct ActiveHooks {
    /// The hooks.
    pub file: HooksFile,
    /// Their content, for the log.
    pub snapshot: Arc<HooksSnapshot>,
    /// Whether they are those of the file on disk.
    pub status: HooksStatus,
    /// Checks whether an entry may run.
    pub approvals: ApprovalCheck,
    /// The processes of their plugins, which end when the last reference to them is dropped.
    pub plugins: Arc<PluginPool>,
    /// What removes secrets from what plugins print. Made when the first of them starts.
    redactor: OnceLock<Option<Arc<Redactor>>>,
}

/// Where the hooks in force come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HooksStatus {
    /// The file, as it is.
    Current,
    /// There is no file.
    NoFile,
    /// The file is broken; these are the hooks of its last good version.
    LastGood(Problem),
    /// The file is broken or cannot be read, and no good version is known; there are no hooks.
    NothingGood(Problem),
}

impl HooksStatus {
    /// The word in `hookbus status`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::NoFile => "no file",
            Self::LastGood(_) => "last good",
            Self::NothingGood(_) => "none",
        }
    }

    /// Whether it is known which hooks there should be.
    pub const fn is_known(&self) -> bool {
        match self {
            Self::Current | Self::NoFile | Self::LastGood(_) => true,
            Self::NothingGood(_) => false,
        }
    }

    /// What is wrong with the file.
    pub const fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Current | Self::NoFile => None,
            Self::LastGood(problem) | Self::NothingGood(problem) => Some(problem),
        }
    }
}

/// Something of a hooks file that is not in force as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInForce {
    /// The hook, the event key or the setting; the file's path if it is the whole file.
    pub hook: String,
    /// What is wrong, ending with what to write instead.
    pub why: String,
    /// Whether it is a hook.
    pub is_hook: bool,
    /// Its line in the file.
    pub line: usize,
    /// Whether its last good version is in force instead.
    pub kept: bool,
}

impl ActiveHooks {
    /// The rules of `retain:` in the file on disk, or why there are none. The last good version never counts: it may remove
    /// more than the user wants by now.
    pub fn retain_rules(&self) -> Result<&[RetainRule], String> {
        if let Some(problem) = self.status.problem() {
            return Err(format!(
                "hookbus.yaml cannot be read, so that nothing is removed: {problem}"
            ));
        }
        match &self.file.retention {
            Retention::Rules(rules) => Ok(rules),
            Retention::Broken { line, why } => Err(format!("hookbus.yaml, line {line}: {why}")),
        }
    }

    /// Puts `file`, read from `path`, in force.
    pub(super) fn new(
        file: HooksFile,
        path: &Path,
        store: Arc<ApprovalStore>,
        status: HooksStatus,
    ) -> Self {
        let snapshot = HooksSnapshot {
            hash: file.hash.clone(),
            path: path.to_string_lossy().into_owned(),
            content: file.content.clone(),
            of_project: file.project.is_some(),
            settings: settings_to_record(&file, &status),
        };
        let approvals = ApprovalCheck::new(store, &file);
        Self {
            file,
            snapshot: Arc::new(snapshot),
            status,
            approvals,
            plugins: Arc::default(),
            redactor: OnceLock::new(),
        }
    }

    /// Puts `file` in force for a replay: the user has already agreed to everything that it runs.
    pub fn for_replay(file: HooksFile) -> Self {
        let path = file.project.clone().unwrap_or_else(|| file.base.join("hookbus.yaml"));
        let store = Arc::new(ApprovalStore::beside(&file.base));
        let active = Self::new(file, &path, store, HooksStatus::Current);
        Self { approvals: active.approvals.trusting(), ..active }
    }

    /// The content for the log; none if the file is broken and no good version is known.
    pub fn to_record(&self) -> Option<Arc<HooksSnapshot>> {
        self.status.is_known().then(|| Arc::clone(&self.snapshot))
    }

    /// What of the file is not in force as it is written, each part once, without any I/O. The words of a project's file are not
    /// among it: they may come from anyone, and a person or a model reads this.
    pub fn not_in_force(&self) -> Vec<NotInForce> {
        let whole_file = self.status.problem().map(|problem| NotInForce {
            hook: self.snapshot.path.clone(),
            why: problem.message.clone(),
            is_hook: false,
            line: problem.line,
            kept: matches!(self.status, HooksStatus::LastGood(_)),
        });
        // With the last good version in force, the problems are those of a text that is not on disk any more.
        let entries =
            self.file.problems.iter().filter(|problem| {
                problem.reach == Reach::Entry && self.status == HooksStatus::Current
            });
        let entries = entries.map(|problem| NotInForce {
            hook: problem.about.clone(),
            why: problem.message.clone(),
            is_hook: matches!(problem.place, Place::Entry { .. }),
            line: problem.line,
            kept: problem.kept,
        });
        let without_words = |entry: NotInForce| match &self.file.project {
            None => entry,
            Some(_) => NotInForce {
                hook: format!("line {} of the project's hooks", entry.line),
                why: "it has a mistake; `hookbus hooks list`, inside the project, shows it"
                    .to_owned(),
                ..entry
            },
        };
        whole_file.into_iter().chain(entries).map(without_words).collect()
    }

    /// Whether a project with these hooks takes part in decisions: it must have hooks, and the log must record
    /// them.
    pub(super) fn takes_part(&self) -> bool {
        !self.file.hooks.is_empty() && self.to_record().is_some()
    }

    /// Which plugins are loaded, and where they print to.
    pub fn plugin_selection(&self) -> PluginSelection<'_> {
        let redactor = || ActiveRedaction::new(self.home()).redactor(&self.file);
        PluginSelection {
            redactor: self.redactor.get_or_init(redactor).clone(),
            ..self.plugin_selection_in(self.home())
        }
    }

    /// The same for a replay, whose plugins print to a directory that is removed after it.
    pub fn plugin_selection_in<'a>(&'a self, log_folder: &'a Path) -> PluginSelection<'a> {
        PluginSelection {
            lists: &self.file.plugins,
            of_project: self.file.project.is_some(),
            log_folder,
            redactor: None,
        }
    }

    fn home(&self) -> &Path {
        self.approvals.store().file().parent().unwrap_or(&self.file.base)
    }

    /// The file that plugins print to.
    pub fn plugin_log(&self) -> PathBuf {
        log_path(self.home())
    }

    /// Every entry that needs an approval.
    pub fn approval_items(&self, caller: &Caller) -> Vec<ApprovalItem> {
        self.approvals.items(&self.file, caller)
    }

    /// The hook of an entry, if it is still there.
    pub fn hook_of(&self, item: &ApprovalItem) -> Option<&Hook> {
        self.file.hooks.iter().find(|hook| {
            (&hook.name, hook.on.to_string(), hook.line)
                == (&item.hook, item.event.clone(), item.line)
                && hook.what_runs() == item.command
        })
    }

    /// The same hooks with only this one in them.
    #[must_use]
    pub fn with_only(&self, hook: &Hook) -> Self {
        Self {
            file: HooksFile { hooks: vec![hook.clone()], ..self.file.clone() },
            snapshot: Arc::clone(&self.snapshot),
            status: self.status.clone(),
            approvals: self.approvals.clone(),
            plugins: Arc::clone(&self.plugins),
            redactor: self.redactor.clone(),
        }
    }

    /// `item` as it is now; none if its entry is gone.
    pub fn current_item(&self, item: &ApprovalItem, caller: &Caller) -> Option<ApprovalItem> {
        self.approvals.item(self.hook_of(item)?, caller)
    }
}

/// The settings of the user's own file. Those of a last good version may be incomplete: the log does not hold
/// all of them.
fn settings_to_record(file: &HooksFile, status: &HooksStatus) -> Option<Map<String, Value>> {
    let is_whole = matches!(status, HooksStatus::Current | HooksStatus::NoFile);
    (is_whole && file.project.is_none()).then(|| file.settings.clone())
}

/// The hooks that an event is checked against: the user's own, then those of the project it happened in.
#[derive(Debug, Clone)]
pub struct HookSets {
    /// The user's own.
    pub own: Arc<ActiveHooks>,
    /// The project's.
    pub project: Option<Arc<ActiveHooks>>,
}

impl HookSets {
    /// The user's own hooks alone.
    pub const fn own(own: Arc<ActiveHooks>) -> Self {
        Self { own, project: None }
    }

    /// Both, in their order.
    pub fn both(&self) -> impl Iterator<Item = &Arc<ActiveHooks>> {
        std::iter::once(&self.own).chain(&self.project)
    }

    /// All hooks, in their order.
    pub fn hooks(&self) -> impl Iterator<Item = &Hook> {
        self.both().flat_map(|active| &active.file.hooks)
    }

    /// The set that `hook` belongs to.
    pub fn of(&self, hook: &Hook) -> &Arc<ActiveHooks> {
        self.project.as_ref().filter(|_| hook.of_project).unwrap_or(&self.own)
    }

    /// The content of both, for the log.
    pub fn to_record(&self) -> Vec<Arc<HooksSnapshot>> {
        self.both().filter_map(|active| active.to_record()).collect()
    }
}
