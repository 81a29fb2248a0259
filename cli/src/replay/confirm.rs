//! Before a command runs: what would run is listed, and a person, or `--yes`, says so.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hookbus::decide::{Scratch, Starts};
use hookbus_replay::{Commands, Planned, Survey, survey};
use serde_json::{Value, json};

use super::litter::{self, Folder};
use super::options::Arguments;
use super::scene::Scene;
use crate::cli::Exit;
use crate::output::{self, Paint, Progress, count, sanitize, shorten_middle};
use crate::prompt::{PromptOn, confirm, is_interactive};
use crate::settings::{Format, Settings};

/// What a person should know before plugins hear everything once more.
const PLUGINS: &str = "Plugins hear every event that they heard then, in the order of the log: what one \
                       sends to somebody is sent again, unless it looks at HOOKBUS_REPLAY.";

/// Whether commands run.
pub(super) enum Consent {
    /// Here.
    Run(Box<Ground>),
    /// There are none to run, or they are left out.
    NothingToRun,
    /// Only what would run was asked for, and was told.
    Told,
}

/// The scratch place; gone when dropped.
pub(super) struct Ground {
    scratch: Scratch,
    env: Vec<(OsString, OsString)>,
    repeat: u32,
    _folder: Folder,
}

impl Ground {
    fn new(arguments: &Arguments, starts: Starts) -> Result<Self> {
        let folder = Folder::for_commands()?;
        let time = Duration::try_from_secs_f64(arguments.time_limit)
            .context("--time-limit is a number of seconds")?;
        let memory = arguments.memory.saturating_mul(1 << 20);
        let scratch = Scratch::in_folder(folder.path(), time, memory);
        let scratch = scratch.context("cannot make a scratch place; check TMPDIR")?;
        let scratch = scratch.with_starts(starts);
        litter::runs_in(&scratch);
        let env = std::env::vars_os().collect();
        Ok(Self { scratch, env, repeat: arguments.repeat.max(1), _folder: folder })
    }

    pub(super) fn commands(&self) -> Commands<'_> {
        Commands::Run { scratch: &self.scratch, env: &self.env, repeat: self.repeat }
    }
}

/// Lists what would run and finds out whether it may.
pub(super) fn ask(
    scene: &mut Scene,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Consent> {
    let outside = scene.policy.has_commands(scene.recorded.as_deref()) && !arguments.rules_only;
    let mut found = if outside { look(scene)? } else { Survey::default() };
    // Expectations stand for themselves: whoever checks them has nothing else.
    if found.plugins && !arguments.check {
        scene.source.with_what_plugins_heard(&found.starts)?;
        found.commands = look(scene)?.commands;
    }
    let Survey { commands: planned, plugins, starts } = found;
    if arguments.dry_run {
        tell(&planned, arguments, format, settings)?;
        return Ok(Consent::Told);
    }
    if planned.is_empty() {
        return Ok(Consent::NothingToRun);
    }
    if !arguments.yes {
        list(&planned, arguments).iter().for_each(output::to_stderr);
        if plugins {
            output::to_stderr(PLUGINS);
        }
        if !is_interactive(PromptOn::Stderr) {
            bail!(
                "these commands would run; add --yes to run them, or --rules-only to leave them out"
            );
        }
        if !confirm(PromptOn::Stderr, "Run them, in a scratch place?")? {
            bail!("nothing was run; --rules-only leaves commands out");
        }
    }
    if arguments.jobs > 1 && scene.policy.has_plugins(scene.recorded.as_deref()) {
        output::to_stderr(
            "plugins hear events one after the other, as they came; --jobs is left out",
        );
    }
    Ok(Consent::Run(Box::new(Ground::new(arguments, starts)?)))
}

fn look(scene: &Scene) -> Result<Survey> {
    let rows = scene.source.rows_per_part();
    let mut progress = Progress::new(scene.source.parts() * rows, "rows looked at");
    let mut done = 0;
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let hooks = (&scene.policy, scene.recorded.as_deref());
    survey(scene.source.as_ref(), hooks, &env, super::cores(), || {
        done += rows;
        progress.update(done);
    })
}

fn list(planned: &BTreeMap<Planned, u64>, arguments: &Arguments) -> Vec<String> {
    let times = |runs: &u64| runs * u64::from(arguments.repeat.max(1));
    let whole: u64 = planned.values().map(times).sum();
    let head = format!(
        "{} from hooks would run, {} in all:",
        count(planned.len(), "command"),
        count(usize::try_from(whole).unwrap_or(usize::MAX), "time")
    );
    let lines = planned.iter().map(|(planned, runs)| {
        let Planned { hook, event, command, runs: would } = planned;
        let hook = if hook == command {
            String::new()
        } else {
            format!("  ({})", shorten_middle(hook, 40))
        };
        // The whole of it: a person decides by these lines.
        let first =
            format!("  {:>7} ×  {:<16} {}{hook}", times(runs), sanitize(event), sanitize(command));
        let found = (would.line != *command).then(|| format!("→ {}", sanitize(&would.line)));
        let given = |(name, value): &(String, String)| {
            format!("with {}={}", sanitize(name), sanitize(value))
        };
        let more = found.into_iter().chain(would.env.iter().map(given));
        let more = more.map(|text| format!("{:29}{text}", ""));
        std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n")
    });
    std::iter::once(head).chain(lines).collect()
}

fn tell(
    planned: &BTreeMap<Planned, u64>,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    match format {
        Format::Json => {
            let commands: Vec<Value> = planned
                .iter()
                .map(|(Planned { hook, event, command, runs }, times)| {
                    let env: serde_json::Map<String, Value> =
                        runs.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                    json!({"hook": hook, "event": event, "command": command, "runs": runs.line,
                           "env": env, "times": times * u64::from(arguments.repeat.max(1))})
                })
                .collect();
            output::line(json!({"commands": commands}).to_string())?;
        }
        Format::Text if planned.is_empty() => {
            let word = Paint(settings.colour).good("nothing");
            output::line(format!("{word} would run outside of hookbus: only rules are asked"))?;
        }
        Format::Text => {
            for line in list(planned, arguments) {
                output::line(line)?;
            }
        }
    }
    Ok(Exit::Success)
}
