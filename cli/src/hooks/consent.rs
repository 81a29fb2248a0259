//! `hookbus hooks approve` and `hookbus hooks revoke`: shows what hooks run, asks the user, and stores or removes the
//! approvals.

mod display;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::config::Approval;
use hookbus::consent::{ApprovalItem, ApprovalStore, StoreError};
use hookbus::event::{Clock, SystemClock};
use hookbus::exec::UserEnvironment;
use hookbus::log::BusRow;
use serde_json::json;

use self::display::FileContents;
use super::effective::{EffectiveHooks, current_caller};
use crate::bus_rows::record;
use crate::cli::Exit;
use crate::files;
use crate::home_lock::HomeLock;
use crate::output::{self, Paint, count, sanitize};
use crate::prompt::{PromptOn, is_interactive, is_user_at_terminal, yes_no};
use crate::settings::{Format, Settings};

const EXAMPLES: &str = "\
Examples:
  hookbus hooks approve                 Review all new and changed hooks
  hookbus hooks approve team-policy     Approve one hook
  hookbus hooks approve --accept-hooks  Approve all, at a terminal";

/// The arguments of `hookbus hooks approve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Approve {
    /// Name of the hook, or its command as written [default: all that need approval]
    #[arg(value_name = "HOOK")]
    command: Option<String>,
    /// Approve without asking, at a terminal
    ///
    /// Refused without a terminal, because an agent could run it. `hooks_auto_accept: true` in hookbus.yaml
    /// does the same without a terminal, for the hooks of that file.
    #[arg(long)]
    accept_hooks: bool,
    /// Show all files in full, also if they do not fit on a screen
    #[arg(long)]
    whole: bool,
}

pub(crate) fn approve(arguments: &Approve, format: Format, settings: &Settings) -> Result<Exit> {
    if is_user_at_terminal() {
        // Before anything is looked up: an approval covers what is found with it.
        record_environment(settings)?;
    }
    let hooks = EffectiveHooks::load(settings);
    hooks.ensure_readable()?;
    let own = &hooks.own.1;
    let all = hooks.approval_items();
    let is_wanted = |entry: &&ApprovalItem| {
        let wanted = arguments.command.as_ref();
        wanted.is_none_or(|wanted| *wanted == entry.command || *wanted == entry.hook)
    };
    if let (Some(wanted), None) = (&arguments.command, all.iter().find(is_wanted)) {
        bail!(
            "no hook here has the name or command `{}`; `hookbus hooks list` shows them",
            sanitize(wanted)
        );
    }
    let waiting: Vec<&ApprovalItem> =
        all.iter().filter(|entry| entry.approval != Approval::Approved).filter(is_wanted).collect();
    let is_at_terminal = is_user_at_terminal();
    let accept_all = arguments.accept_hooks && is_at_terminal;
    // `hooks_auto_accept` in the user's own file does not apply to the hooks of a project.
    let is_accepted =
        |entry: &ApprovalItem| accept_all || own.file.auto_accept && entry.project.is_none();
    let (mut approved, to_ask): (Vec<&ApprovalItem>, Vec<&ApprovalItem>) =
        waiting.iter().partition(|entry| is_accepted(entry));
    if !to_ask.is_empty() && is_interactive(PromptOn::Stdout) && format == Format::Text {
        let contents = if arguments.whole { FileContents::InFull } else { FileContents::OneScreen };
        approved.extend(ask(&to_ask, &hooks, contents, Paint(settings.colour))?);
    }
    for (entry, why) in obstacles(&approved) {
        output::to_stderr(format!("{}: {}", sanitize(&entry.hook), sanitize(&why)));
    }
    approved.retain(|entry| entry.obstacle().is_none());
    if !approved.is_empty() {
        let how = |entry: &ApprovalItem| match (is_accepted(entry), accept_all) {
            (true, true) => "--accept-hooks",
            (true, false) => "hooks_auto_accept",
            (false, _) => "asked",
        };
        store(&approved, &all, &hooks, how, settings)?;
    }
    let left = waiting.len() - approved.len();
    if arguments.accept_hooks && !is_at_terminal && left > obstacles(&waiting).len() {
        bail!(
            "`--accept-hooks` needs a person at a terminal; run it there, or write `hooks_auto_accept: true` into \
             your own hookbus.yaml (it does not apply to a project's hooks)"
        );
    }
    if left > 0 && !accept_all && !is_interactive(PromptOn::Stdout) && format == Format::Text {
        let need = if left == 1 { "1 hook needs".to_owned() } else { format!("{left} hooks need") };
        bail!("{need} approval; run `hookbus hooks approve` at a terminal");
    }
    output::line(match format {
        Format::Json => json!({"approved": approved.len(), "waiting": left}).to_string(),
        Format::Text if waiting.is_empty() => "nothing needs approval".to_owned(),
        Format::Text => format!("approved {}, {left} not", count(approved.len(), "hook")),
    })?;
    Ok(if left == 0 { Exit::Success } else { Exit::Failure })
}

/// Stores the approvals, and records each in the log with `how` it was given.
fn store(
    approved: &[&ApprovalItem],
    all: &[ApprovalItem],
    hooks: &EffectiveHooks,
    how: impl Fn(&ApprovalItem) -> &'static str,
    settings: &Settings,
) -> Result<()> {
    // Without a terminal this may be an agent's environment, which must not replace the user's.
    if !UserEnvironment::file(&settings.home).exists() {
        record_environment(settings)?;
    }
    update(hooks.own.1.approvals.store().file(), |store| {
        Ok(store.with(approved, all, SystemClock.now())?)
    })?;
    let own_file = hooks.own.0.file();
    let rows = approved.iter().map(|it| BusRow::HooksApproved(it.to_record(own_file, how(it))));
    record(&rows.collect::<Vec<_>>(), settings)
}

/// Records the PATH and the home directory of this shell as the user's own.
fn record_environment(settings: &Settings) -> Result<()> {
    let _lock = HomeLock::take(&settings.home)?;
    UserEnvironment::record(&settings.home)
        .with_context(|| format!("cannot record your PATH in {}", settings.home.display()))
}

/// The entries that cannot be approved as they are, and why.
fn obstacles<'a>(entries: &[&'a ApprovalItem]) -> Vec<(&'a ApprovalItem, String)> {
    entries.iter().filter_map(|entry| Some((*entry, entry.obstacle()?))).collect()
}

/// Reads consent.json, changes it and writes it, under a lock that all writers take.
fn update(file: &Path, change: impl FnOnce(&ApprovalStore) -> Result<String>) -> Result<()> {
    let home = file.parent().unwrap_or(Path::new("/"));
    let _lock = HomeLock::take(home)?;
    let store = ApprovalStore::beside(home);
    let text = change(&store)?;
    if let Some(StoreError::Broken(broken)) = store.problem() {
        let kept = broken.with_extension("json.broken");
        fs::rename(&broken, &kept).with_context(|| format!("cannot move {}", broken.display()))?;
        let kept = sanitize(&kept.display().to_string());
        output::to_stderr(format!("the broken file of approvals is kept as {kept}"));
    }
    files::write(file, &text)
}

fn ask<'a>(
    waiting: &[&'a ApprovalItem],
    hooks: &EffectiveHooks,
    contents: FileContents,
    paint: Paint,
) -> Result<Vec<&'a ApprovalItem>> {
    let mut approved = Vec::new();
    for entry in waiting {
        if !display::show(entry, contents, paint)? {
            output::line(paint.bad("  its files are being changed; run this again"))?;
            continue;
        }
        if let Some(why) = entry.obstacle() {
            output::line(paint.bad(&format!("  {}", sanitize(&why))))?;
            continue;
        }
        if !yes_no(PromptOn::Stdout, "approve this hook?")? {
            continue;
        }
        if hooks.reread(entry).as_ref() == Some(*entry) {
            approved.push(*entry);
        } else {
            output::line(paint.bad("it changed while you looked at it; run this again"))?;
        }
    }
    Ok(approved)
}

pub(crate) fn revoke(hook: &str, format: Format, settings: &Settings) -> Result<Exit> {
    let hooks = EffectiveHooks::load(settings);
    let store = hooks.own.1.approvals.store();
    let cwd = current_caller().cwd;
    // `hook` is a command, or a name as `hooks list` shows it; several hooks may have the same name.
    let named = hooks.approval_items().into_iter().filter(|entry| entry.hook == hook);
    let commands: Vec<String> = named.map(|entry| entry.command).chain([hook.to_owned()]).collect();
    let revoked = store.without(&commands, &cwd)?.1;
    if !revoked.is_empty() {
        update(store.file(), |store| Ok(store.without(&commands, &cwd)?.0))?;
        let rows: Vec<BusRow> = revoked.iter().cloned().map(BusRow::HooksRevoked).collect();
        record(&rows, settings)?;
    }
    let revoked = revoked.len();
    output::line(match format {
        Format::Json => json!({"revoked": revoked}).to_string(),
        Format::Text if revoked == 0 => format!("`{}` is not approved here", sanitize(hook)),
        Format::Text => {
            format!("revoked {} of `{}`", count(revoked, "approval"), sanitize(hook))
        }
    })?;
    Ok(if revoked > 0 { Exit::Success } else { Exit::Failure })
}
