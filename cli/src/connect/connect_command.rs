//! `hookbus connect`: its arguments, the questions it asks, and how a plan is carried out.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use hookbus::event::{Clock, SystemClock};

use super::bridge::BridgeOptions;
use super::confirm::{Confirmed, confirm};
use super::connect_plan::{ConnectPlan, ConnectRequest, ExistingHooks};
use super::record::Record;
use super::{files, hermes, report};
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::prompt::{PromptOn, is_interactive, yes_no};
use crate::settings::{Format, Settings};

/// The agents that can be connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Hermes Agent, through a plugin that hookbus installs.
    Hermes,
}

/// `hookbus connect`.
#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// The agent to connect.
    agent: Agent,
    /// Make the changes without asking.
    #[arg(long)]
    yes: bool,
    /// What to do with the shell hooks in Hermes' config.yaml: keep them there, or move them to hookbus.yaml.
    #[arg(long, value_name = "WHAT")]
    hooks: Option<ExistingHooks>,
    /// The home directory of Hermes, if it is neither `HERMES_HOME` nor ~/.hermes.
    #[arg(long, value_name = "DIR")]
    hermes_home: Option<PathBuf>,
    /// The longest time that one event may take, in seconds (default: 55).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    deadline: Option<f64>,
    /// The same for events that all chats of a gateway wait for (default: 2).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    gateway_deadline: Option<f64>,
    /// What the bridge does when no daemon answers: run `hookbus hook`, which starts one (default), or allow the event.
    /// Use `allow` only if you keep `hookbus serve` running.
    #[arg(long, value_name = "WHAT", value_parser = ["hook", "allow"])]
    without_daemon: Option<String>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "a number of seconds from 0.1 to 3600".to_owned())
}

/// Connects an agent.
pub(crate) fn connect(arguments: Connect, format: Format, settings: &Settings) -> Result<Exit> {
    let Agent::Hermes = arguments.agent;
    let hermes = hermes::home(arguments.hermes_home, settings)?;
    let hookbus = files::canonical(&settings.home);
    let record_file = Record::file(&hookbus, "hermes", &hermes);
    let mut request = ConnectRequest {
        program: std::env::current_exe()?,
        hooks: arguments.hooks,
        bridge: BridgeOptions {
            deadline: arguments.deadline,
            gateway_deadline: arguments.gateway_deadline,
            without_daemon: arguments.without_daemon,
        },
        hermes,
        hookbus,
        at: SystemClock.now(),
    };
    let can_ask = !arguments.yes && format == Format::Text && is_interactive(PromptOn::Stdout);
    if request.hooks.is_none() && can_ask {
        request.hooks = ask_about_hooks(&request, &Record::load(&record_file)?)?;
    }
    let make_plan = || ConnectPlan::make(&request, &Record::load(&record_file)?);
    let ask = |plan: &ConnectPlan| {
        if format == Format::Text {
            output::line(format!("Hermes in {}", request.hermes.display()))?;
            report::show(&plan.writes, &plan.backups, &plan.remarks, Paint(settings.colour))?;
        }
        let needs_no_answer = arguments.yes || plan.writes.is_empty();
        Ok(needs_no_answer || can_ask && yes_no(PromptOn::Stdout, "make these changes?")?)
    };
    let (plan, _lock) = match confirm(&request.hookbus, make_plan, ask)? {
        Confirmed::Yes(plan, lock) => (plan, lock),
        Confirmed::No(plan) => {
            if format == Format::Json {
                output::line(report::json(false, &plan.writes, &plan.remarks).to_string())?;
            }
            bail!("nothing has changed; pass --yes to make these changes");
        }
    };
    let done = report::json(true, &plan.writes, &plan.remarks);
    let has_changes = !plan.writes.is_empty();
    carry_out(plan, &record_file, &request.hookbus)?;
    output::line(match format {
        Format::Json => done.to_string(),
        Format::Text if !has_changes => {
            "hermes is connected already; nothing has changed".to_owned()
        }
        Format::Text => {
            "connected; restart every Hermes that runs. `hookbus disconnect hermes` undoes this"
                .to_owned()
        }
    })?;
    Ok(Exit::Success)
}

/// The record is saved before anything else is written, so that a failure half-way can be undone.
fn carry_out(plan: ConnectPlan, record_file: &Path, hookbus: &Path) -> Result<()> {
    let ConnectPlan { mut record, writes, backups, .. } = plan;
    for write in &writes {
        let is_ours = write.path.starts_with(hookbus);
        let mode = if is_ours { files::PRIVATE } else { 0o777 };
        record.created_folders.extend(files::create_folders(&write.path, mode)?);
    }
    record.save(record_file)?;
    backups.iter().chain(&writes).try_for_each(files::PendingWrite::apply)
}

/// Asks what to do with the shell hooks of Hermes, if there are any that could be moved.
fn ask_about_hooks(request: &ConnectRequest, known: &Record) -> Result<Option<ExistingHooks>> {
    if known.change_of(&request.hookbus.join("hookbus.yaml")).is_some() {
        return Ok(None);
    }
    let changed_files = |hooks: ExistingHooks| {
        let request = ConnectRequest { hooks: Some(hooks), ..request.clone() };
        anyhow::Ok(ConnectPlan::make(&request, known)?.record.changes.len())
    };
    if changed_files(ExistingHooks::Move)? == changed_files(ExistingHooks::Keep)? {
        return Ok(None);
    }
    let wants_move = yes_no(
        PromptOn::Stdout,
        "Hermes has shell hooks of its own; move them to hookbus.yaml, so that the log records what they decide?",
    )?;
    Ok(Some(if wants_move { ExistingHooks::Move } else { ExistingHooks::Keep }))
}
