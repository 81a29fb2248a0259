//! `hookbus hooks list`: the hooks in force, in order, with their approval, and what is wrong with their files.

use anyhow::Result;
use hookbus::active::{ActiveHooks, HooksSource, HooksStatus};
use hookbus::config::{Approval, HookSummary, Problem, Reach};
use hookbus::plugins::{EmptyPluginEntry, empty_entries};
use serde_json::{Value, json};

use super::effective::{EffectiveHooks, approval_items, hook_caller};
use crate::cli::Exit;
use crate::output::{self, Paint, pad, sanitize, width};
use crate::settings::{Format, Settings};

pub(super) fn run(format: Format, settings: &Settings) -> Result<Exit> {
    let hooks = EffectiveHooks::load(settings);
    let lost = hooks.own.1.approvals.store().problem();
    match format {
        Format::Json => {
            let mut report = to_json(&hooks.own.0, &hooks.own.1);
            report["consent_error"] = json!(lost.as_ref().map(ToString::to_string));
            for (key, file) in [("project", &hooks.project), ("nearer", &hooks.nearer)] {
                let file = file.as_ref();
                report[key] = file.map_or(Value::Null, |(source, active)| to_json(source, active));
            }
            output::line(report.to_string())?;
        }
        Format::Text => {
            if let Some(lost) = &lost {
                output::line(Paint(settings.colour).bad(&sanitize(&lost.to_string())))?;
            }
            print(&hooks.own.0, &hooks.own.1, Paint(settings.colour))?;
            if let Some((source, active)) = &hooks.project {
                let file = sanitize(&source.file().display().to_string());
                output::line(format!("\nin this project ({file}):"))?;
                print(source, active, Paint(settings.colour))?;
            }
            if let Some((source, active)) = &hooks.nearer {
                let file = sanitize(&source.file().display().to_string());
                output::line(format!("\nnearer, but not in force ({file}):"))?;
                print(source, active, Paint(settings.colour))?;
            }
        }
    }
    let is_sound = hooks.files().all(|(_, active)| {
        let is_broken = problems(active).iter().any(|problem| problem.reach != Reach::Nothing);
        matches!(active.status, HooksStatus::Current | HooksStatus::NoFile) && !is_broken
    });
    Ok(if is_sound && lost.is_none() { Exit::Success } else { Exit::Failure })
}

/// The problems of a file that can be parsed, with those of the plugins that it names.
fn problems(active: &ActiveHooks) -> Vec<Problem> {
    let empty = empty_entries(&active.file, &hook_caller(active)).into_iter();
    let empty = empty.map(|EmptyPluginEntry { line, why, .. }| Problem::broken_entry(line, why));
    active.file.problems.iter().cloned().chain(empty).collect()
}

/// Each hook with its approval; none if it needs none.
fn hooks_with_approval(active: &ActiveHooks) -> Vec<(HookSummary, Option<Approval>)> {
    let items = approval_items(active);
    let hooks = active.file.hooks.iter().map(|hook| {
        let hook = hook.summary();
        let item = items
            .iter()
            .find(|it| (&it.hook, &it.event, it.line) == (&hook.name, &hook.event, hook.line));
        (hook, item.map(|item| item.approval))
    });
    hooks.collect()
}

fn to_json(source: &HooksSource, active: &ActiveHooks) -> Value {
    let error = active.status.problem();
    let hooks: Vec<Value> = hooks_with_approval(active)
        .into_iter()
        .map(|(hook, approval)| {
            let HookSummary { name, event, action, command, mode, on_failure, line, pack } = hook;
            let consent = approval.map(|approval| match approval {
                Approval::Approved => "given",
                Approval::NotApproved => "never",
                Approval::Lapsed => "lapsed",
                Approval::Lost => "lost",
            });
            json!({"name": name, "event": event, "action": action, "command": command, "mode": mode,
                   "on_failure": on_failure, "line": line, "consent": consent, "pack": pack})
        })
        .collect();
    let problems: Vec<Value> = problems(active)
        .iter()
        .map(|problem| json!({"line": problem.line, "message": problem.message, "kept": problem.kept}))
        .collect();
    json!({
        "file": source.file().to_string_lossy(),
        "standing": active.status.as_str(),
        "error": error.map(|problem| json!({"line": problem.line, "message": problem.message})),
        "hash": active.file.hash,
        "hooks": hooks,
        "problems": problems,
    })
}

fn print(source: &HooksSource, active: &ActiveHooks, paint: Paint) -> Result<()> {
    let file = sanitize(&source.file().display().to_string());
    let describe_problem = |problem: &Problem| {
        paint.bad(&format!("{file}:{}: {}", problem.line, sanitize(&problem.message)))
    };
    match &active.status {
        HooksStatus::Current => {}
        HooksStatus::NoFile => {
            output::line(format!(
                "no hooks: {file} does not exist; `hookbus demo` shows an example"
            ))?;
        }
        HooksStatus::LastGood(problem) => {
            output::line(describe_problem(problem))?;
            output::line("the file is broken; its last good version is in force:\n")?;
        }
        HooksStatus::NothingGood(problem) => {
            output::line(describe_problem(problem))?;
            output::line(
                "the file is broken and there is no earlier version; no hooks are in force",
            )?;
        }
    }
    let hooks = hooks_with_approval(active);
    let columns = Columns::of(hooks.iter().map(|(hook, _)| hook));
    for (hook, approval) in &hooks {
        let label = columns.label(hook, paint);
        output::labelled(&label, &describe(hook, *approval, paint))?;
    }
    for problem in &problems(active) {
        output::line(describe_problem(problem))?;
    }
    Ok(())
}

/// The widths of the columns of events and names.
struct Columns {
    event: usize,
    name: usize,
}

impl Columns {
    /// As wide as the widest; a single very long one does not push the others out of the window.
    fn of<'a>(hooks: impl Iterator<Item = &'a HookSummary>) -> Self {
        let (mut event, mut name) = (0, 0);
        for hook in hooks {
            event = event.max(width(&sanitize(&hook.event)));
            name = name.max(width(&sanitize(&hook.name)));
        }
        Self { event: event.min(24), name: name.min(28) }
    }

    fn label(&self, hook: &HookSummary, paint: Paint) -> String {
        let event = paint.bold(&sanitize(&hook.event));
        format!("{}  {}  ", pad(&event, self.event), pad(&sanitize(&hook.name), self.name))
    }
}

fn describe(hook: &HookSummary, approval: Option<Approval>, paint: Paint) -> String {
    let command = hook.command.as_deref().map(sanitize);
    let what = match (&command, hook.action, hook.mode) {
        (Some(what), action, mode @ ("observe" | "shadow")) => format!("{mode}  {action} {what}"),
        (Some(what), action, _) => format!("{action}  {what}"),
        (None, "broken", _) => paint.bad("broken: counts as failed"),
        (None, action, "shadow") => format!("shadow  {action}"),
        (None, action, _) => action.to_owned(),
    };
    let on_failure =
        hook.on_failure.map_or_else(String::new, |policy| format!("  on failure: {policy}"));
    let approval = match approval {
        Some(Approval::Approved) | None => String::new(),
        Some(Approval::NotApproved) => paint.bad("  not approved: run `hookbus hooks approve`"),
        Some(Approval::Lapsed) => {
            paint.bad("  changed since approval: run `hookbus hooks approve`")
        }
        Some(Approval::Lost) => {
            paint.bad("  its approval is gone from consent.json: run `hookbus hooks approve`")
        }
    };
    format!("{what}{on_failure}{approval}")
}
