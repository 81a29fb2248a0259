//! `hookbus connect`: its arguments, the questions it asks, and how a plan is carried out.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hookbus::event::{Clock, OnFailure, SystemClock};
use hookbus::exec::UserEnvironment;
use serde_json::json;

use super::bridge::BridgeOptions;
use super::confirm::{Confirmed, confirm};
use super::connect_plan::{ConnectPlan, ConnectRequest, ExistingHooks};
use super::gemini::{self, GeminiOptions};
use super::record::Record;
use super::temporary::refuse_temporary;
use super::{consent, files, hermes, report};
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::prompt::{PromptOn, is_interactive, is_user_at_terminal, yes_no};
use crate::settings::{Format, Settings};

/// The agents that can be connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Hermes Agent, through a plugin that hookbus installs.
    Hermes,
    /// Gemini CLI, through hooks in its settings.json.
    Gemini,
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
    /// Connect Gemini in one project only, by the settings.json in its .gemini directory (default: this directory).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
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
    /// What the agent may do when hookbus cannot be asked, because its home cannot be opened or its program is missing:
    /// go on (allow, the default), or nothing that can be blocked (block).
    #[arg(long, value_name = "WHAT", value_parser = ["allow", "block"])]
    on_failure: Option<String>,
    /// Wire the agent to a home or a program in a temporary directory, where another program could replace it.
    #[arg(long)]
    allow_temporary_home: bool,
}

impl Connect {
    /// `hookbus connect` of this agent without any option.
    pub(crate) const fn for_agent(agent: Agent) -> Self {
        Self {
            agent,
            yes: false,
            hooks: None,
            hermes_home: None,
            project: None,
            deadline: None,
            gateway_deadline: None,
            without_daemon: None,
            on_failure: None,
            allow_temporary_home: false,
        }
    }

    /// An option that this agent does not have.
    fn foreign_option(&self) -> Option<&'static str> {
        let of_hermes = [
            ("--hooks", self.hooks.is_some()),
            ("--hermes-home", self.hermes_home.is_some()),
            ("--gateway-deadline", self.gateway_deadline.is_some()),
            ("--without-daemon", self.without_daemon.is_some()),
        ];
        let of_gemini = [("--project", self.project.is_some())];
        let foreign = match self.agent {
            Agent::Hermes => of_gemini.as_slice(),
            Agent::Gemini => of_hermes.as_slice(),
        };
        foreign.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "a number of seconds from 0.1 to 3600".to_owned())
}

/// Connects an agent.
pub(crate) fn connect(arguments: Connect, format: Format, settings: &Settings) -> Result<Exit> {
    if let Some(option) = arguments.foreign_option() {
        bail!("{option} is for the other agent; run this again without it");
    }
    match arguments.agent {
        Agent::Hermes => connect_hermes(arguments, format, settings),
        Agent::Gemini => {
            let Connect { project, yes, deadline, on_failure, allow_temporary_home, .. } =
                arguments;
            let on_failure = on_failure.as_deref().and_then(OnFailure::parse);
            let options =
                GeminiOptions { project, yes, deadline, on_failure, allow_temporary_home };
            gemini::connect(&options, format, settings)
        }
    }
}

fn connect_hermes(arguments: Connect, format: Format, settings: &Settings) -> Result<Exit> {
    let hermes = hermes::home(arguments.hermes_home, settings)?;
    let hookbus = files::canonical(&settings.home);
    let program = std::env::current_exe()?;
    refuse_temporary(&hookbus, &program, arguments.allow_temporary_home)?;
    let record_file = Record::file(&hookbus, "hermes", &hermes);
    let mut request = ConnectRequest {
        program,
        hooks: arguments.hooks,
        bridge: BridgeOptions {
            deadline: arguments.deadline,
            gateway_deadline: arguments.gateway_deadline,
            without_daemon: arguments.without_daemon,
            on_failure: arguments.on_failure,
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
            output::line(format!("calls hookbus with the home {}", request.hookbus.display()))?;
            report::show(&plan.writes, &plan.backups, &plan.remarks, Paint(settings.colour))?;
        }
        let needs_no_answer = arguments.yes || plan.writes.is_empty();
        Ok(needs_no_answer || can_ask && yes_no(PromptOn::Stdout, "make these changes?")?)
    };
    let (plan, _lock) = match confirm(&request.hookbus, make_plan, ask)? {
        Confirmed::Yes(plan, lock) => (plan, lock),
        Confirmed::No(plan) => {
            if format == Format::Json {
                let mut shown = report::json("hermes", false, &plan.writes, &plan.remarks);
                shown["home"] = json!(request.hookbus.to_string_lossy());
                output::line(shown.to_string())?;
            }
            bail!("nothing has changed; pass --yes to make these changes");
        }
    };
    let mut done = report::json("hermes", true, &plan.writes, &plan.remarks);
    done["home"] = json!(request.hookbus.to_string_lossy());
    let writes = plan.writes.clone();
    carry_out(plan, &record_file, &request.hookbus)?;
    consent::record_changes(&writes, settings)?;
    output::line(match format {
        Format::Json => done.to_string(),
        Format::Text if writes.is_empty() => {
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
pub(super) fn carry_out(plan: ConnectPlan, record_file: &Path, hookbus: &Path) -> Result<()> {
    let ConnectPlan { mut record, writes, backups, .. } = plan;
    for write in &writes {
        let is_ours = write.path.starts_with(hookbus);
        let mode = if is_ours { files::PRIVATE } else { 0o777 };
        record.created_folders.extend(files::create_folders(&write.path, mode)?);
    }
    record.save(record_file)?;
    // Without a terminal this may be an agent's environment, which must not replace the user's.
    if is_user_at_terminal() || !UserEnvironment::file(hookbus).exists() {
        UserEnvironment::record(hookbus)
            .with_context(|| format!("cannot record your PATH in {}", hookbus.display()))?;
    }
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
