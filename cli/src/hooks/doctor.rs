//! `hookbus hooks doctor`: can every hook run, is each agent connected, do events arrive? Each finding says what to do.

mod advice;
mod commands;
mod connections;
mod finding;
mod gateway;
mod launch;
mod observers;
mod plugins;
mod spool;

use std::fs;

use anyhow::Result;
use hookbus::active::{ActiveHooks, HooksSource};
use hookbus::config::{Action, Approval, Hook, Reach, Trust};
use hookbus::consent::ApprovalItem;
use hookbus::exec::UserEnvironment;
use hookbus::files::{check_private, check_private_folder};
use hookbus::plugins::{empty_entries, missing_plugins};
use serde_json::{Value, json};

use self::finding::Finding;
use super::effective::hook_caller;
use super::{EffectiveHooks, current_caller};
use crate::cli::Exit;
use crate::output::{self, Paint, Progress, sanitize};
use crate::settings::{Format, Settings};

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Exit> {
    let hooks = EffectiveHooks::load(settings);
    let mut findings = Vec::new();
    if let Some(problem) = hooks.own.1.approvals.store().problem() {
        findings.push(Finding::bad("consent", problem.to_string()));
    }
    findings.extend(check_private_home(settings));
    findings.extend(check_environment(&hooks, settings));
    for (source, active) in hooks.files() {
        findings.extend(check_file(source, active));
    }
    findings.extend(observers::check(settings));
    findings.extend(spool::check(settings));
    findings.extend(connections::check(settings, &hooks));
    let wrong = findings.iter().filter(|finding| finding.wrong.is_some()).count();
    report(&findings, format, Paint(settings.colour))?;
    Ok(if wrong == 0 { Exit::Success } else { Exit::Failure })
}

/// Whether other users can change the home or the log. The other files report that themselves.
fn check_private_home(settings: &Settings) -> Option<Finding> {
    let log = settings.home.join("log.db");
    let of_log = || fs::metadata(&log).ok().map(|metadata| check_private(&log, &metadata));
    let checked = check_private_folder(&settings.home);
    // With a hooks file, the finding about that says it already.
    let checked = checked.err().filter(|_| !settings.home.join("hookbus.yaml").exists());
    let error = checked.or_else(|| of_log()?.err())?;
    Some(Finding::bad("home", error.to_string()))
}

/// Whether the user's own PATH is known, if a hook needs it.
fn check_environment(hooks: &EffectiveHooks, settings: &Settings) -> Option<Finding> {
    let runs_something =
        hooks.files().any(|(_, active)| active.file.hooks.iter().any(Hook::runs_outside));
    let is_recorded = UserEnvironment::recorded(&settings.home).is_ok_and(|it| it.is_some());
    (runs_something && !is_recorded).then(|| {
        Finding::ok(
            "your own PATH is not recorded yet, so hooks use the agent's without the directories of its project; \
             `hookbus hooks approve` at a terminal records yours",
        )
    })
}

fn report(findings: &[Finding], format: Format, paint: Paint) -> Result<()> {
    if format == Format::Json {
        let rows: Vec<Value> = findings
            .iter()
            .map(|finding| json!({"about": finding.about, "ok": finding.wrong.is_none(), "finding": finding.wrong}))
            .collect();
        output::line(json!({"findings": rows}).to_string())?;
        return Ok(());
    }
    for finding in findings {
        let about = sanitize(&finding.about);
        match &finding.wrong {
            None => output::labelled(&format!("{}  ", paint.good("ok ")), &about)?,
            Some(wrong) => {
                let text = format!("{about}: {}", sanitize(wrong));
                output::labelled(&format!("{}  ", paint.bad("bad")), &text)?;
            }
        }
    }
    Ok(())
}

/// Checks one hooks file: can it be parsed, can its hooks run?
fn check_file(source: &HooksSource, active: &ActiveHooks) -> Vec<Finding> {
    let file = source.file().display().to_string();
    let broken = active.file.problems.iter().filter(|problem| problem.reach != Reach::Nothing);
    let problems = active.status.problem().into_iter().chain(broken);
    let mut findings: Vec<Finding> =
        problems.map(|problem| Finding::bad(file.clone(), problem.to_string())).collect();
    let entries = active.approval_items(&current_caller());
    let caller = hook_caller(active);
    let mut progress = Progress::new(entries.len() as u64, "hooks");
    for (index, entry) in entries.iter().enumerate() {
        findings.extend(check_entry(entry, active));
        progress.update(index as u64 + 1);
    }
    findings.extend(missing_plugins(&active.file, &caller).into_iter().map(|name| {
        let about = format!("the plugin {name}");
        Finding::bad(
            about,
            "no directory of a `python:` hook contains it; check its name under `plugins: enabled:`",
        )
    }));
    findings
}

/// Checks one entry: can it start, is it approved, does it answer?
fn check_entry(entry: &ApprovalItem, active: &ActiveHooks) -> Vec<Finding> {
    let about = format!("{} on {}", entry.hook, entry.event);
    let Some(hook) = active.hook_of(entry) else { return Vec::new() };
    let caller = active.approvals.store().hook_caller(&current_caller(), hook.pass_env());
    let env =
        if let Action::Command(command) = &hook.action { command.env.as_slice() } else { &[] };
    if let Some(wrong) = launch::problem(entry, env, &caller).filter(|_| entry.runs_something) {
        return vec![Finding::bad(about, wrong)];
    }
    let active = active.with_only(hook);
    let empty = empty_entries(&active.file, &caller);
    if !empty.is_empty() {
        return empty.into_iter().map(|empty| Finding::bad(about.clone(), empty.why)).collect();
    }
    if active.file.trust == Trust::Nobody && entry.approval != Approval::Approved {
        let why = match entry.approval {
            Approval::Lapsed => "it has changed since you approved it",
            Approval::Lost => {
                "its approval is gone from consent.json although it was never revoked"
            }
            Approval::NotApproved | Approval::Approved => "you have not approved it yet",
        };
        return vec![Finding::bad(about, format!("{why}; run `hookbus hooks approve`"))];
    }
    plugins::check(entry, &active).unwrap_or_else(|| vec![commands::check(entry, active, about)])
}
