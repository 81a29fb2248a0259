//! The consent that hooks bring along when they move: what a person agreed to in Hermes they need not agree to
//! again, as long as the script is what it was then. It goes when the hooks go back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use chrono::{DateTime, Utc};
use hookbus::decide::{Agreeable, Agreement, Consents, Hooks};
use hookbus::event::Time;
use serde_json::{Value, json};

use super::files::{self, Change};
use super::hooks_move::Moved;
use crate::hooks::here;

/// Hermes keeps the time of a script in whole seconds.
const ABOUT: Duration = Duration::from_secs(2);

/// Where consent is kept in the home of hookbus.
pub(super) fn file(hookbus: &Path) -> PathBuf {
    Consents::beside(hookbus).file().to_owned()
}

/// What the file of consents becomes when these hooks are in `hooks`, the text of `hookbus.yaml`; none where
/// it stays as it is. `known` is what an earlier connection did to it, `at` is now.
pub(super) fn bring_along(
    hooks: &str,
    moved: &[Moved],
    hookbus: &Path,
    known: Option<&Change>,
    at: Time,
    remarks: &mut Vec<String>,
) -> Result<Option<Change>> {
    let Ok(hooks) = Hooks::parse(hooks, hookbus) else { return Ok(None) };
    let all = hooks.agreeables(&here());
    let waiting = |entry: &&Agreeable| entry.agreement != Agreement::Given;
    let mut agreed = Vec::new();
    for entry in all.iter().filter(waiting) {
        match moved.iter().find(|it| it.is(&entry.event, &entry.command)) {
            Some(hook) if has_changed(entry, hook.script_time.as_deref()) => remarks.push(format!(
                "`{}` has changed since you agreed to it in Hermes; look at it with `hookbus hooks approve`",
                entry.command
            )),
            Some(_) if !entry.too_many => agreed.push(entry),
            Some(_) | None => {}
        }
    }
    let path = file(hookbus);
    let now = files::read(&path)?;
    let before = known.map_or_else(|| now.clone(), |known| taken_back(known, now.as_deref()));
    let after = if agreed.is_empty() {
        now.filter(|_| known.is_some())
    } else {
        let text = hooks.consents.with(&agreed, &all, at);
        Some(text.map_err(anyhow::Error::msg)?)
    };
    Ok(after.map(|after| Change { path, before, after }))
}

/// Whether a file behind `entry` is younger than Hermes knew the script to be.
fn has_changed(entry: &Agreeable, then: Option<&str>) -> bool {
    let Some(then) = then.and_then(|text| DateTime::parse_from_rfc3339(text).ok()) else {
        return false;
    };
    let then = SystemTime::from(then.with_timezone(&Utc)) + ABOUT;
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    entry.files.iter().any(|file| changed(&file.path).is_ok_and(|at| at > then))
}

/// What the file holds without the consent that came along; none: no file.
pub(super) fn taken_back(change: &Change, now: Option<&str>) -> Option<String> {
    let now = now?;
    if now == change.after {
        return change.before.clone();
    }
    let rows = |text: &str| {
        let json: Value = serde_json::from_str(text).unwrap_or_default();
        json["approvals"].as_array().cloned().unwrap_or_default()
    };
    let before = rows(change.before.as_deref().unwrap_or_default());
    let after = rows(&change.after);
    let ours = |row: &Value| after.contains(row) && !before.contains(row);
    let left: Vec<Value> = rows(now).into_iter().filter(|row| !ours(row)).collect();
    if left.is_empty() && change.before.is_none() {
        return None;
    }
    Some(format!("{:#}\n", json!({"approvals": left})))
}
