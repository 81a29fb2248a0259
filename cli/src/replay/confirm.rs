//! Lists the commands that a replay would run, and runs them only if the user, or `--yes`, confirms.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hookbus::decide::replay::{PluginRestarts, ReplayEnvironment};
use hookbus_replay::{Commands, DryRun, PlannedCommand, dry_run};
use serde_json::{Map, Value, json};

use super::cleanup::{self, TempDirectory};
use super::options::Arguments;
use super::setup::ReplaySetup;
use crate::output::{self, Paint, Progress, count, sanitize, shorten_middle};
use crate::prompt::{PromptOn, is_interactive, yes_no};
use crate::settings::{Format, Settings};

/// Printed before plugins run.
const PLUGIN_WARNING: &str = "Plugins receive every event again, in the order of the log. A plugin that sends messages sends \
     them again, unless it checks HOOKBUS_REPLAY.";

/// Whether commands run.
pub(super) enum Confirmation {
    /// They run, in this sandbox.
    Run(Box<Sandbox>),
    /// There are none, or the user skips them.
    NothingToRun,
    /// They were only listed, as `--dry-run` asks.
    DryRun,
}

/// The scratch directory that commands run in; removed when dropped.
pub(super) struct Sandbox {
    environment: ReplayEnvironment,
    env: Vec<(OsString, OsString)>,
    repeat: u32,
    _directory: TempDirectory,
}

impl Sandbox {
    fn new(arguments: &Arguments, restarts: PluginRestarts) -> Result<Self> {
        let directory = TempDirectory::for_sandbox()?;
        let time = Duration::try_from_secs_f64(arguments.time_limit)
            .context("--time-limit must be a number of seconds")?;
        let memory = arguments.memory.saturating_mul(1 << 20);
        let environment = ReplayEnvironment::in_folder(directory.path(), time, memory);
        let environment = environment.context("cannot create a scratch directory; check TMPDIR")?;
        let environment = environment.with_restarts(restarts);
        cleanup::end_on_signal(&environment);
        let env = std::env::vars_os().collect();
        Ok(Self { environment, env, repeat: repeat(arguments), _directory: directory })
    }

    pub(super) fn commands(&self) -> Commands<'_> {
        Commands::Run { environment: &self.environment, env: &self.env, repeat: self.repeat }
    }
}

/// Lists what would run, and asks whether it may.
pub(super) fn confirm(
    setup: &mut ReplaySetup,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Confirmation> {
    let has_commands = setup.hooks.has_commands() && !arguments.rules_only;
    let mut found = if has_commands { plan(setup)? } else { DryRun::default() };
    // Expectations hold all events that there are.
    if found.has_plugins && !arguments.check {
        setup.source.include_warmup(&found.restarts)?;
        found.commands = plan(setup)?.commands;
    }
    let DryRun { commands, has_plugins, restarts } = found;
    if arguments.dry_run {
        print_commands(&commands, arguments, format, settings)?;
        return Ok(Confirmation::DryRun);
    }
    if commands.is_empty() {
        return Ok(Confirmation::NothingToRun);
    }
    if !arguments.yes {
        list(&commands, arguments).iter().for_each(output::to_stderr);
        if has_plugins {
            output::to_stderr(PLUGIN_WARNING);
        }
        if !is_interactive(PromptOn::Stderr) {
            bail!("these commands would run; add --yes to run them, or --rules-only to skip them");
        }
        if !yes_no(PromptOn::Stderr, "Run them, in a scratch directory?")? {
            bail!("no command was run; --rules-only skips commands");
        }
    }
    if arguments.jobs > 1 && setup.hooks.has_plugins() {
        output::to_stderr("--jobs is ignored: plugins receive one event at a time, in log order");
    }
    Ok(Confirmation::Run(Box::new(Sandbox::new(arguments, restarts)?)))
}

fn plan(setup: &ReplaySetup) -> Result<DryRun> {
    let rows = setup.source.rows_per_chunk();
    let mut progress = Progress::new(setup.source.chunks() * rows, "rows scanned");
    let mut done = 0;
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    dry_run(setup.source.as_ref(), &setup.hooks, &env, super::cores(), || {
        done += rows;
        progress.update(done);
    })
}

fn repeat(arguments: &Arguments) -> u32 {
    arguments.repeat.max(1)
}

fn list(commands: &BTreeMap<PlannedCommand, u64>, arguments: &Arguments) -> Vec<String> {
    let times = |runs: &u64| runs * u64::from(repeat(arguments));
    let total: u64 = commands.values().map(times).sum();
    let head = format!(
        "{} from hooks would run, {} in total:",
        count(commands.len(), "command"),
        count(usize::try_from(total).unwrap_or(usize::MAX), "time")
    );
    let lines = commands.iter().map(|(planned, runs)| {
        let PlannedCommand { hook, event, command, runs: would_run } = planned;
        let hook = if hook == command {
            String::new()
        } else {
            format!("  ({})", shorten_middle(hook, 40))
        };
        // Not shortened: the user decides by these lines.
        let first =
            format!("  {:>7} ×  {:<16} {}{hook}", times(runs), sanitize(event), sanitize(command));
        let resolved =
            (would_run.line != *command).then(|| format!("→ {}", sanitize(&would_run.line)));
        let variable = |(name, value): &(String, String)| {
            format!("with {}={}", sanitize(name), sanitize(value))
        };
        let more = resolved.into_iter().chain(would_run.env.iter().map(variable));
        let more = more.map(|text| format!("{:29}{text}", ""));
        std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n")
    });
    std::iter::once(head).chain(lines).collect()
}

fn print_commands(
    commands: &BTreeMap<PlannedCommand, u64>,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<()> {
    match format {
        Format::Json => {
            let commands: Vec<Value> = commands
                .iter()
                .map(|(PlannedCommand { hook, event, command, runs }, times)| {
                    let env: Map<String, Value> =
                        runs.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                    json!({"hook": hook, "event": event, "command": command, "runs": runs.line,
                           "env": env, "times": times * u64::from(repeat(arguments))})
                })
                .collect();
            output::line(json!({"commands": commands}).to_string())?;
        }
        Format::Text if commands.is_empty() => {
            let nothing = Paint(settings.colour).good("nothing");
            output::line(format!("{nothing} would run outside of hookbus: there are only rules"))?;
        }
        Format::Text => {
            for line in list(commands, arguments) {
                output::line(line)?;
            }
        }
    }
    Ok(())
}
