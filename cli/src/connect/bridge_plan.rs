//! The bridge's part of a connection: its files as they shall be, what somebody wrote into them kept, and what follows
//! from its settings said.

use std::path::PathBuf;

use anyhow::Result;

use super::bridge;
use super::edited::Kept;
use super::files::{self, Record};
use super::hermes::{Plan, Wanted};
use super::lost::{self, Left, Trace};

/// A bridge of ours that nobody knows of any more: it is not what Hermes had without us.
pub(super) fn left_behind(wanted: &Wanted, known: &Record) -> Result<Option<Left>> {
    if !known.changes.is_empty() {
        return Ok(None);
    }
    Ok(match lost::trace(&wanted.hermes, &wanted.hookbus)? {
        Trace::Left(left) => Some(left),
        Trace::None | Trace::Of(_) => None,
    })
}

/// Adds it to a plan.
pub(super) fn add_to(
    plan: &mut Plan,
    wanted: &Wanted,
    known: &Record,
    left: Option<&Left>,
) -> Result<()> {
    let left = left.map(Left::folders).unwrap_or_default();
    plan.record.made.extend(left.iter().cloned());
    let files = all(wanted)?;
    if files.iter().any(|(path, text)| path.ends_with(bridge::SETTINGS) && lets_pass(text)) {
        plan.remarks.push(
            "with `--without-daemon allow` the bridge starts no daemon, and while none is up every event passes unseen: \
             keep `hookbus serve` running, or connect with `--without-daemon hook`"
                .to_owned(),
        );
    }
    for (path, text) in files {
        let now = files::read(&path)?;
        let was_left = left.iter().any(|folder| path.starts_with(folder));
        let (before, written) = match known.of(&path) {
            Some(known) => (known.before.clone(), Some(&known.after)),
            None if was_left => (None, Some(&text)),
            None => (now.clone(), now.as_ref()),
        };
        // Settings that can be read are carried on.
        let is_carried_on =
            path.ends_with(bridge::SETTINGS) && bridge::settings_in(&path).is_object();
        let is_edited = |now: &&String| Some(*now) != written && **now != text && !is_carried_on;
        if let Some(edited) = now.as_ref().filter(is_edited) {
            let kept = Kept::beside(&path, edited);
            plan.remarks.push(kept.remark(&path));
            plan.kept.push(kept);
        }
        plan.add(path, before, text)?;
    }
    Ok(())
}

/// Each file, and what shall be in it.
fn all(wanted: &Wanted) -> Result<Vec<(PathBuf, String)>> {
    let code = bridge::code(&wanted.hermes).into_iter();
    let mut all: Vec<(PathBuf, String)> =
        code.map(|(path, text)| (path, text.to_owned())).collect();
    for folder in bridge::folders(&wanted.hermes) {
        let file = folder.join(bridge::SETTINGS);
        let text = bridge::settings(&file, &wanted.bridge, &wanted.program, &wanted.hookbus)?;
        all.push((file, text));
    }
    Ok(all)
}

fn lets_pass(settings: &str) -> bool {
    serde_json::from_str(settings).is_ok_and(|settings| bridge::needs_a_daemon(&settings))
}
