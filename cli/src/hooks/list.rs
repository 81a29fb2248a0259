//! `hookbus hooks list`: the hooks in force, in order, with their approval, and what is wrong with their files.

use anyhow::Result;
use hookbus::decide::{
    Agreement, HookSummary, HooksSource, Idle, InForce, Problem, Reach, Standing,
};
use serde_json::{Value, json};

use super::effective::{EffectiveHooks, approval_items, current_caller};
use crate::cli::Exit;
use crate::output::{self, Paint, sanitize};
use crate::settings::{Format, Settings};

pub(super) fn run(format: Format, settings: &Settings) -> Result<Exit> {
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
                output::line(format!("\nnearer, but not in force ({file}):"))?;
                print(source, in_force, Paint(settings.colour))?;
            }
        }
    }
    let is_sound = hooks.files().all(|(_, in_force)| {
        let is_broken = problems(in_force).iter().any(|problem| problem.reach != Reach::Nothing);
        matches!(in_force.standing, Standing::Current | Standing::NoFile) && !is_broken
    });
    Ok(if is_sound { Exit::Success } else { Exit::Failure })
}

/// The problems of a file that can be parsed, with those of the plugins that it names.
fn problems(in_force: &InForce) -> Vec<Problem> {
    let idle = in_force.hooks.idle_plugins(&current_caller()).into_iter();
    let idle =
        idle.map(|Idle { line, why, .. }| Problem { line, message: why, reach: Reach::Entry });
    in_force.hooks.problems.iter().cloned().chain(idle).collect()
}

/// Each hook with its approval; none if it needs none.
fn hooks_with_approval(in_force: &InForce) -> Vec<(HookSummary, Option<Agreement>)> {
    let items = approval_items(in_force);
    let hooks = in_force.hooks.hooks.iter().map(|hook| {
        let hook = hook.summary();
        let item = items
            .iter()
            .find(|it| (&it.hook, &it.event, it.line) == (&hook.name, &hook.event, hook.line));
        (hook, item.map(|item| item.agreement))
    });
    hooks.collect()
}

fn to_json(source: &HooksSource, in_force: &InForce) -> Value {
    let error = in_force.standing.problem();
    let hooks: Vec<Value> = hooks_with_approval(in_force)
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
    let problems: Vec<Value> = problems(in_force)
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
    let describe_problem = |problem: &Problem| {
        paint.bad(&format!("{file}:{}: {}", problem.line, sanitize(&problem.message)))
    };
    match &in_force.standing {
        Standing::Current => {}
        Standing::NoFile => {
            output::line(format!(
                "no hooks: {file} does not exist; `hookbus demo` shows an example"
            ))?;
        }
        Standing::LastGood(problem) => {
            output::line(describe_problem(problem))?;
            output::line("the file is broken; its last good version is in force:\n")?;
        }
        Standing::NothingGood(problem) => {
            output::line(describe_problem(problem))?;
            output::line(
                "the file is broken and there is no earlier version; no hooks are in force",
            )?;
        }
    }
    for (hook, agreement) in hooks_with_approval(in_force) {
        output::line(describe(&hook, agreement, paint))?;
    }
    for problem in &problems(in_force) {
        output::line(describe_problem(problem))?;
    }
    Ok(())
}

fn describe(hook: &HookSummary, agreement: Option<Agreement>, paint: Paint) -> String {
    let command = hook.command.as_deref().map(sanitize);
    let what = match (&command, hook.action, hook.mode) {
        (Some(what), action, "observe") => format!("observe  {action} {what}"),
        (Some(what), action, _) => format!("{action}  {what}"),
        (None, "broken", _) => paint.bad("broken: counts as failed"),
        (None, action, _) => action.to_owned(),
    };
    let on_failure =
        hook.on_failure.map_or_else(String::new, |policy| format!("  on failure: {policy}"));
    let approval = match agreement {
        Some(Agreement::Given) | None => String::new(),
        Some(Agreement::Never) => paint.bad("  not approved: run `hookbus hooks approve`"),
        Some(Agreement::Lapsed) => {
            paint.bad("  changed since approval: run `hookbus hooks approve`")
        }
    };
    let (event, name) = (sanitize(&hook.event), sanitize(&hook.name));
    format!("{:<24} {name:<28} {what}{on_failure}{approval}", paint.bold(&event))
}
