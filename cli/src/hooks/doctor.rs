//! `hookbus hooks doctor`: is everything that should run able to, is the agent really wired, do events
//! arrive? Every finding says how to mend it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use hookbus::decide::{Agreeable, Agreement, Hooks, HooksSource, InForce, Reach, Trust};
use hookbus::event::{Agent, Clock, Kind, SystemClock, Wire, event_names, kind_of};
use hookbus::log::{LogPath, LogReader, Query};
use serde_json::{Value, json};

use super::{HooksHere, here, trial};
use crate::cli::Ending;
use crate::connect;
use crate::output::{self, Paint, harmless, spell};
use crate::settings::{Format, Settings};

/// An agent that said nothing for so long may not be wired any more.
const LATELY: Duration = Duration::from_hours(24 * 7);

/// A hook that takes longer than this is felt.
const SLOW_MS: f64 = 1000.0;

struct Finding {
    about: String,
    /// None: all is well.
    wrong: Option<String>,
}

impl Finding {
    fn well(about: impl Into<String>) -> Self {
        Self { about: about.into(), wrong: None }
    }

    fn bad(about: impl Into<String>, wrong: impl Into<String>) -> Self {
        Self { about: about.into(), wrong: Some(wrong.into()) }
    }
}

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Ending> {
    let hooks = HooksHere::find(settings);
    let mut findings = Vec::new();
    if let Some(trouble) = hooks.own.1.hooks.consents.trouble() {
        findings.push(Finding::bad("consent", trouble));
    }
    for (source, in_force) in hooks.files() {
        findings.extend(about_file(source, in_force));
    }
    findings.extend(wiring(settings));
    findings.push(arrivals(settings));
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

/// One hooks file: can it be read, can its entries run?
fn about_file(source: &HooksSource, in_force: &InForce) -> Vec<Finding> {
    let (file, hooks) = (source.file().display().to_string(), &in_force.hooks);
    let broken = hooks.problems.iter().filter(|problem| problem.reach != Reach::Nothing);
    let problems = in_force.standing.problem().into_iter().chain(broken);
    let mut findings: Vec<Finding> =
        problems.map(|problem| Finding::bad(file.clone(), problem.to_string())).collect();
    findings.extend(hooks.agreeables(&here()).iter().flat_map(|entry| examine(entry, hooks)));
    findings.extend(hooks.absent_plugins(&here()).into_iter().map(|name| {
        let about = format!("the plugin {name}");
        Finding::bad(
            about,
            "no directory of a `python:` hook has it; check its name under `plugins: enabled:`",
        )
    }));
    findings
}

/// One entry: can it start, was it agreed to, what does it say?
fn examine(entry: &Agreeable, hooks: &Hooks) -> Vec<Finding> {
    let about = format!("{} on {}", entry.hook, entry.event);
    if let Some(wrong) = cannot_start(entry).filter(|_| entry.runs_something) {
        return vec![Finding::bad(about, wrong)];
    }
    if hooks.trust == Trust::Nobody && entry.agreement != Agreement::Given {
        let why = match entry.agreement {
            Agreement::Lapsed => "it has changed since you agreed to it",
            Agreement::Never | Agreement::Given => "nobody has agreed to it",
        };
        return vec![Finding::bad(about, format!("{why}; run `hookbus hooks approve`"))];
    }
    vec![tried(entry, hooks, about)]
}

fn cannot_start(entry: &Agreeable) -> Option<String> {
    let Some(program) = entry.words.first() else {
        return Some(format!("`{}` has a quote that is never closed", entry.command));
    };
    let found = on_path(program);
    let Some(program) = found else {
        return Some(format!("`{program}` does not exist; check the path, or `PATH`"));
    };
    let mode = fs::metadata(&program).map_or(0, |file| file.permissions().mode());
    if mode & 0o111 == 0 {
        return Some(format!("it is not executable; run `chmod +x {}`", program.display()));
    }
    let start = fs::read(&program).unwrap_or_default();
    let line = String::from_utf8_lossy(&start[..start.len().min(200)])
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let interpreter =
        line.strip_prefix("#!")?.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let named = match interpreter.as_slice() {
        [env, name, ..] if env.ends_with("/env") => name,
        [name, ..] => name,
        [] => {
            return Some(
                "its first line names no interpreter; start it with `#!/bin/sh` or the like"
                    .to_owned(),
            );
        }
    };
    on_path(named).is_none().then(|| {
        format!("its interpreter `{named}` does not exist; install it, or change the first line")
    })
}

fn on_path(program: &str) -> Option<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default().join(program);
    if program.contains('/') {
        return here.is_file().then_some(here);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|place| place.join(program)).find(|file| file.is_file())
}

/// A run on a made-up event: does it answer in words that are understood, and how fast?
fn tried(entry: &Agreeable, hooks: &Hooks, about: String) -> Finding {
    let Some((agent, name)) = an_event_for(&entry.event) else { return Finding::well(about) };
    let kind = kind_of(agent, &name);
    let tool = matches!(kind, Kind::ToolBefore | Kind::ToolAfter | Kind::ToolOutput);
    let shell = if agent == Agent::Gemini { "run_shell_command" } else { "terminal" };
    let payload = trial::made_up(&name, tool.then_some(shell));
    let event = trial::event(agent, Wire::Bridge, &payload);
    let alone = hooks.alone(entry);
    let Ok(Some(decision)) = trial::put(&event, (&alone).into()) else {
        return Finding::well(about);
    };
    let row = decision.to_json();
    // One, or one per plugin of a directory.
    let verdicts = row["verdicts"].as_array().cloned().unwrap_or_default();
    if verdicts.is_empty() {
        return Finding::well(about);
    }
    let took = verdicts.iter().filter_map(|verdict| verdict["ms"].as_f64()).fold(0.0_f64, f64::max);
    if let Some(failure) = verdicts.iter().find_map(|verdict| verdict["failure"].as_str()) {
        return Finding::bad(about, format!("tried with a made-up event: {failure}"));
    }
    if took > SLOW_MS {
        return Finding::bad(
            about,
            format!(
                "it took {took:.0} ms for a made-up event, which the agent waits for; make it quicker, or `mode: observe`"
            ),
        );
    }
    Finding::well(format!("{about}: answered a made-up event in {took:.0} ms"))
}

/// An event that a key stands for.
fn an_event_for(key: &str) -> Option<(Agent, String)> {
    let known = |agent: Agent, name: &str| kind_of(agent, name) != Kind::Other;
    for agent in [Agent::Hermes, Agent::Gemini] {
        if known(agent, key) && !key.contains('*') {
            return Some((agent, key.to_owned()));
        }
        let mut names = event_names(agent).filter(|name| !name.contains('*'));
        if let Some(name) =
            names.find(|name| Kind::parse(key).is_some_and(|kind| kind_of(agent, name) == kind))
        {
            return Some((agent, name.to_owned()));
        }
    }
    (key == "*" || key == "tool.*").then(|| (Agent::Hermes, "pre_tool_call".to_owned()))
}

/// Whether Hermes really calls the bus, and once only.
fn wiring(settings: &Settings) -> Vec<Finding> {
    connect::health(settings)
        .into_iter()
        .map(|(home, wrong): (PathBuf, Option<String>)| {
            let about = format!("Hermes in {}", home.display());
            match wrong {
                None => Finding::well(format!("{about} is connected")),
                Some(wrong) => Finding::bad(about, wrong),
            }
        })
        .collect()
}

/// Whether anything has been heard lately.
fn arrivals(settings: &Settings) -> Finding {
    let log = LogPath::in_home(&settings.home);
    let last = LogReader::open(&log).ok().and_then(|log| {
        let rows = log.last(&Query::default(), 50).ok()?;
        rows.into_iter().rev().find(|row| row.agent != "hookbus")
    });
    let now = SystemClock.now();
    match last {
        None => Finding::bad(
            "events",
            "none has ever arrived; wire an agent with `hookbus connect hermes`, then use it",
        ),
        Some(row) if now.since(row.at) > LATELY => Finding::bad(
            "events",
            format!(
                "the last one is {} old; is the agent still wired? `hookbus connect hermes` mends that",
                spell(now.since(row.at))
            ),
        ),
        Some(row) => Finding::well(format!(
            "the last event came from {} {} ago",
            row.agent,
            spell(now.since(row.at))
        )),
    }
}
