//! `hookbus connect gemini` and `hookbus disconnect gemini`: which file, the questions, and how a plan is carried out.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use hookbus::event::OnFailure;
use serde_json::json;

use super::super::confirm::{Confirmed, confirm};
use super::super::connect_command::{Agent, carry_out};
use super::super::connect_plan::ConnectPlan;
use super::super::disconnect_command::undo;
use super::super::record::Record;
use super::super::temporary::refuse_temporary;
use super::super::{files, report};
use super::connect_plan::{self, ConnectRequest};
use super::disconnect_plan;
use super::location::Location;
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::prompt::{PromptOn, is_interactive, yes_no};
use crate::settings::{Format, Settings};

const AGENT: &str = "gemini";

/// The options that `connect` and `disconnect` have for Gemini.
#[derive(Debug, Default)]
pub(in crate::connect) struct GeminiOptions {
    /// The project; none: the settings of the user.
    pub(in crate::connect) project: Option<PathBuf>,
    pub(in crate::connect) yes: bool,
    pub(in crate::connect) deadline: Option<f64>,
    pub(in crate::connect) on_failure: Option<OnFailure>,
    pub(in crate::connect) allow_temporary_home: bool,
}

/// Connects Gemini.
pub(in crate::connect) fn connect(
    options: &GeminiOptions,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let location = location(options, settings)?;
    location.check()?;
    let user = Location::of_user(settings).ok().filter(|user| user.file != location.file);
    let hookbus = files::canonical(&settings.home);
    let program = files::canonical(&std::env::current_exe()?);
    refuse_temporary(&hookbus, &program, options.allow_temporary_home)?;
    let record_file = Record::file(&hookbus, AGENT, &location.file);
    let GeminiOptions { deadline, on_failure, yes, .. } = *options;
    let request = ConnectRequest { location, user, hookbus, program, deadline, on_failure };
    let make_plan = || connect_plan::make(&request, &Record::load(&record_file)?);
    let can_ask = !yes && format == Format::Text && is_interactive(PromptOn::Stdout);
    let ask = |plan: &ConnectPlan| {
        if format == Format::Text {
            let shown = |path: &Path| output::sanitize(&path.to_string_lossy());
            output::line(format!("Gemini CLI by {}", shown(&request.location.file)))?;
            output::line(format!("calls hookbus with the home {}", shown(&request.hookbus)))?;
            report::show_beginnings(&plan.writes, &plan.remarks, Paint(settings.colour))?;
        }
        let needs_no_answer = yes || plan.writes.is_empty();
        Ok(needs_no_answer || can_ask && yes_no(PromptOn::Stdout, "make these changes?")?)
    };
    let (plan, _lock) = match confirm(&request.hookbus, make_plan, ask)? {
        Confirmed::Yes(plan, lock) => (plan, lock),
        Confirmed::No(plan) => {
            if format == Format::Json {
                let mut shown = report::json(AGENT, false, &plan.writes, &plan.remarks);
                shown["home"] = json!(request.hookbus.to_string_lossy());
                output::line(shown.to_string())?;
            }
            bail!("nothing has changed; pass --yes to make these changes");
        }
    };
    let mut done = report::json(AGENT, true, &plan.writes, &plan.remarks);
    done["home"] = json!(request.hookbus.to_string_lossy());
    let has_changes = !plan.writes.is_empty();
    carry_out(plan, &record_file, &request.hookbus)?;
    let option = request.location.option();
    output::line(match format {
        Format::Json => done.to_string(),
        Format::Text if !has_changes => {
            "gemini is connected already; nothing has changed".to_owned()
        }
        Format::Text => {
            format!(
                "connected; restart every Gemini that runs. `hookbus disconnect gemini{option}` undoes this"
            )
        }
    })?;
    Ok(Exit::Success)
}

/// Undoes what `connect` did.
pub(in crate::connect) fn disconnect(
    options: &GeminiOptions,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let location = location(options, settings)?;
    let hookbus = files::canonical(&settings.home);
    let record_file = Record::file(&hookbus, AGENT, &location.file);
    let make_plan = || disconnect_plan::make(Record::load(&record_file)?, &location, &hookbus);
    let first = make_plan()?;
    if first.is_empty() {
        output::line(match format {
            Format::Json => report::json(AGENT, false, &[], &first.remarks).to_string(),
            Format::Text => {
                let remarks = first.remarks.iter().map(|remark| format!("{remark}\n"));
                let nothing = "gemini is not connected; nothing has changed".to_owned();
                output::sanitize_lines(&remarks.chain([nothing]).collect::<String>())
            }
        })?;
        return Ok(Exit::Success);
    }
    undo(Agent::Gemini, make_plan, &record_file, options.yes, format, settings)
}

fn location(options: &GeminiOptions, settings: &Settings) -> Result<Location> {
    let user = Location::of_user(settings);
    let Some(folder) = &options.project else { return user };
    let project = Location::of_project(folder)?;
    // Gemini reads no project settings in the home directory: the same file holds those of the user.
    Ok(user.ok().filter(|user| user.file == project.file).unwrap_or(project))
}
