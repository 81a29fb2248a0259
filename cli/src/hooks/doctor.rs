//! `hookbus hooks doctor`: can every hook run, is each agent connected, do events arrive? Each finding says what to do.

mod advice;
mod commands;
mod connections;
mod finding;
mod launch;
mod observers;
mod plugins;

use anyhow::Result;
use hookbus::decide::{Agreeable, Agreement, Hooks, HooksSource, InForce, Reach, Trust};
use serde_json::{Value, json};

use self::finding::Finding;
use super::{HooksHere, here};
use crate::cli::Ending;
use crate::output::{self, Paint, Progress, harmless};
use crate::settings::{Format, Settings};

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Ending> {
    let hooks = HooksHere::find(settings);
    let mut findings = Vec::new();
    if let Some(trouble) = hooks.own.1.hooks.consents.trouble() {
        findings.push(Finding::bad("consent", trouble));
    }
    for (source, in_force) in hooks.files() {
        findings.extend(check_file(source, in_force));
    }
    findings.extend(observers::check(settings));
    findings.extend(connections::check(settings, &hooks));
    let wrong = findings.iter().filter(|finding| finding.wrong.is_some()).count();
    report(&findings, format, Paint(settings.colour))?;
    Ok(if wrong == 0 { Ending::Yes } else { Ending::No })
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
        let about = harmless(&finding.about);
        output::line(match &finding.wrong {
            None => format!("{}  {about}", paint.good("ok ")),
            Some(wrong) => format!("{}  {about}: {}", paint.bad("bad"), harmless(wrong)),
        })?;
    }
    Ok(())
}

/// Checks one hooks file: can it be parsed, can its hooks run?
fn check_file(source: &HooksSource, in_force: &InForce) -> Vec<Finding> {
    let (file, hooks) = (source.file().display().to_string(), &in_force.hooks);
    let broken = hooks.problems.iter().filter(|problem| problem.reach != Reach::Nothing);
    let problems = in_force.standing.problem().into_iter().chain(broken);
    let mut findings: Vec<Finding> =
        problems.map(|problem| Finding::bad(file.clone(), problem.to_string())).collect();
    let entries = hooks.agreeables(&here());
    let mut progress = Progress::of(entries.len() as u64, "hooks");
    for (index, entry) in entries.iter().enumerate() {
        findings.extend(check_entry(entry, hooks));
        progress.at(index as u64 + 1);
    }
    findings.extend(hooks.absent_plugins(&here()).into_iter().map(|name| {
        let about = format!("the plugin {name}");
        Finding::bad(
            about,
            "no directory of a `python:` hook contains it; check its name under `plugins: enabled:`",
        )
    }));
    findings
}

/// Checks one entry: can it start, is it approved, does it answer?
fn check_entry(entry: &Agreeable, hooks: &Hooks) -> Vec<Finding> {
    let about = format!("{} on {}", entry.hook, entry.event);
    if let Some(wrong) = launch::problem(entry).filter(|_| entry.runs_something) {
        return vec![Finding::bad(about, wrong)];
    }
    let idle = hooks.alone(entry).idle_plugins(&here());
    if !idle.is_empty() {
        return idle.into_iter().map(|idle| Finding::bad(about.clone(), idle.why)).collect();
    }
    if hooks.trust == Trust::Nobody && entry.agreement != Agreement::Given {
        let why = match entry.agreement {
            Agreement::Lapsed => "it has changed since you agreed to it",
            Agreement::Never | Agreement::Given => "you have not agreed to it yet",
        };
        return vec![Finding::bad(about, format!("{why}; run `hookbus hooks approve`"))];
    }
    plugins::check(entry, hooks).unwrap_or_else(|| vec![commands::check(entry, hooks, about)])
}
