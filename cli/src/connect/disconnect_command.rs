//! `hookbus disconnect`: its arguments, and how a plan is shown and carried out.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::confirm::{Confirmed, confirm};
use super::connect_command::Agent;
use super::disconnect_plan::DisconnectPlan;
use super::gemini::{self, GeminiOptions};
use super::orphaned::{self, Unrecorded};
use super::record::Record;
use super::{consent, files, hermes, report};
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::prompt::{PromptOn, is_interactive, yes_no};
use crate::settings::{Format, Settings};

/// `hookbus disconnect`.
#[derive(Debug, Args)]
pub(crate) struct Disconnect {
    /// The agent to disconnect.
    agent: Agent,
    /// Make the changes without asking.
    #[arg(long)]
    yes: bool,
    /// The home directory of Hermes, if it is neither `HERMES_HOME` nor ~/.hermes.
    #[arg(long, value_name = "DIR")]
    hermes_home: Option<PathBuf>,
    /// Disconnect Gemini in one project only (default: this directory).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
}

/// Undoes what `connect` did.
pub(crate) fn disconnect(
    arguments: &Disconnect,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    match arguments.agent {
        Agent::Hermes if arguments.project.is_some() => {
            bail!("--project is for the other agent; run this again without it")
        }
        Agent::Gemini if arguments.hermes_home.is_some() => {
            bail!("--hermes-home is for the other agent; run this again without it")
        }
        Agent::Hermes => disconnect_hermes(arguments, format, settings),
        Agent::Gemini => {
            let (project, yes) = (arguments.project.clone(), arguments.yes);
            let options = GeminiOptions { project, yes, ..GeminiOptions::default() };
            gemini::disconnect(&options, format, settings)
        }
    }
}

fn disconnect_hermes(arguments: &Disconnect, format: Format, settings: &Settings) -> Result<Exit> {
    // The directory may be gone: then the record about it is all that there is to remove.
    let hermes = hermes::home_path(arguments.hermes_home.clone(), settings)?;
    let hookbus = files::canonical(&settings.home);
    let record_file = Record::file(&hookbus, "hermes", &hermes);
    let make_plan = || plan(Record::load(&record_file)?, &hermes, &hookbus);
    if make_plan()?.is_empty() {
        hermes::home(arguments.hermes_home.clone(), settings)?;
        output::line(match format {
            Format::Json => report::json("hermes", false, &[], &[]).to_string(),
            Format::Text => "hermes is not connected; nothing has changed".to_owned(),
        })?;
        return Ok(Exit::Success);
    }
    let (agent, yes) = (Agent::Hermes, arguments.yes);
    undo(agent, make_plan, &record_file, yes, format, settings)
}

/// Shows what a plan would change, asks, and carries it out.
pub(super) fn undo(
    agent: Agent,
    make_plan: impl Fn() -> Result<DisconnectPlan>,
    record_file: &Path,
    yes: bool,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let hookbus = files::canonical(&settings.home);
    let can_ask = format == Format::Text && is_interactive(PromptOn::Stdout);
    let ask = |plan: &DisconnectPlan| {
        if format == Format::Text {
            report::show(&plan.writes, &plan.backups, &plan.remarks, Paint(settings.colour))?;
        }
        Ok(yes || can_ask && yes_no(PromptOn::Stdout, "make these changes?")?)
    };
    let Confirmed::Yes(plan, lock) = confirm(&hookbus, make_plan, ask)? else {
        bail!("nothing has changed; pass --yes to make these changes");
    };
    plan.carry_out(record_file)?;
    consent::record_changes(&plan.writes, settings)?;
    drop(lock);
    // Taking the lock made the home. Remove it if it is empty.
    files::remove_folders(&[hookbus]);
    let (id, name) = match agent {
        Agent::Hermes => ("hermes", "Hermes"),
        Agent::Gemini => ("gemini", "Gemini"),
    };
    output::line(match format {
        Format::Json => report::json(id, false, &plan.writes, &plan.remarks).to_string(),
        Format::Text => format!("disconnected; restart every {name} that runs"),
    })?;
    Ok(Exit::Success)
}

/// Follows the record; without one, finds what is clearly ours.
fn plan(known: Record, hermes: &Path, hookbus: &Path) -> Result<DisconnectPlan> {
    if !known.changes.is_empty() {
        return DisconnectPlan::make(known, hermes, hookbus);
    }
    match orphaned::find(hermes, hookbus)? {
        Unrecorded::Nothing => Ok(DisconnectPlan::default()),
        Unrecorded::Orphaned(bridge) => bridge.disconnect_plan(hermes),
        Unrecorded::OfOtherHome(home) => {
            let home = home.to_string_lossy();
            let quoted = shlex::try_quote(&home).unwrap_or_else(|_| home.clone());
            bail!(
                "hermes was not connected from {}; run this again with `--home {quoted}`, from where it was connected",
                hookbus.display()
            )
        }
    }
}
