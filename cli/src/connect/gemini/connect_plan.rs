//! The plan of `connect gemini`: one hook per event in a `settings.json`, in place of every other hook there that calls
//! the bus, because events would arrive twice.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hookbus::dialect::event_names;
use hookbus::event::{Agent, OnFailure};
use serde_json::{Value, json};

use super::super::connect_plan::ConnectPlan;
use super::super::files;
use super::super::record::{FileChange, Record};
use super::super::shell_hooks::ShellHook;
use super::bus_hooks::{self, BusHook, Call};
use super::location::Location;
use super::remarks;
use super::settings_text::{self, HookEdit, SettingsError};
use super::wire::{DEFAULT_DEADLINE, Wire};

/// What the user asked for.
#[derive(Debug, Clone)]
pub(super) struct ConnectRequest {
    pub(super) location: Location,
    /// The `settings.json` of the user, if that is another one.
    pub(super) user: Option<Location>,
    pub(super) hookbus: PathBuf,
    pub(super) program: PathBuf,
    /// `None`: as in the last `connect`.
    pub(super) deadline: Option<f64>,
    /// `None`: as in the last `connect`.
    pub(super) on_failure: Option<OnFailure>,
}

/// A hook that has to be changed by hand: beside the new one, its event would arrive twice.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{command}` on {event} calls the bus in a script or together with other work, so that event would arrive twice; \
     take `hookbus hook gemini` out of it by hand, or all of it, then run this again"
)]
struct CallsBusToo {
    event: String,
    command: String,
}

/// Makes the plan; `known` is the record of the last `connect`.
pub(super) fn make(request: &ConnectRequest, known: &Record) -> Result<ConnectPlan> {
    let file = &request.location.file;
    let stays = || format!("{} stays as it is", file.display());
    let now = files::read(file)?;
    let settings = settings_text::read(now.as_deref().unwrap_or_default()).with_context(stays)?;
    let found = bus_hooks::find(&settings);
    if let Some(hook) = found.iter().find(|hook| hook.call == Call::WithOtherWork) {
        let BusHook { place, command, .. } = hook.clone();
        return Err(CallsBusToo { event: place.event, command }).with_context(stays);
    }
    let wire = wire(request, &found);
    wire.check()?;
    let edit = edit(&settings, &found, &wire);
    let after = match &now {
        Some(now) if edit.remove.is_empty() && edit.append.is_empty() => now.clone(),
        now => settings_text::edit(now.as_deref().unwrap_or("{}\n"), &edit, &settings)
            .with_context(stays)?,
    };
    let before = match (known.change_of(file), now) {
        (Some(change), Some(now)) => restored(change, &now, &request.hookbus)?,
        // Without a record: what `connect` wrote for this home is not the user's.
        (None, Some(now)) => {
            Some(without_wires(&now, &json!({}), |wire| wire.home == request.hookbus)?)
        }
        (_, None) => None,
    };
    let mut plan = ConnectPlan::default();
    plan.record.created_folders.clone_from(&known.created_folders);
    plan.record.removed_hooks =
        known.removed_hooks.iter().cloned().chain(by_hand(&found)).collect();
    plan.remarks = remarks::about(request, &settings, &wire);
    plan.add(file.clone(), before, after)?;
    Ok(plan)
}

/// The calls that the user has written.
pub(super) fn by_hand(found: &[BusHook]) -> impl Iterator<Item = ShellHook> {
    let by_hand = found.iter().filter(|hook| !matches!(hook.call, Call::Wired(_)));
    by_hand.map(|BusHook { place, command, .. }| ShellHook {
        event: place.event.clone(),
        entry: json!({"command": command}),
    })
}

/// The call to write. What the request leaves open stays as the last `connect` from this home wrote it.
fn wire(request: &ConnectRequest, found: &[BusHook]) -> Wire {
    let last = found.iter().find_map(|hook| match &hook.call {
        Call::Wired(wire) if wire.home == request.hookbus => Some(wire.clone()),
        Call::Wired(_) | Call::ByHand | Call::WithOtherWork => None,
    });
    let (deadline, on_failure) =
        last.map_or((DEFAULT_DEADLINE, OnFailure::Allow), |wire| (wire.deadline, wire.on_failure));
    Wire {
        program: request.program.clone(),
        home: request.hookbus.clone(),
        deadline: request.deadline.unwrap_or(deadline),
        on_failure: request.on_failure.unwrap_or(on_failure),
    }
}

/// Each event gets the new hook, unless that is the only one there that calls the bus.
fn edit(settings: &Value, found: &[BusHook], wire: &Wire) -> HookEdit {
    let mut edit = HookEdit::default();
    for event in event_names(Agent::Gemini) {
        let group = wire.group(event);
        let of_event: Vec<&BusHook> =
            found.iter().filter(|hook| hook.place.event == event).collect();
        let is_done = match of_event.as_slice() {
            [only] => settings["hooks"][event][only.place.group] == group,
            [] | [..] => false,
        };
        if !is_done {
            edit.remove.extend(of_event.into_iter().map(|hook| hook.place.clone()));
            edit.append.push((event.to_owned(), group));
        }
    }
    edit
}

/// The text without us: the one from before `connect` if nothing has changed since, otherwise the present text without
/// the hooks for this home. None: no file.
pub(super) fn restored(change: &FileChange, now: &str, hookbus: &Path) -> Result<Option<String>> {
    if now == change.after {
        return Ok(change.before.clone());
    }
    let base = change.before.as_deref().map(settings_text::read).transpose();
    let base = base.ok().flatten().unwrap_or_default();
    let left = without_wires(now, &base, |wire| wire.home == hookbus)?;
    let is_ours = change.before.is_none() && left.split_whitespace().collect::<String>() == "{}";
    Ok((!is_ours).then_some(left))
}

/// The text without the hooks that `connect` wrote, as far as `is_ours` is true of them.
pub(super) fn without_wires(
    text: &str,
    base: &Value,
    is_ours: impl Fn(&Wire) -> bool,
) -> Result<String, SettingsError> {
    let found = bus_hooks::find(&settings_text::read(text)?).into_iter();
    let ours = found.filter(|hook| matches!(&hook.call, Call::Wired(wire) if is_ours(wire)));
    let remove: Vec<_> = ours.map(|hook| hook.place).collect();
    if remove.is_empty() {
        return Ok(text.to_owned());
    }
    settings_text::edit(text, &HookEdit { remove, ..HookEdit::default() }, base)
}
