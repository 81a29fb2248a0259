//! `hookbus hooks approve` and `hookbus hooks revoke`: agreeing to what hooks run, having seen it.

mod shown;

use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::decide::{Agreeable, Agreement, Consents};
use hookbus::event::{Clock, SystemClock};
use serde_json::json;

use self::shown::Extent;
use super::{EffectiveHooks, current_caller};
use crate::prompt::{PromptOn, confirm, is_interactive};
use crate::cli::Exit;
use crate::files;
use crate::home_lock::HomeLock;
use crate::output::{self, Paint, count, sanitize};
use crate::settings::{Format, Settings};

/// `hookbus hooks approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// Only the hook that runs this, or is called this; everything that waits for an answer unless said.
    command: Option<String>,
    /// Agree to all of it without being asked (also `HOOKBUS_ACCEPT_HOOKS=1`, or `hooks_auto_accept: true`).
    #[arg(long)]
    accept_hooks: bool,
    /// Show every file whole, also where all of them are more than fits on a screen.
    #[arg(long)]
    whole: bool,
}

pub(crate) fn approve(arguments: &Approve, format: Format, settings: &Settings) -> Result<Exit> {
    let hooks = EffectiveHooks::load(settings);
    hooks.must_be_readable()?;
    let own = &hooks.own.1.hooks;
    let all = hooks.agreeables();
    let named = |entry: &&Agreeable| {
        let wanted = arguments.command.as_ref();
        wanted.is_none_or(|wanted| *wanted == entry.command || *wanted == entry.hook)
    };
    if let (Some(wanted), None) = (&arguments.command, all.iter().find(named)) {
        bail!("no hook here runs `{}`; `hookbus hooks list` shows them", sanitize(wanted));
    }
    let waiting: Vec<&Agreeable> =
        all.iter().filter(|entry| entry.agreement != Agreement::Given).filter(named).collect();
    let unasked = arguments.accept_hooks || settings.accept_hooks;
    // A setting in a person's own file is about what they wrote themselves.
    let accepted = |entry: &Agreeable| unasked || own.auto_accept && entry.project.is_none();
    let (mut agreed, asked_about): (Vec<&Agreeable>, Vec<&Agreeable>) =
        waiting.iter().partition(|entry| accepted(entry));
    if !asked_about.is_empty() && is_interactive(PromptOn::Stdout) && format == Format::Text {
        let extent = if arguments.whole { Extent::Whole } else { Extent::AScreen };
        agreed.extend(ask(&asked_about, &hooks, extent, Paint(settings.colour))?);
    }
    for (entry, why) in obstacles(&agreed) {
        output::to_stderr(format!("{}: {}", sanitize(&entry.hook), sanitize(&why)));
    }
    agreed.retain(|entry| entry.obstacle().is_none());
    if !agreed.is_empty() {
        write(own.consents.file(), |consents| consents.with(&agreed, &all, SystemClock.now()))?;
    }
    let (yes, left) = (agreed.len(), waiting.len() - agreed.len());
    if left > 0 && !unasked && !is_interactive(PromptOn::Stdout) && format == Format::Text {
        let waits =
            if left == 1 { "1 hook waits".to_owned() } else { format!("{left} hooks wait") };
        bail!("{waits} for a person's answer; run `hookbus hooks approve` at a terminal");
    }
    output::line(match format {
        Format::Json => json!({"approved": yes, "waiting": left}).to_string(),
        Format::Text if waiting.is_empty() => "nothing waits for an answer".to_owned(),
        Format::Text => format!("agreed to {}, {left} not", count(yes, "hook")),
    })?;
    Ok(if left == 0 { Exit::Success } else { Exit::Failure })
}

/// Those that nobody can agree to as they are, and why.
fn obstacles<'a>(entries: &[&'a Agreeable]) -> Vec<(&'a Agreeable, String)> {
    entries.iter().filter_map(|entry| Some((*entry, entry.obstacle()?))).collect()
}

/// Writes the file of consents: whoever else does waits until this one is done, and builds on it.
fn write(file: &Path, text: impl FnOnce(&Consents) -> Result<String, String>) -> Result<()> {
    let home = file.parent().unwrap_or(Path::new("/"));
    let _lock = HomeLock::take(home)?;
    let text = text(&Consents::beside(home)).map_err(anyhow::Error::msg)?;
    files::write(file, &text)
}

fn ask<'a>(
    waiting: &[&'a Agreeable],
    hooks: &EffectiveHooks,
    extent: Extent,
    paint: Paint,
) -> Result<Vec<&'a Agreeable>> {
    let mut agreed = Vec::new();
    for entry in waiting {
        if !shown::show(entry, extent, paint)? {
            output::line(paint.bad("  it changes while you look at it; run this again"))?;
            continue;
        }
        if let Some(why) = entry.obstacle() {
            output::line(paint.bad(&format!("  {}", sanitize(&why))))?;
            continue;
        }
        if !confirm(PromptOn::Stdout, "agree to this?")? {
            continue;
        }
        if hooks.again(entry).as_ref() == Some(*entry) {
            agreed.push(*entry);
        } else {
            output::line(paint.bad("it has changed while you looked at it; run this again"))?;
        }
    }
    Ok(agreed)
}

pub(crate) fn revoke(words: &str, format: Format, settings: &Settings) -> Result<Exit> {
    let hooks = EffectiveHooks::load(settings);
    let consents = &hooks.own.1.hooks.consents;
    let place = current_caller().cwd;
    // By what it runs, and by the name that `hooks list` shows, which several may have.
    let named = hooks.agreeables().into_iter().filter(|entry| entry.hook == words);
    let commands: Vec<String> =
        named.map(|entry| entry.command).chain([words.to_owned()]).collect();
    let (_, gone) = consents.without(&commands, &place).map_err(anyhow::Error::msg)?;
    if gone > 0 {
        write(consents.file(), |consents| Ok(consents.without(&commands, &place)?.0))?;
    }
    output::line(match format {
        Format::Json => json!({"revoked": gone}).to_string(),
        Format::Text if gone == 0 => format!("nobody has agreed to `{}` here", sanitize(words)),
        Format::Text => {
            format!("took back {} to `{}`", count(gone, "agreement"), sanitize(words))
        }
    })?;
    Ok(if gone > 0 { Exit::Success } else { Exit::Failure })
}
