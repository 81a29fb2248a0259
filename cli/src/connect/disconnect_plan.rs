//! The plan of `disconnect`. A file that is as `connect` wrote it gets its old text back, byte for byte. From any other
//! only what is ours is taken out. Hooks that cannot be put back are written to a file, with instructions.

use std::path::Path;

use anyhow::{Context, Result};

use super::bridge::NAME;
use super::files::{self, PendingWrite};
use super::record::{FileChange, Record};
use super::shell_hooks::{self, ShellHook};
use super::{consent, hermes, local_edits, yaml};

/// Everything that `disconnect` is going to write and remove.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DisconnectPlan {
    pub(super) known: Record,
    pub(super) writes: Vec<PendingWrite>,
    /// Copies of what users wrote into files that are removed, and hooks that cannot be put back.
    pub(super) backups: Vec<PendingWrite>,
    pub(super) remarks: Vec<String>,
}

impl DisconnectPlan {
    /// Makes the plan from the record of a connection.
    pub(super) fn make(known: Record, hermes: &Path, hookbus: &Path) -> Result<Self> {
        let mut plan = Self { known, ..Self::default() };
        let config = hermes.join("config.yaml");
        let hooks_file = hookbus.join("hookbus.yaml");
        let approvals = consent::file(hookbus);
        let (mut config_then, mut hooks_then) = (None, files::read(&hooks_file)?);
        let hooks_change = plan.known.change_of(&hooks_file);
        let hooks_restored =
            hooks_change.is_some_and(|change| hooks_then.as_ref() == Some(&change.after));
        for change in plan.known.changes.clone() {
            let FileChange { path, before, after } = &change;
            let Some(now) = files::read(path)? else { continue };
            let is_unchanged = now == *after;
            let then = if *path == config {
                config_then =
                    hermes::restored_config(&change, &now).with_context(|| by_hand(&config))?;
                config_then.clone()
            } else if *path == hooks_file {
                if is_unchanged {
                    hooks_then.clone_from(before);
                }
                hooks_then.clone()
            } else if *path == approvals {
                // Hooks that stay in hookbus.yaml stay approved.
                if hooks_restored { consent::restored(&change, &now) } else { Some(now.clone()) }
            } else {
                if !is_unchanged && Some(&now) != before.as_ref() {
                    plan.back_up_edited(path, &now);
                }
                before.clone()
            };
            plan.change(path, now, then);
        }
        plan.report_removed_hooks(&config, config_then.as_deref(), hookbus)?;
        plan.report_moved_hooks(&config, &hooks_file, hooks_then.as_deref());
        Ok(plan)
    }

    /// Plans to write or remove a file, unless it stays as it is.
    pub(super) fn change(&mut self, path: &Path, now: String, then: Option<String>) {
        if then.as_ref() != Some(&now) {
            self.writes.push(PendingWrite { path: path.to_owned(), now: Some(now), then });
        }
    }

    /// Keeps a copy of a file of the bridge that the user has edited.
    pub(super) fn back_up_edited(&mut self, path: &Path, text: &str) {
        let (backup, remark) = local_edits::edited(path, text);
        self.backups.push(backup);
        self.remarks.push(remark);
    }

    /// Hooks that `connect` removed from Hermes' configuration, and that the restored configuration does not contain.
    fn report_removed_hooks(
        &mut self,
        config: &Path,
        then: Option<&str>,
        hookbus: &Path,
    ) -> Result<()> {
        let then = then.unwrap_or_default();
        let before = self.known.change_of(config).and_then(|change| change.before.as_deref());
        if is_disabled(before.unwrap_or_default()) && !is_disabled(then) {
            self.remarks.push(format!(
                "`{NAME}` was under `plugins: disabled:` in {} before it was connected, and is not put back there",
                config.display()
            ));
        }
        let removed = self.known.all_removed_hooks(config);
        let missing = shell_hooks::missing(&removed, &shell_hooks::in_text(then));
        if missing.is_empty() {
            return Ok(());
        }
        let text = shell_hooks::to_yaml(&missing)?;
        let folder = config.parent().filter(|folder| folder.is_dir()).unwrap_or(hookbus);
        let note = format!(
            "# Hooks that `hookbus connect` took out of {}, which has changed since.\n",
            config.display()
        );
        let backup =
            local_edits::backup(&folder.join("config.yaml"), "removed-hooks", &(note + &text));
        self.remarks.push(format!(
            "{} has changed since it was connected, so these hooks are not put back. They are kept in {}; to use them again, add them to the configuration by hand:\n{}",
            config.display(),
            backup.path.display(),
            text.trim_end()
        ));
        self.backups.push(backup);
        Ok(())
    }

    /// Hooks that `connect` moved to `hookbus.yaml`, and that are in the text that it will have.
    fn report_moved_hooks(&mut self, config: &Path, hooks_file: &Path, then: Option<&str>) {
        if self.known.change_of(hooks_file).is_none() {
            return;
        }
        let removed = self.known.all_removed_hooks(config);
        let was_moved = |hook: &ShellHook| removed.iter().any(|other| other.runs_the_same(hook));
        let left = shell_hooks::in_text(then.unwrap_or_default()).into_iter().filter(was_moved);
        let left: Vec<String> =
            left.map(|hook| format!("`{}` on {}", hook.command(), hook.event)).collect();
        if !left.is_empty() {
            self.remarks.push(format!(
                "{} has changed since hooks were moved there, so these stay in it: {}. Remove them there if Hermes runs them itself again",
                hooks_file.display(),
                left.join(", ")
            ));
        }
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.known.changes.is_empty()
    }

    /// Carries it out, and removes the record.
    pub(super) fn carry_out(&self, record_file: &Path) -> Result<()> {
        self.backups.iter().chain(&self.writes).try_for_each(PendingWrite::apply)?;
        files::remove_folders(&self.known.created_folders);
        files::remove(record_file)?;
        let folder = record_file.parent().map(Path::to_owned);
        files::remove_folders(&folder.into_iter().collect::<Vec<_>>());
        Ok(())
    }
}

fn is_disabled(config: &str) -> bool {
    yaml::read(config).is_ok_and(|config| hermes::listed_in(&config, "disabled").is_some())
}

fn by_hand(config: &Path) -> String {
    format!(
        "nothing has changed: {} cannot be edited. Fix it, or take `{NAME}` out of its `plugins: enabled:` by hand, then run this again",
        config.display()
    )
}
