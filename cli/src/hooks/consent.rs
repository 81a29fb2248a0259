//! `hookbus hooks approve` and `hookbus hooks revoke`: agreeing to what hooks run, having seen it.

use std::fs;
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::DirBuilderExt;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::decide::{Agreeable, Agreement, Exhibit};
use hookbus::event::{Clock, SystemClock};
use serde_json::json;

use super::{HooksHere, agreeables};
use crate::cli::Ending;
use crate::files;
use crate::output::{self, Paint, count, harmless};
use crate::settings::{Format, Settings};

/// A file with more lines is named and not shown.
const LINES: usize = 300;

/// So is a bigger one.
const LARGEST: u64 = 64 << 10;

/// `hookbus hooks approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// Only this command; everything that waits for an answer unless said.
    command: Option<String>,
    /// Agree to all of it without being asked (also `HOOKBUS_ACCEPT_HOOKS=1`, or `hooks_auto_accept: true`).
    #[arg(long)]
    accept_hooks: bool,
}

pub(crate) fn approve(arguments: &Approve, format: Format, settings: &Settings) -> Result<Ending> {
    let hooks = HooksHere::find(settings);
    let own = &hooks.own.1.hooks;
    let all: Vec<Agreeable> =
        hooks.files().flat_map(|(_, in_force)| agreeables(in_force)).collect();
    let named = |entry: &&Agreeable| {
        arguments.command.as_ref().is_none_or(|command| *command == entry.command)
    };
    let waiting: Vec<&Agreeable> =
        all.iter().filter(|entry| entry.agreement != Agreement::Given).filter(named).collect();
    let unasked = arguments.accept_hooks || settings.accept_hooks;
    // A setting in a person's own file is about what they wrote themselves.
    let accepted = |entry: &Agreeable| unasked || own.auto_accept && entry.project.is_none();
    let (mut agreed, asked_about): (Vec<&Agreeable>, Vec<&Agreeable>) =
        waiting.iter().partition(|entry| accepted(entry));
    agreed.extend(ask(&asked_about, Paint(settings.colour))?);
    // What nobody can look through nobody can agree to.
    agreed.retain(|entry| entry.hash.is_some());
    if !agreed.is_empty() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.home)?;
        files::write(own.consents.file(), &own.consents.with(&agreed, &all, SystemClock.now()))?;
    }
    let (yes, left) = (agreed.len(), waiting.len() - agreed.len());
    output::line(match format {
        Format::Json => json!({"approved": yes, "waiting": left}).to_string(),
        Format::Text if waiting.is_empty() => "nothing waits for an answer".to_owned(),
        Format::Text => format!("agreed to {}, {left} not", count(yes, "hook")),
    })?;
    Ok(if left == 0 { Ending::Yes } else { Ending::No })
}

fn ask<'a>(waiting: &[&'a Agreeable], paint: Paint) -> Result<Vec<&'a Agreeable>> {
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        bail!(
            "{} for an answer; run `hookbus hooks approve` at a terminal, or with --accept-hooks",
            if waiting.len() == 1 {
                "1 hook waits".to_owned()
            } else {
                format!("{} hooks wait", waiting.len())
            }
        );
    }
    let mut agreed = Vec::new();
    for entry in waiting {
        show(entry, paint)?;
        output::bytes(b"agree to this? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            agreed.push(*entry);
        }
    }
    Ok(agreed)
}

fn show(entry: &Agreeable, paint: Paint) -> Result<()> {
    let why = match entry.agreement {
        Agreement::Lapsed => "it has changed since you agreed to it",
        Agreement::Never | Agreement::Given => "new",
    };
    output::line(format!("\n{}  on {}  ({why})", paint.bold(&harmless(&entry.hook)), entry.event))?;
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
    for file in &entry.files {
        show_file(file, paint)?;
    }
    if !entry.made_out {
        output::line(paint.bad(
            "  no script can be made out in this: what it runs can change without your being asked again",
        ))?;
    }
    Ok(())
}

/// All of a file that can be read at a glance; of any other enough to find it and to know it again.
fn show_file(file: &Exhibit, paint: Paint) -> Result<()> {
    let name = harmless(&file.path.display().to_string());
    let size = fs::metadata(&file.path).map_or(0, |file| file.len());
    let text = (size <= LARGEST).then(|| fs::read_to_string(&file.path).ok()).flatten();
    let Some(text) = text.filter(|text| text.lines().count() <= LINES && !text.contains('\0'))
    else {
        output::line(format!("  {name}: {size} bytes, {}; read it first", file.hash))?;
        return Ok(());
    };
    output::line(format!("  {name}:"))?;
    for line in text.lines() {
        output::line(format!("  {} {}", paint.dim("|"), harmless(line)))?;
    }
    Ok(())
}

pub(crate) fn revoke(command: &str, format: Format, settings: &Settings) -> Result<Ending> {
    let hooks = HooksHere::find(settings);
    let consents = &hooks.own.1.hooks.consents;
    let (text, gone) = consents.without(command);
    if gone > 0 {
        files::write(consents.file(), &text)?;
    }
    output::line(match format {
        Format::Json => json!({"revoked": gone}).to_string(),
        Format::Text if gone == 0 => format!("nobody has agreed to `{}`", harmless(command)),
        Format::Text => format!("took back the agreement to `{}`", harmless(command)),
    })?;
    Ok(if gone > 0 { Ending::Yes } else { Ending::No })
}
