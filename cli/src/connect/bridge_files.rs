//! The files of the bridge in a plan of `connect`. Text that a user wrote into them is backed up.

use std::path::PathBuf;

use anyhow::Result;

use super::connect_plan::{ConnectPlan, ConnectRequest};
use super::orphaned::OrphanedBridge;
use super::record::Record;
use super::{bridge, files, local_edits};

/// Adds them to a plan.
pub(super) fn add(
    plan: &mut ConnectPlan,
    request: &ConnectRequest,
    known: &Record,
    orphan: Option<&OrphanedBridge>,
) -> Result<()> {
    let orphaned = orphan.map(OrphanedBridge::folders).unwrap_or_default();
    plan.record.created_folders.extend(orphaned.iter().cloned());
    let files = all(request)?;
    if files.iter().any(|(path, text)| path.ends_with(bridge::SETTINGS) && needs_a_daemon(text)) {
        plan.remarks.push(
            "with `--without-daemon allow` the bridge starts no daemon, and while none runs every event passes unrecorded: \
             keep `hookbus serve` running, or connect with `--without-daemon hook`"
                .to_owned(),
        );
    }
    for (path, text) in files {
        let now = files::read(&path)?;
        let is_orphaned = orphaned.iter().any(|folder| path.starts_with(folder));
        let (before, written) = match known.change_of(&path) {
            Some(change) => (change.before.clone(), Some(&change.after)),
            None if is_orphaned => (None, Some(&text)),
            None => (now.clone(), now.as_ref()),
        };
        // Settings that can be read are taken over.
        let is_taken_over =
            path.ends_with(bridge::SETTINGS) && bridge::read_settings(&path).is_object();
        let is_edited = |now: &&String| Some(*now) != written && **now != text && !is_taken_over;
        if let Some(edited) = now.as_ref().filter(is_edited) {
            let (backup, remark) = local_edits::edited(&path, edited);
            plan.backups.push(backup);
            plan.remarks.push(remark);
        }
        plan.add(path, before, text)?;
    }
    Ok(())
}

/// Each file with the text to write.
fn all(request: &ConnectRequest) -> Result<Vec<(PathBuf, String)>> {
    let code = bridge::code(&request.hermes).into_iter();
    let mut all: Vec<(PathBuf, String)> =
        code.map(|(path, text)| (path, text.to_owned())).collect();
    for folder in bridge::folders(&request.hermes) {
        let file = folder.join(bridge::SETTINGS);
        let text = bridge::settings(&file, &request.bridge, &request.program, &request.hookbus)?;
        all.push((file, text));
    }
    Ok(all)
}

fn needs_a_daemon(settings: &str) -> bool {
    serde_json::from_str(settings).is_ok_and(|settings| bridge::needs_a_daemon(&settings))
}
