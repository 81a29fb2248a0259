//! `hookbus hooks approve` and `hookbus hooks revoke`: agreeing to what hooks run, having seen it.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::decide::{Agreeable, Agreement, Consents, Exhibit};
use hookbus::event::{Clock, SystemClock};
use serde_json::json;

use super::{HooksHere, here};
use crate::asking::{Stands, at_a_terminal, yes};
use crate::cli::Ending;
use crate::files;
use crate::home_lock::HomeLock;
use crate::output::{self, Paint, count, harmless};
use crate::settings::{Format, Settings};

/// A file with more lines is named and not shown.
const LINES: usize = 300;

/// So is a bigger one.
const LARGEST: u64 = 64 << 10;

/// `hookbus hooks approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// Only the hook that runs this, or is called this; everything that waits for an answer unless said.
    command: Option<String>,
    /// Agree to all of it without being asked (also `HOOKBUS_ACCEPT_HOOKS=1`, or `hooks_auto_accept: true`).
    #[arg(long)]
    accept_hooks: bool,
}

pub(crate) fn approve(arguments: &Approve, format: Format, settings: &Settings) -> Result<Ending> {
    let hooks = HooksHere::find(settings);
    hooks.must_be_readable()?;
    let own = &hooks.own.1.hooks;
    let all = hooks.agreeables();
    let named = |entry: &&Agreeable| {
        let wanted = arguments.command.as_ref();
        wanted.is_none_or(|wanted| *wanted == entry.command || *wanted == entry.hook)
    };
    if let (Some(wanted), None) = (&arguments.command, all.iter().find(named)) {
        bail!("no hook here runs `{}`; `hookbus hooks list` shows them", harmless(wanted));
    }
    let waiting: Vec<&Agreeable> =
        all.iter().filter(|entry| entry.agreement != Agreement::Given).filter(named).collect();
    let unasked = arguments.accept_hooks || settings.accept_hooks;
    // A setting in a person's own file is about what they wrote themselves.
    let accepted = |entry: &Agreeable| unasked || own.auto_accept && entry.project.is_none();
    let (mut agreed, asked_about): (Vec<&Agreeable>, Vec<&Agreeable>) =
        waiting.iter().partition(|entry| accepted(entry));
    if !asked_about.is_empty() && at_a_terminal(Stands::InTheResult) && format == Format::Text {
        agreed.extend(ask(&asked_about, &hooks, Paint(settings.colour))?);
    }
    for (entry, why) in obstacles(&agreed) {
        output::aside(format!("{}: {}", harmless(&entry.hook), harmless(&why)));
    }
    agreed.retain(|entry| entry.obstacle().is_none());
    if !agreed.is_empty() {
        write(own.consents.file(), |consents| consents.with(&agreed, &all, SystemClock.now()))?;
    }
    let (yes, left) = (agreed.len(), waiting.len() - agreed.len());
    if left > 0 && !unasked && !at_a_terminal(Stands::InTheResult) && format == Format::Text {
        let waits =
            if left == 1 { "1 hook waits".to_owned() } else { format!("{left} hooks wait") };
        bail!("{waits} for a person's answer; run `hookbus hooks approve` at a terminal");
    }
    output::line(match format {
        Format::Json => json!({"approved": yes, "waiting": left}).to_string(),
        Format::Text if waiting.is_empty() => "nothing waits for an answer".to_owned(),
        Format::Text => format!("agreed to {}, {left} not", count(yes, "hook")),
    })?;
    Ok(if left == 0 { Ending::Yes } else { Ending::No })
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
    hooks: &HooksHere,
    paint: Paint,
) -> Result<Vec<&'a Agreeable>> {
    let mut agreed = Vec::new();
    for entry in waiting {
        if !show(entry, paint)? {
            output::line(paint.bad("  it changes while you look at it; run this again"))?;
            continue;
        }
        if let Some(why) = entry.obstacle() {
            output::line(paint.bad(&format!("  {}", harmless(&why))))?;
            continue;
        }
        if !yes(Stands::InTheResult, "agree to this?")? {
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

/// Shows an entry and the files behind it; no where one of them is not what was looked at a moment ago.
fn show(entry: &Agreeable, paint: Paint) -> Result<bool> {
    let why = match entry.agreement {
        Agreement::Lapsed => "it has changed since you agreed to it",
        Agreement::Never | Agreement::Given => "new",
    };
    let (hook, event) = (harmless(&entry.hook), harmless(&entry.event));
    output::line(format!("\n{}  on {event}  ({why})", paint.bold(&hook)))?;
    if let Some(project) = &entry.project {
        let file = harmless(&project.display().to_string());
        output::line(format!("  from: {file}, line {}", entry.line))?;
        output::line(format!("  says: {}", harmless(&entry.written)))?;
    }
    if entry.runs_something {
        output::line(format!("  runs: {}", harmless(&entry.command)))?;
    }
    for setting in &entry.settings {
        output::line(format!("  with: {}", harmless(setting)))?;
    }
    let mut steady = true;
    for file in &entry.files {
        steady &= show_file(file, paint)?;
    }
    if !entry.made_out {
        output::line(paint.bad(
            "  not all that this runs can be made out: some of it can change without your being asked again",
        ))?;
    }
    Ok(steady)
}

/// All of a file that can be read at a glance; of any other enough to find it and to know it again. No where it
/// is not what it was a moment ago.
fn show_file(file: &Exhibit, paint: Paint) -> Result<bool> {
    let name = harmless(&file.path.display().to_string());
    let size = fs::metadata(&file.path).map_or(0, |file| file.len());
    let bytes = (size <= LARGEST).then(|| fs::read(&file.path).ok()).flatten();
    if bytes.as_ref().is_some_and(|bytes| !file.held(bytes)) {
        return Ok(false);
    }
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text.filter(|text| text.lines().count() <= LINES && !text.contains('\0'))
    else {
        output::line(format!("  {name}: {size} bytes, {}; read it first", file.hash))?;
        return Ok(true);
    };
    output::line(format!("  {name}:"))?;
    for line in text.lines() {
        output::line(format!("  {} {}", paint.dim("|"), harmless(line)))?;
    }
    Ok(true)
}

pub(crate) fn revoke(words: &str, format: Format, settings: &Settings) -> Result<Ending> {
    let hooks = HooksHere::find(settings);
    let consents = &hooks.own.1.hooks.consents;
    let place = here().cwd;
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
        Format::Text if gone == 0 => format!("nobody has agreed to `{}` here", harmless(words)),
        Format::Text => {
            format!("took back {} to `{}`", count(gone, "agreement"), harmless(words))
        }
    })?;
    Ok(if gone > 0 { Ending::Yes } else { Ending::No })
}
