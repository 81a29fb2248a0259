//! The check before anything runs: did the user approve it, as it is now? It takes no longer than the hook's
//! own timeout. Many or large files, and the log, which can be locked, are read on another thread, so that no other
//! agent waits for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::evidence::{self, Evidence, Lookup, entry_digest};
use super::item::ApprovalItem;
use super::record::EntryKey;
use super::script_paths::script_paths;
use super::store::ApprovalStore;
use crate::caller::Caller;
use crate::config::{Action, Approval, Hook, HooksFile, PluginLists, Refusal, Trust};
use crate::plugins::MayStart;

/// Up to this much is checked on the calling thread.
const SMALL: Budget = Budget { files: 32, bytes: 256 << 10 };

/// Checks the approvals of one hooks file. Callers are given as the agents are; what an entry stands for is found
/// with the environment that its hook would get.
#[derive(Debug, Clone)]
pub struct ApprovalCheck {
    store: Arc<ApprovalStore>,
    project: Option<PathBuf>,
    /// The directory of the hooks file.
    base: PathBuf,
    lists: PluginLists,
    /// Nothing in the file needs an approval.
    trusted: bool,
}

impl ApprovalCheck {
    /// The check for `file`.
    pub fn new(store: Arc<ApprovalStore>, file: &HooksFile) -> Self {
        Self {
            store,
            project: file.project.clone(),
            base: file.base.clone(),
            lists: file.plugins.clone(),
            trusted: file.trust == Trust::Home,
        }
    }

    /// A check that approves everything: the user has already agreed to what a replay runs.
    #[must_use]
    pub(crate) fn trusting(self) -> Self {
        Self { trusted: true, ..self }
    }

    /// The approvals.
    pub const fn store(&self) -> &Arc<ApprovalStore> {
        &self.store
    }

    /// Why `hook` must not run, if so. A check that takes longer than `limit` is a reason too.
    pub async fn refusal(&self, hook: &Hook, caller: &Caller, limit: Duration) -> Option<Refusal> {
        if let Some(refusal) = self.refusal_of_text(hook) {
            return Some(refusal);
        }
        if self.trusted || self.is_small(hook, caller) && !self.needs_log(hook) {
            return self.refusal_now(hook, caller);
        }
        let (check, owned_hook, owned_caller) = (self.clone(), hook.clone(), caller.clone());
        let checking =
            tokio::task::spawn_blocking(move || check.refusal_now(&owned_hook, &owned_caller));
        match tokio::time::timeout(limit, checking).await {
            Ok(Ok(refusal)) => refusal,
            Ok(Err(error)) => Some(self.unchecked(hook, format!("the check failed: {error}"))),
            Err(_) => Some(self.unchecked(
                hook,
                format!(
                    "its files could not be checked within {:.1} s; name fewer files, or raise `timeout`",
                    limit.as_secs_f64()
                ),
            )),
        }
    }

    /// The same without a time limit.
    pub fn refusal_now(&self, hook: &Hook, caller: &Caller) -> Option<Refusal> {
        if self.trusted {
            return None;
        }
        self.refusal_for(hook, &self.evidence(hook, caller)?)
    }

    /// The same as far as it can be known without much reading. None can also mean that it is not known: the hook
    /// has many or large files.
    pub(crate) fn refusal_at_a_glance(&self, hook: &Hook, caller: &Caller) -> Option<Refusal> {
        if let Some(refusal) = self.refusal_of_text(hook) {
            return Some(refusal);
        }
        if self.trusted || self.is_small(hook, caller) {
            return self.refusal_now(hook, caller);
        }
        // If the approvals are lost, its files do not matter.
        let is_lost = !self.store.is_readable();
        is_lost.then(|| self.refusal_for(hook, &Evidence::default())).flatten()
    }

    /// Why an entry of a project must not even be read in full, if so: the user has not approved its text.
    pub(crate) fn refusal_of_text(&self, hook: &Hook) -> Option<Refusal> {
        let project = self.project.as_deref().filter(|_| !self.trusted)?;
        let entry_digest = entry_digest(&hook.written);
        if self.store.has_approved_text(project, &hook.on, &entry_digest) {
            // The file of approvals could not be read when the entry was, and can be read now.
            let unread = matches!(hook.action, Action::Unapproved { .. });
            return unread
                .then(|| self.refuse(Approval::Lapsed, "its approval was just found again"));
        }
        self.refusal_for(hook, &Evidence { entry_digest, ..Evidence::default() })
    }

    /// The check that the plugin host makes before it starts one of the plugins of `hook`; none if all may
    /// start. A plugin that is not loaded any more is refused too.
    pub fn may_start(&self, hook: &Hook, caller: &Caller) -> Option<MayStart> {
        if self.trusted {
            return None;
        }
        let (check, hook, caller) = (self.clone(), hook.clone(), caller.clone());
        Some(MayStart::new(move |folder| {
            let evidence = check.evidence(&hook, &caller)?;
            let is_loaded = evidence.plugin_folders.iter().any(|loaded| loaded == folder);
            check.refusal_for(&hook, &evidence).or_else(|| (!is_loaded).then(|| check.lapsed()))
        }))
    }

    /// Every entry of the file that needs an approval.
    pub fn items(&self, file: &HooksFile, caller: &Caller) -> Vec<ApprovalItem> {
        file.hooks.iter().filter_map(|hook| self.item(hook, caller)).collect()
    }

    /// The entry of `hook`, if it needs an approval.
    pub fn item(&self, hook: &Hook, caller: &Caller) -> Option<ApprovalItem> {
        let evidence = self.evidence(hook, caller)?;
        let refusal = if self.trusted { None } else { self.refusal_for(hook, &evidence) };
        let (event, command) = (hook.on.to_string(), hook.what_runs());
        let changes = self.store.changes(self.key(&event, &command), &evidence);
        let approval = refusal.map_or(Approval::Approved, |refusal| refusal.approval);
        Some(ApprovalItem::new(self.project.clone(), hook, evidence, approval, changes))
    }

    fn key<'a>(&'a self, event: &'a str, command: &'a str) -> EntryKey<'a> {
        EntryKey { project: self.project.as_deref(), event, command }
    }

    fn evidence(&self, hook: &Hook, caller: &Caller) -> Option<Evidence> {
        let Self { store, base, lists, .. } = self;
        let (hashes, manifests) = (&store.hashes, &store.manifests);
        let caller = &store.hook_caller(caller, hook.pass_env());
        evidence::collect(hook, Lookup { caller, base, lists, hashes, manifests })
    }

    fn refusal_for(&self, hook: &Hook, evidence: &Evidence) -> Option<Refusal> {
        if evidence.too_many {
            let why = "it has too many files to be approved; name a smaller directory".to_owned();
            return Some(Refusal { checked: true, ..self.unchecked(hook, why) });
        }
        let (event, command) = (hook.on.to_string(), hook.what_runs());
        let key = self.key(&event, &command);
        match self.store.approval(key, evidence) {
            Approval::Approved if self.store.has_lost_path() => Some(
                self.refuse(Approval::Lapsed, "environment.json, your own PATH, cannot be read"),
            ),
            // By an agent or by accident, or it was approved by a version that did not look: it is a guard, and cannot
            // be asked.
            Approval::Approved if evidence.not_executable.is_some() => Some(Refusal {
                why: "its program is not executable; a person has to run `chmod +x` on it"
                    .to_owned(),
                ..self.lapsed()
            }),
            Approval::Approved => None,
            Approval::NotApproved => {
                Some(self.refuse(Approval::NotApproved, "it has not been approved"))
            }
            Approval::Lapsed => {
                let only_gateway_hooks = self.store.has_only_gateway_hooks(key);
                let refusal = if self.store.is_readable() {
                    self.lapsed()
                } else {
                    self.refuse(Approval::Lapsed, "the approvals cannot be read")
                };
                Some(Refusal { only_gateway_hooks, ..refusal })
            }
            Approval::Lost => {
                let only_gateway_hooks = self.store.has_only_gateway_hooks(key);
                let what = if self.store.is_empty() && self.store.has_unreadable_log() {
                    "consent.json holds no approval, and the log, which tells whether one is missing, cannot be read"
                } else {
                    "its approval is gone from consent.json although it was never revoked"
                };
                Some(Refusal { only_gateway_hooks, ..self.refuse(Approval::Lost, what) })
            }
        }
    }

    /// The refusal of an entry whose files cannot be checked. An earlier approval counts as lapsed (which
    /// blocks), not as absent: adding files must not switch a guard off.
    fn unchecked(&self, hook: &Hook, why: String) -> Refusal {
        let (event, command) = (hook.on.to_string(), hook.what_runs());
        let key = self.key(&event, &command);
        let nothing_found =
            Evidence { entry_digest: entry_digest(&hook.written), ..Evidence::default() };
        let (approval, only_gateway_hooks) = match self.store.approval(key, &nothing_found) {
            Approval::NotApproved => (Approval::NotApproved, false),
            Approval::Approved | Approval::Lapsed | Approval::Lost => {
                (Approval::Lapsed, self.store.has_only_gateway_hooks(key))
            }
        };
        Refusal { approval, why, checked: false, only_gateway_hooks }
    }

    fn lapsed(&self) -> Refusal {
        self.refuse(Approval::Lapsed, "it has changed since it was approved")
    }

    fn refuse(&self, approval: Approval, what: &str) -> Refusal {
        // The model may read this. It must not approve anything itself, so a person is named; and a path could
        // contain instructions to it, so none is shown.
        let place = if self.project.is_some() { ", inside the project" } else { "" };
        let why = format!("{what}; a person has to check it with `hookbus hooks approve`{place}");
        Refusal { approval, why, checked: true, only_gateway_hooks: false }
    }

    fn needs_log(&self, hook: &Hook) -> bool {
        let runs_something = matches!(hook.action, Action::Command(_) | Action::Python(_));
        let (event, command) = (hook.on.to_string(), hook.what_runs());
        runs_something && self.store.needs_log(self.key(&event, &command))
    }

    fn is_small(&self, hook: &Hook, caller: &Caller) -> bool {
        let mut budget = SMALL;
        let caller = &self.store.hook_caller(caller, hook.pass_env());
        let listed = |files: &[String], budget: &mut Budget| {
            files.iter().all(|file| budget.covers(&caller.resolve(file, &self.base)))
        };
        match &hook.action {
            Action::Command(command) => {
                let mut named = hook.possible_dialects().into_iter().flat_map(|dialect| {
                    let words = dialect.argv(&command.text, caller, &self.base).unwrap_or_default();
                    script_paths(&words, caller).files
                });
                named.all(|path| budget.covers(&path)) && listed(&command.files, &mut budget)
            }
            Action::Python(python) => {
                budget.covers(&caller.resolve(&python.folder, &self.base))
                    && listed(&python.files, &mut budget)
            }
            // These have no files.
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Analytics(_)
            | Action::Broken(_)
            | Action::Unapproved { .. } => true,
        }
    }
}

/// How many files and bytes may still be read.
struct Budget {
    files: usize,
    bytes: u64,
}

impl Budget {
    /// Whether `path` and everything below it is within the budget; stops as soon as it is not.
    fn covers(&mut self, path: &Path) -> bool {
        let Some(files) = self.files.checked_sub(1) else { return false };
        self.files = files;
        let Ok(metadata) = fs::metadata(path) else { return true };
        if metadata.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            return entries.into_iter().all(|entry| self.covers(&entry.path()));
        }
        let bytes = self.bytes.checked_sub(metadata.len());
        self.bytes = bytes.unwrap_or(0);
        bytes.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    fn check_of(text: &str, base: &Path) -> (HooksFile, ApprovalCheck) {
        let file = HooksFile::parse(text, base).expect("hooks");
        let check = ApprovalCheck::new(Arc::new(ApprovalStore::beside(base)), &file);
        (file, check)
    }

    /// Sparse files: much to read, nothing on the disk.
    fn fill(folder: &Path) {
        for n in 0..200 {
            let file = fs::File::create(folder.join(format!("{n}.py"))).expect("a file");
            file.set_len(1 << 20).expect("a large file");
        }
    }

    fn plugin(folder: &Path) {
        fs::create_dir_all(folder).expect("a directory");
        fs::write(folder.join("plugin.yaml"), "name: p").expect("a manifest");
        fs::write(folder.join("__init__.py"), "").expect("code");
    }

    #[test]
    fn files_that_cannot_be_checked_in_time_refuse_the_hook() {
        let home = tempfile::tempdir().expect("a home");
        plugin(&home.path().join("p"));
        fill(&home.path().join("p"));
        let text = "hooks: { tool.before: [{ python: ./p }, { command: ls }] }";
        let (file, check) = check_of(text, home.path());
        let caller = Caller { cwd: home.path().to_owned(), ..Caller::default() };
        let runtime = runtime();
        let refusal = |hook: usize, limit: Duration| {
            runtime.block_on(check.refusal(&file.hooks[hook], &caller, limit)).expect("a refusal")
        };
        let timed_out = refusal(0, Duration::from_millis(1));
        assert!(
            !timed_out.checked && timed_out.why.contains("could not be checked"),
            "{timed_out:?}"
        );
        assert_eq!(timed_out.approval, Approval::NotApproved);
        let small = refusal(1, Duration::ZERO);
        assert!(small.checked && small.why.contains("has not been approved"), "{small:?}");
        runtime.shutdown_background();
    }

    #[test]
    fn an_approved_hook_that_cannot_be_checked_any_more_has_lapsed() {
        let home = tempfile::tempdir().expect("a home");
        plugin(&home.path().join("p"));
        let (file, check) = check_of("hooks: { tool.before: [{ python: ./p }] }", home.path());
        let caller = Caller { cwd: home.path().to_owned(), ..Caller::default() };
        let items = check.items(&file, &caller);
        let text = check.store().with(&[&items[0]], &items, Time::from_micros(1)).expect("a text");
        fs::write(check.store().file(), text).expect("an approval");
        let runtime = runtime();
        let approval = || {
            let limit = Duration::from_millis(1);
            runtime.block_on(check.refusal(&file.hooks[0], &caller, limit)).map(|it| it.approval)
        };
        assert_eq!(approval(), None);
        fill(&home.path().join("p"));
        assert_eq!(approval(), Some(Approval::Lapsed));
        runtime.shutdown_background();
    }
}
