//! Approvals that move with hooks: what the user has approved in Hermes counts here too, as long as the script has not
//! changed since. They are removed when the hooks are.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use chrono::{DateTime, Utc};
use hookbus::config::{Approval, HooksFile};
use hookbus::consent::{ApprovalCheck, ApprovalItem, ApprovalStore};
use hookbus::event::Time;
use hookbus::log::BusRow;
use serde_json::{Value, json};

use super::files::{self, PendingWrite};
use super::hooks_move::MovedHook;
use super::record::FileChange;
use crate::bus_rows;
use crate::hooks::current_caller;
use crate::settings::Settings;

/// Hermes records the time of a script in whole seconds.
const PRECISION: Duration = Duration::from_secs(2);

/// The file that keeps approvals in the home of hookbus.
pub(super) fn file(hookbus: &Path) -> PathBuf {
    ApprovalStore::beside(hookbus).file().to_owned()
}

/// Approves the moved hooks in `hooks`, the new text of `hookbus.yaml`. None if the file of approvals stays as it is.
/// `known` is what the last `connect` did to it.
pub(super) fn bring_along(
    hooks: &str,
    moved: &[MovedHook],
    hookbus: &Path,
    known: Option<&FileChange>,
    at: Time,
    remarks: &mut Vec<String>,
) -> Result<Option<FileChange>> {
    let Ok(hooks) = HooksFile::parse(hooks, hookbus) else { return Ok(None) };
    let check = ApprovalCheck::new(Arc::new(ApprovalStore::beside(hookbus)), &hooks);
    let all = check.items(&hooks, &current_caller());
    let mut approved = Vec::new();
    for entry in all.iter().filter(|entry| entry.approval != Approval::Approved) {
        let is_its = |moved: &&MovedHook| {
            moved.hook.event == entry.event && moved.hook.command() == entry.command
        };
        match moved.iter().find(is_its) {
            Some(moved) if has_changed(entry, moved.script_time.as_deref()) => {
                remarks.push(format!(
                    "`{}` has changed since you approved it in Hermes; review it with `hookbus hooks approve`",
                    entry.command
                ));
            }
            Some(_) if !entry.too_many => approved.push(entry),
            Some(_) | None => {}
        }
    }
    let path = file(hookbus);
    let now = files::read(&path)?;
    let before = match (known, &now) {
        (Some(known), Some(now)) => restored(known, now),
        (_, now) => now.clone(),
    };
    let after = if approved.is_empty() {
        now.filter(|_| known.is_some())
    } else {
        Some(check.store().with(&approved, &all, at)?)
    };
    Ok(after.map(|after| FileChange { path, before, after }))
}

/// Records the approvals that these writes add and remove, as `hooks approve` and `hooks revoke` do.
pub(super) fn record_changes(writes: &[PendingWrite], settings: &Settings) -> Result<()> {
    let home = files::canonical(&settings.home);
    let store = ApprovalStore::beside(&home);
    let written = writes.iter().filter(|write| write.path == store.file());
    let rows: Vec<BusRow> = written
        .flat_map(|write| store.rows_of_change(write.now.as_deref(), write.then.as_deref()))
        .collect();
    if rows.is_empty() { Ok(()) } else { bus_rows::record(&rows, settings) }
}

/// Whether a file of `entry` was modified after the time that Hermes recorded for the script.
fn has_changed(entry: &ApprovalItem, approved: Option<&str>) -> bool {
    let Some(approved) = approved.and_then(|text| DateTime::parse_from_rfc3339(text).ok()) else {
        return false;
    };
    let approved = SystemTime::from(approved.with_timezone(&Utc)) + PRECISION;
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    entry.files.iter().any(|file| modified(&file.path).is_ok_and(|at| at > approved))
}

/// The file of approvals without those that `connect` added; none: no file.
pub(super) fn restored(change: &FileChange, now: &str) -> Option<String> {
    if now == change.after {
        return change.before.clone();
    }
    let rows = |text: &str| {
        let json: Value = serde_json::from_str(text).unwrap_or_default();
        json["approvals"].as_array().cloned().unwrap_or_default()
    };
    let before = rows(change.before.as_deref().unwrap_or_default());
    let after = rows(&change.after);
    let is_ours = |row: &Value| after.contains(row) && !before.contains(row);
    let left: Vec<Value> = rows(now).into_iter().filter(|row| !is_ours(row)).collect();
    if left.is_empty() && change.before.is_none() {
        return None;
    }
    Some(format!("{:#}\n", json!({"approvals": left})))
}
