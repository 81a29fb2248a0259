//! The plan of `connect`: the bridge in Hermes' `plugins` and `hooks`, its name in `config.yaml`, and shell hooks that
//! are removed because they call the bus already, or moved to `hookbus.yaml`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hookbus::config::HooksFile;
use hookbus::event::Time;
use serde_json::json;

use super::bridge::{BridgeOptions, NAME};
use super::double_loading::{DoubleLoaded, double_loaded};
use super::files::{self, PendingWrite};
use super::hooks_move::{self, MovedHook};
use super::orphaned::{self, OrphanedBridge, Unrecorded};
use super::record::{FileChange, Record};
use super::shell_wire::{BusCall, bus_call};
use super::{bridge_files, consent, hermes, shell_hooks, yaml};
use crate::hooks::current_caller;

/// What to do with the shell hooks in Hermes' own configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExistingHooks {
    /// Leave them there.
    Keep,
    /// Move those that the user has approved in Hermes to `hookbus.yaml`.
    Move,
}

/// What the user asked for.
#[derive(Debug, Clone)]
pub(super) struct ConnectRequest {
    pub(super) hermes: PathBuf,
    pub(super) hookbus: PathBuf,
    pub(super) program: PathBuf,
    /// `None`: as in the last `connect`; `Keep` if there was none.
    pub(super) hooks: Option<ExistingHooks>,
    pub(super) bridge: BridgeOptions,
    pub(super) at: Time,
}

/// Everything that `connect` is going to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectPlan {
    pub(super) record: Record,
    pub(super) writes: Vec<PendingWrite>,
    /// Copies of what users wrote into files of the bridge.
    pub(super) backups: Vec<PendingWrite>,
    pub(super) remarks: Vec<String>,
}

impl ConnectPlan {
    /// Makes the plan; `known` is the record of the last `connect`.
    pub(super) fn make(request: &ConnectRequest, known: &Record) -> Result<Self> {
        let mut plan = Self::default();
        plan.record.created_folders.clone_from(&known.created_folders);
        let config = request.hermes.join("config.yaml");
        let orphan = orphaned_bridge(request, known)?;
        let EditedConfig { before, after, moved } = plan
            .edit_config(&config, request, known, orphan.as_ref())
            .with_context(|| stays(&config))?;
        plan.put_into_hooks_file(&moved, request, known)?;
        plan.add(config, before, after)?;
        bridge_files::add(&mut plan, request, known, orphan.as_ref())?;
        plan.remarks.extend(double_loading_remarks(request)?);
        Ok(plan)
    }

    /// Plans to write `after`; the file holds `before` without us.
    pub(super) fn add(
        &mut self,
        path: PathBuf,
        before: Option<String>,
        after: String,
    ) -> Result<()> {
        let now = files::read(&path)?;
        if now.as_ref() != Some(&after) {
            let then = Some(after.clone());
            self.writes.push(PendingWrite { path: path.clone(), now, then });
        }
        self.record.changes.push(FileChange { path, before, after });
        Ok(())
    }

    /// Edits Hermes' configuration as it is now.
    fn edit_config(
        &mut self,
        config: &Path,
        request: &ConnectRequest,
        known: &Record,
        orphan: Option<&OrphanedBridge>,
    ) -> Result<EditedConfig> {
        let now = files::read(config)?;
        let before = match (known.change_of(config), orphan, &now) {
            (Some(change), _, Some(now)) => hermes::restored_config(change, now)?,
            (None, Some(orphan), Some(now)) => Some(orphan.removed_from(now)?),
            (_, _, now) => now.clone(),
        };
        self.record.removed_hooks = shell_hooks::missing(
            &known.all_removed_hooks(config),
            &shell_hooks::in_text(before.as_deref().unwrap_or_default()),
        );
        let mut after = without_second_wire(&now.unwrap_or_default())?;
        let mut moved = Vec::new();
        let was_moved = known.change_of(&hooks_file(request)).is_some();
        let last_time = if was_moved { ExistingHooks::Move } else { ExistingHooks::Keep };
        if request.hooks.unwrap_or(last_time) == ExistingHooks::Move {
            let approvals = files::read(&request.hermes.join("shell-hooks-allowlist.json"))?;
            (after, moved) = hooks_move::take_out(&after, approvals.as_deref(), &mut self.remarks)?;
        }
        if !hermes::is_enabled(&after) {
            after = yaml::append(&after, "plugins", "enabled", &json!(NAME))?;
        }
        Ok(EditedConfig { before, after, moved })
    }

    /// Adds moved hooks to `hookbus.yaml`, with their approvals. What the last `connect` did there stays recorded as long
    /// as the file has not changed since; afterwards all of it belongs to the user.
    fn put_into_hooks_file(
        &mut self,
        moved: &[MovedHook],
        request: &ConnectRequest,
        known: &Record,
    ) -> Result<()> {
        let file = hooks_file(request);
        let (last, now) = (known.change_of(&file), files::read(&file)?);
        if moved.is_empty() && (last.is_none() || now.is_none()) {
            return Ok(());
        }
        let after = hooks_move::put_in(now.as_deref().unwrap_or_default(), moved)
            .with_context(|| stays(&file))?;
        let unchanged = last.filter(|change| now.as_ref() == Some(&change.after));
        let approvals = consent::file(&request.hookbus);
        let last_approvals = known.change_of(&approvals).filter(|_| unchanged.is_some());
        let approved = consent::bring_along(
            &after,
            moved,
            &request.hookbus,
            last_approvals,
            request.at,
            &mut self.remarks,
        )?;
        let before = unchanged.map_or(now, |change| change.before.clone());
        self.add(file, before, after)?;
        if let Some(FileChange { path, before, after }) = approved {
            self.add(path, before, after)?;
        }
        Ok(())
    }
}

/// Hermes' configuration without us and with us, and the hooks that leave it for `hookbus.yaml`.
struct EditedConfig {
    before: Option<String>,
    after: String,
    moved: Vec<MovedHook>,
}

fn hooks_file(request: &ConnectRequest) -> PathBuf {
    request.hookbus.join("hookbus.yaml")
}

fn stays(path: &Path) -> String {
    format!("{} stays as it is", path.display())
}

/// A bridge without a record in any home: what it put into Hermes' files is not the user's.
fn orphaned_bridge(request: &ConnectRequest, known: &Record) -> Result<Option<OrphanedBridge>> {
    if !known.changes.is_empty() {
        return Ok(None);
    }
    Ok(match orphaned::find(&request.hermes, &request.hookbus)? {
        Unrecorded::Orphaned(bridge) => Some(bridge),
        Unrecorded::Nothing | Unrecorded::OfOtherHome(_) => None,
    })
}

/// A hook that has to be changed by hand: with the bridge beside it, its event would arrive twice.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{command}` on {event} calls the bus in a script or together with other work, so with the bridge that event would arrive twice; \
     take `hookbus hook hermes` out of it by hand, or all of it, then run this again"
)]
struct CallsBusToo {
    event: String,
    command: String,
}

/// The configuration without shell hooks that call the bus, whose events would arrive twice, and without the bridge's
/// name under `plugins: disabled:`.
fn without_second_wire(text: &str) -> Result<String> {
    let config = yaml::read(text)?;
    let mut paths = Vec::new();
    for (path, hook) in shell_hooks::located(&config) {
        match bus_call(&hook.entry, "hermes") {
            BusCall::No => {}
            BusCall::Only => paths.push(path),
            BusCall::WithOtherWork => {
                let command = hook.command().to_owned();
                return Err(CallsBusToo { event: hook.event, command }.into());
            }
        }
    }
    paths.extend(hermes::listed_in(&config, "disabled"));
    Ok(yaml::remove(text, &paths)?)
}

/// A remark about each plugin that both Hermes and the bus would run.
fn double_loading_remarks(request: &ConnectRequest) -> Result<Vec<String>> {
    let file = hooks_file(request);
    let text = files::read(&file)?.unwrap_or_default();
    let Ok(hooks) = HooksFile::parse(&text, &request.hookbus) else { return Ok(Vec::new()) };
    let double = double_loaded(&request.hermes, &hooks, &file, &current_caller()).into_iter();
    Ok(double.map(|DoubleLoaded { plugin, why }| format!("the plugin `{plugin}`: {why}")).collect())
}
