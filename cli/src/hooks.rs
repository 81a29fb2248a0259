//! `hookbus hooks …`: what is in force and what is wrong with the file, trying hooks, agreeing to them.

mod consent;
mod doctor;
mod trial;

use anyhow::Result;
use clap::Subcommand;
use hookbus::decide::{Hook, HookSummary, HooksSource, InForce, Reach, Standing, Surroundings};
use hookbus::log::LogPath;
use serde_json::{Value, json};

use crate::cli::Ending;
use crate::output::{self, Paint};
use crate::settings::{Format, Settings};

/// `hookbus hooks …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// The hooks in force, in order, and what is wrong with the file. Exits 1 if anything is broken.
    List,
    /// Put a made-up event to the hooks, and see what each says. Nothing is recorded.
    Test(trial::Arguments),
    /// Agree to what hooks run: shows each entry and its script, and asks. Needed with `trust: nobody`.
    Approve(consent::Approve),
    /// Take back the agreement to a command.
    Revoke {
        /// The command, as it is written in hookbus.yaml.
        command: String,
    },
    /// Can everything run that should, is the agent wired, do events arrive? Exits 1 if anything is wrong.
    Doctor,
}

/// Where this command stands, for hooks that it tries.
fn here() -> Surroundings {
    Surroundings {
        cwd: std::env::current_dir().unwrap_or_default(),
        env: std::env::vars_os().collect(),
        pid: Some(std::process::id()),
        ..Surroundings::default()
    }
}

pub(crate) fn run(verb: &Verb, format: Format, settings: &Settings) -> Result<Ending> {
    match verb {
        Verb::List => list(format, settings),
        Verb::Test(arguments) => trial::run(arguments, format, settings),
        Verb::Approve(arguments) => consent::approve(arguments, format, settings),
        Verb::Revoke { command } => consent::revoke(command, format, settings),
        Verb::Doctor => doctor::run(format, settings),
    }
}

fn list(format: Format, settings: &Settings) -> Result<Ending> {
    let source = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let in_force = source.in_force();
    match format {
        Format::Json => output::line(to_json(&source, &in_force).to_string())?,
        Format::Text => print(&source, &in_force, Paint(settings.colour))?,
    }
    let broken = in_force.hooks.problems.iter().any(|problem| problem.reach != Reach::Nothing);
    let sound = matches!(in_force.standing, Standing::Current | Standing::NoFile) && !broken;
    Ok(if sound { Ending::Yes } else { Ending::No })
}

fn to_json(source: &HooksSource, in_force: &InForce) -> Value {
    let error = in_force.standing.problem();
    let hooks: Vec<Value> = in_force
        .hooks
        .hooks
        .iter()
        .map(|hook| {
            let HookSummary { name, event, action, command, mode, on_failure, line } =
                hook.summary();
            json!({"name": name, "event": event, "action": action, "command": command, "mode": mode,
                   "on_failure": on_failure, "line": line})
        })
        .collect();
    let problems: Vec<Value> = in_force
        .hooks
        .problems
        .iter()
        .map(|problem| json!({"line": problem.line, "message": problem.message}))
        .collect();
    json!({
        "file": source.file().to_string_lossy(),
        "standing": in_force.standing.as_str(),
        "error": error.map(|problem| json!({"line": problem.line, "message": problem.message})),
        "hash": in_force.hooks.hash,
        "hooks": hooks,
        "problems": problems,
    })
}

fn print(source: &HooksSource, in_force: &InForce, paint: Paint) -> Result<()> {
    let file = source.file().display();
    match &in_force.standing {
        Standing::Current => {}
        Standing::NoFile => {
            output::line(format!("no hooks: there is no {file}; `hookbus demo` shows one"))?;
        }
        Standing::LastGood(problem) => {
            output::line(paint.bad(&format!("{file}:{}: {}", problem.line, problem.message)))?;
            output::line("the file is broken; its last good version is in force:\n")?;
        }
        Standing::NothingGood(problem) => {
            output::line(paint.bad(&format!("{file}:{}: {}", problem.line, problem.message)))?;
            output::line(
                "the file is broken and there is no earlier version; no hooks are in force",
            )?;
        }
    }
    for hook in in_force.hooks.hooks.iter().map(Hook::summary) {
        output::line(describe(&hook, paint))?;
    }
    for problem in &in_force.hooks.problems {
        output::line(paint.bad(&format!("{file}:{}: {}", problem.line, problem.message)))?;
    }
    Ok(())
}

fn describe(hook: &HookSummary, paint: Paint) -> String {
    let what = match (&hook.command, hook.action, hook.mode) {
        (Some(what), action, "observe") => format!("observe  {action} {what}"),
        (Some(what), action, _) => format!("{action}  {what}"),
        (None, "broken", _) => paint.bad("broken: it counts as failed"),
        (None, action, _) => action.to_owned(),
    };
    let strict =
        hook.on_failure.map_or_else(String::new, |policy| format!("  on failure: {policy}"));
    format!("{:<24} {:<28} {what}{strict}", paint.bold(&hook.event), hook.name)
}
