//! The plan of `disconnect gemini`. A file that is as `connect` wrote it gets its old text back, byte for byte. From any
//! other only our hooks are taken out, with the lists that `connect` made for them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::super::disconnect_plan::DisconnectPlan;
use super::super::files;
use super::super::record::Record;
use super::super::shell_hooks::{self, ShellHook};
use super::bus_hooks::{self, BusHook, Call};
use super::connect_plan::{by_hand, restored, without_wires};
use super::location::Location;
use super::settings_text;

/// Makes the plan; `known` is the record of the last `connect`.
pub(super) fn make(known: Record, location: &Location, hookbus: &Path) -> Result<DisconnectPlan> {
    let file = &location.file;
    let mut plan = DisconnectPlan { known, ..DisconnectPlan::default() };
    let Some(now) = files::read(file)? else { return Ok(plan) };
    let unreadable = || {
        format!(
            "nothing has changed: {} cannot be edited. Fix it, or take the hooks named `hookbus` out of it by hand",
            file.display()
        )
    };
    let then = match plan.known.change_of(file) {
        Some(change) => restored(change, &now, hookbus).with_context(unreadable)?,
        None => {
            let settings = settings_text::read(&now).with_context(unreadable)?;
            let found = bus_hooks::find(&settings);
            refuse_other_home(&found, location, hookbus)?;
            Some(without_wires(&now, &json!({}), |_| true).with_context(unreadable)?)
        }
    };
    let left = settings_text::read(then.as_deref().unwrap_or_default()).unwrap_or_default();
    let left: Vec<ShellHook> = by_hand(&bus_hooks::find(&left)).collect();
    let lost = shell_hooks::missing(&plan.known.removed_hooks, &left);
    let name = file.display();
    plan.remarks.extend(list(&lost).map(|calls| {
        format!("{name} has changed since it was connected, so these calls of the bus, which you had written by hand, are not put back: {calls}")
    }));
    plan.remarks.extend(list(&left).map(|calls| {
        format!(
            "these hooks in {name}, which you have written by hand, still call the bus: {calls}"
        )
    }));
    plan.change(file, now, then);
    Ok(plan)
}

/// Hooks that another home has a record about are disconnected from there, so that its user gets the old text back.
fn refuse_other_home(found: &[BusHook], location: &Location, hookbus: &Path) -> Result<()> {
    let other = found.iter().find_map(|hook| match &hook.call {
        Call::Wired(wire) if wire.home != hookbus => Some(&wire.home),
        Call::Wired(_) | Call::ByHand | Call::WithOtherWork => None,
    });
    let Some(other) = other.filter(|home| Record::file(home, "gemini", &location.file).is_file())
    else {
        return Ok(());
    };
    let home = other.to_string_lossy();
    let quoted = shlex::try_quote(&home).unwrap_or_else(|_| home.clone());
    bail!(
        "gemini was not connected from {}; run `hookbus --home {quoted} disconnect gemini{}`",
        hookbus.display(),
        location.option()
    )
}

/// The hooks for a remark; none if there are none.
fn list(hooks: &[ShellHook]) -> Option<String> {
    let texts: Vec<String> =
        hooks.iter().map(|hook| format!("`{}` on {}", hook.command(), hook.event)).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
