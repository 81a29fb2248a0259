//! `hookbus hooks …`: what is in force and what is wrong with the file, trying hooks, agreeing to them. Where
//! this command stands in a project, its hooks count too.

mod consent;
mod doctor;
mod sample_events;
mod hooks_test;

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Subcommand;
use hookbus::decide::{
    Agreeable, Agreement, Asked, HookSummary, HooksSource, Idle, InForce, Problem, Projects, Reach,
    Standing, Surroundings, Trust,
};
use hookbus::log::LogPath;
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::output::{self, Paint, sanitize};
use crate::settings::{Format, Settings};

/// `hookbus hooks …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// The hooks in force, in order, and what is wrong with the file. Exits 1 if anything is broken.
    List,
    /// Put a made-up event to the hooks, and see what each says, who only looked on, what failed. Nothing is recorded.
    Test(hooks_test::Arguments),
    /// Agree to what hooks run: shows each entry and its script, and asks. Until then they do not run.
    Approve(consent::Approve),
    /// Take back the agreement to a hook, in your own file and in the project you stand in.
    Revoke {
        /// What it runs, as it is written in hookbus.yaml, or its name: all hooks of that name.
        command: String,
    },
    /// Can everything run that should, is the agent wired, do events arrive? Each command is tried with a made-up
    /// event, each plugin with one of every kind it can answer. Exits 1 if anything is wrong.
    Doctor,
}

/// Where this command stands, for hooks that it tries; with what agents say about that.
pub(crate) fn current_caller() -> Surroundings {
    let cwd = std::env::current_dir().unwrap_or_default();
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for name in ["GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"] {
        if env.iter().all(|(known, _)| known != name) {
            env.push((name.into(), cwd.clone().into()));
        }
    }
    Surroundings { cwd, env, pid: Some(std::process::id()), ..Surroundings::default() }
}

/// The hooks that count where this command stands.
struct EffectiveHooks {
    own: (HooksSource, Arc<InForce>),
    project: Option<(Arc<HooksSource>, Arc<InForce>)>,
    /// The file of a project further in, which counts only after somebody agreed to something in it.
    nearer: Option<(Arc<HooksSource>, Arc<InForce>)>,
}

impl EffectiveHooks {
    fn find(settings: &Settings) -> Self {
        let log = LogPath::in_home(&settings.home);
        let own = HooksSource::new(&settings.home, log.clone());
        let own_in_force = own.in_force();
        let (projects, here) = (Projects::new(&settings.home, log), current_caller());
        let looked_at = |source: Arc<HooksSource>| {
            let in_force = Arc::new(source.to_look_at());
            (source, in_force)
        };
        let project = projects.source(&here);
        let is_another = |nearest: &Arc<HooksSource>| {
            project.as_ref().is_some_and(|project| project.file() != nearest.file())
        };
        let nearer = projects.nearest(&here).filter(is_another).map(looked_at);
        Self { own: (own, own_in_force), project: project.map(looked_at), nearer }
    }

    /// Says what is wrong with a file that cannot be read; an error where nothing of the person's own is in force
    /// for it, and whatever else could be said would be an all-clear.
    fn must_be_readable(&self) -> Result<()> {
        for (source, in_force) in self.files() {
            let file = sanitize(&source.file().display().to_string());
            let Some(problem) = in_force.standing.problem() else { continue };
            let wrong = format!("{file}:{}: {}", problem.line, sanitize(&problem.message));
            let is_void = matches!(in_force.standing, Standing::NothingGood(_));
            if is_void && in_force.hooks.project.is_none() {
                bail!("{wrong}; no hooks are in force until you mend it");
            }
            let what = if is_void { "nothing of it" } else { "its last good version" };
            output::to_stderr(format!("{wrong}; {what} is in force until you mend it"));
        }
        Ok(())
    }

    fn asked(&self) -> Asked<'_> {
        Asked { own: &self.own.1.hooks, project: self.project.as_ref().map(|it| &it.1.hooks) }
    }

    /// What has to be agreed to of all this.
    fn agreeables(&self) -> Vec<Agreeable> {
        self.files().flat_map(|(_, in_force)| agreeables(in_force)).collect()
    }

    /// An entry as it is now.
    fn again(&self, entry: &Agreeable) -> Option<Agreeable> {
        let mut files = self.files().map(|(_, in_force)| &in_force.hooks);
        files.find(|hooks| hooks.project == entry.project)?.again(entry, &current_caller())
    }

    fn files(&self) -> impl Iterator<Item = (&HooksSource, &InForce)> {
        let projects = self.project.iter().chain(&self.nearer);
        let projects = projects.map(|(source, in_force)| (&**source, &**in_force));
        std::iter::once((&self.own.0, &*self.own.1)).chain(projects)
    }
}

/// What of these hooks has to be agreed to; nothing of a person's own where their home is trusted.
fn agreeables(in_force: &InForce) -> Vec<Agreeable> {
    let hooks = &in_force.hooks;
    if hooks.trust == Trust::Home { Vec::new() } else { hooks.agreeables(&current_caller()) }
}

pub(crate) fn run(verb: &Verb, format: Format, settings: &Settings) -> Result<Exit> {
    match verb {
        Verb::List => list(format, settings),
        Verb::Test(arguments) => hooks_test::run(arguments, format, settings),
        Verb::Approve(arguments) => consent::approve(arguments, format, settings),
        Verb::Revoke { command } => consent::revoke(command, format, settings),
        Verb::Doctor => doctor::run(format, settings),
    }
}

fn list(format: Format, settings: &Settings) -> Result<Exit> {
    let hooks = EffectiveHooks::load(settings);
    match format {
        Format::Json => {
            let mut report = to_json(&hooks.own.0, &hooks.own.1);
            for (key, file) in [("project", &hooks.project), ("nearer", &hooks.nearer)] {
                let file = file.as_ref();
                report[key] =
                    file.map_or(Value::Null, |(source, in_force)| to_json(source, in_force));
            }
            output::line(report.to_string())?;
        }
        Format::Text => {
            print(&hooks.own.0, &hooks.own.1, Paint(settings.colour))?;
            if let Some((source, in_force)) = &hooks.project {
                let file = sanitize(&source.file().display().to_string());
                output::line(format!("\nin this project ({file}):"))?;
                print(source, in_force, Paint(settings.colour))?;
            }
            if let Some((source, in_force)) = &hooks.nearer {
                let file = sanitize(&source.file().display().to_string());
                output::line(format!("\nnearer, and not in force ({file}):"))?;
                print(source, in_force, Paint(settings.colour))?;
            }
        }
    }
    let sound = hooks.files().all(|(_, in_force)| {
        let broken = problems_of(in_force).iter().any(|problem| problem.reach != Reach::Nothing);
        matches!(in_force.standing, Standing::Current | Standing::NoFile) && !broken
    });
    Ok(if sound { Exit::Success } else { Exit::Failure })
}

/// What is wrong with a file that can be read, and with what it names.
fn problems_of(in_force: &InForce) -> Vec<Problem> {
    let idle = in_force.hooks.idle_plugins(&current_caller()).into_iter();
    let idle =
        idle.map(|Idle { line, why, .. }| Problem { line, message: why, reach: Reach::Entry });
    in_force.hooks.problems.iter().cloned().chain(idle).collect()
}

/// Each hook, and how the person stands to it; none where they need not be asked.
fn hooks_of(in_force: &InForce) -> Vec<(HookSummary, Option<Agreement>)> {
    let asked_about = agreeables(in_force);
    let hooks = in_force.hooks.hooks.iter().map(|hook| {
        let hook = hook.summary();
        let entry = asked_about
            .iter()
            .find(|it| (&it.hook, &it.event, it.line) == (&hook.name, &hook.event, hook.line));
        (hook, entry.map(|entry| entry.agreement))
    });
    hooks.collect()
}

fn to_json(source: &HooksSource, in_force: &InForce) -> Value {
    let error = in_force.standing.problem();
    let hooks: Vec<Value> = hooks_of(in_force)
        .into_iter()
        .map(|(hook, agreement)| {
            let HookSummary { name, event, action, command, mode, on_failure, line } = hook;
            let consent = agreement.map(|agreement| match agreement {
                Agreement::Given => "given",
                Agreement::Never => "never",
                Agreement::Lapsed => "lapsed",
            });
            json!({"name": name, "event": event, "action": action, "command": command, "mode": mode,
                   "on_failure": on_failure, "line": line, "consent": consent})
        })
        .collect();
    let problems: Vec<Value> = problems_of(in_force)
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
    let file = sanitize(&source.file().display().to_string());
    let wrong = |problem: &Problem| {
        paint.bad(&format!("{file}:{}: {}", problem.line, sanitize(&problem.message)))
    };
    match &in_force.standing {
        Standing::Current => {}
        Standing::NoFile => {
            output::line(format!("no hooks: there is no {file}; `hookbus demo` shows one"))?;
        }
        Standing::LastGood(problem) => {
            output::line(wrong(problem))?;
            output::line("the file is broken; its last good version is in force:\n")?;
        }
        Standing::NothingGood(problem) => {
            output::line(wrong(problem))?;
            output::line(
                "the file is broken and there is no earlier version; no hooks are in force",
            )?;
        }
    }
    for (hook, agreement) in hooks_of(in_force) {
        output::line(describe(&hook, agreement, paint))?;
    }
    for problem in &problems_of(in_force) {
        output::line(wrong(problem))?;
    }
    Ok(())
}

fn describe(hook: &HookSummary, agreement: Option<Agreement>, paint: Paint) -> String {
    let command = hook.command.as_deref().map(sanitize);
    let what = match (&command, hook.action, hook.mode) {
        (Some(what), action, "observe") => format!("observe  {action} {what}"),
        (Some(what), action, _) => format!("{action}  {what}"),
        (None, "broken", _) => paint.bad("broken: it counts as failed"),
        (None, action, _) => action.to_owned(),
    };
    let strict =
        hook.on_failure.map_or_else(String::new, |policy| format!("  on failure: {policy}"));
    let waits = match agreement {
        Some(Agreement::Given) | None => String::new(),
        Some(Agreement::Never) => paint.bad("  does not run before `hookbus hooks approve`"),
        Some(Agreement::Lapsed) => paint.bad("  has changed: `hookbus hooks approve`"),
    };
    let (event, name) = (sanitize(&hook.event), sanitize(&hook.name));
    format!("{:<24} {name:<28} {what}{strict}{waits}", paint.bold(&event))
}
