//! Lists the commands that a replay would run, and runs them only if the user, or `--yes`, confirms.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hookbus::decide::replay::{Isolation, PluginRestarts, ReplayEnvironment};
use hookbus::log::LogPath;
use hookbus_replay::{Commands, DryRun, PlannedCommand, dry_run};
use serde_json::{Map, Value, json};

use super::cleanup::{self, TempDirectory};
use super::options::Arguments;
use super::setup::ReplaySetup;
use crate::output::{self, Paint, Progress, count, pad, sanitize, shorten_middle};
use crate::prompt::{PromptOn, is_interactive, yes_no};
use crate::settings::{Format, Settings};

/// Printed before plugins run.
const PLUGIN_WARNING: &str = "Plugins receive every event again, in the order of the log. A plugin that sends messages sends \
     them again, unless it checks HOOKBUS_REPLAY.";

const SCRATCH_QUESTION: &str =
    "Run them, in a scratch directory (which is no sandbox: they have your rights)?";

/// Whether commands run.
pub(super) enum Confirmation {
    /// They run, in this scratch directory.
    Run(Box<ScratchRun>),
    /// There are none, or the user skips them.
    NothingToRun,
    /// They were only listed, as `--dry-run` asks.
    DryRun,
}

/// The scratch directory that commands run in; removed when dropped.
pub(super) struct ScratchRun {
    environment: ReplayEnvironment,
    env: Vec<(OsString, OsString)>,
    repeat: u32,
    _directory: TempDirectory,
}

impl ScratchRun {
    fn new(arguments: &Arguments, restarts: PluginRestarts, isolated: bool) -> Result<Self> {
        let directory = TempDirectory::for_sandbox()?;
        let time = Duration::try_from_secs_f64(arguments.time_limit)
            .context("--time-limit must be a number of seconds")?;
        let memory = arguments.memory.saturating_mul(1 << 20);
        let environment = ReplayEnvironment::in_folder(directory.path(), time, memory);
        let environment = environment.context("cannot create a scratch directory; check TMPDIR")?;
        let mut environment = environment.with_restarts(restarts);
        if isolated {
            let isolation = Isolation::of_this_system(directory.path());
            output::to_stderr(format!("commands run {isolation}"));
            environment = environment.isolated(isolation);
        }
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
    let has_commands = setup.hooks.has_commands() && !arguments.skips_commands();
    setup.hooks.approve_foreign(arguments.run.iter().cloned());
    let mut found = if has_commands { plan(setup)? } else { DryRun::default() };
    check_names(&found, arguments)?;
    if !found.refused.is_empty() && !arguments.dry_run {
        let approved = approve_by_name(&found.refused, arguments, settings)?;
        if !approved.is_empty() {
            setup.hooks.approve_foreign(approved);
            found = plan(setup)?;
        }
    }
    // Expectations hold all events that there are.
    if found.has_plugins && !arguments.check {
        setup.source.include_warmup(&found.restarts)?;
        found.commands = plan(setup)?.commands;
    }
    let DryRun { commands, refused, has_plugins, restarts } = found;
    if arguments.dry_run {
        print_commands(&commands, &refused, arguments, format, settings)?;
        return Ok(Confirmation::DryRun);
    }
    if commands.is_empty() {
        return Ok(Confirmation::NothingToRun);
    }
    // Foreign commands among them were approved by name.
    let has_own = commands.keys().any(|command| !command.is_foreign);
    if has_own && !arguments.yes {
        list(&commands, arguments).iter().for_each(output::to_stderr);
        if has_plugins {
            output::to_stderr(PLUGIN_WARNING);
        }
        if !is_interactive(PromptOn::Stderr) {
            bail!("these commands would run; add --yes to run them, or --rules-only to skip them");
        }
        if !yes_no(PromptOn::Stderr, SCRATCH_QUESTION)? {
            bail!("no command was run; --rules-only skips commands");
        }
    }
    if arguments.jobs > 1 && setup.hooks.has_plugins() {
        output::to_stderr("--jobs is ignored: plugins receive one event at a time, in log order");
    }
    let has_foreign = commands.keys().any(|command| command.is_foreign);
    let sandbox = ScratchRun::new(arguments, restarts, has_foreign || arguments.sandbox)?;
    Ok(Confirmation::Run(Box::new(sandbox)))
}

/// Every name of `--run` has to be one of a foreign command.
fn check_names(found: &DryRun, arguments: &Arguments) -> Result<()> {
    let is_known = |name: &&String| {
        found.commands.keys().any(|command| command.is_foreign && command.hook == **name)
    };
    match arguments.run.iter().find(|name| !is_known(name)) {
        Some(name) => bail!(
            "no command of this recording has the name `{}`; --dry-run lists them",
            sanitize(name)
        ),
        None => Ok(()),
    }
}

/// Shows the commands that a foreign recording names, and asks about each name. Returns the names that the user
/// approved; none without a terminal.
fn approve_by_name(
    refused: &BTreeMap<PlannedCommand, u64>,
    arguments: &Arguments,
    settings: &Settings,
) -> Result<BTreeSet<String>> {
    output::to_stderr(foreign_head(refused.len(), arguments, settings));
    let names: BTreeSet<&String> = refused.keys().map(|command| &command.hook).collect();
    let mut approved = BTreeSet::new();
    for name in names {
        let of_name = refused.iter().filter(|(command, _)| command.hook == *name);
        of_name.for_each(|(command, runs)| output::to_stderr(line(command, *runs, arguments)));
        if is_interactive(PromptOn::Stderr)
            && yes_no(PromptOn::Stderr, &format!("Run `{}`?", sanitize(name)))?
        {
            approved.insert(name.clone());
        }
    }
    if approved.is_empty() {
        output::to_stderr("none of them is run; `--run NAME` runs the commands of one hook");
    }
    Ok(approved)
}

fn foreign_head(commands: usize, arguments: &Arguments, settings: &Settings) -> String {
    let source = match (&arguments.log, &arguments.nats) {
        (Some(log), _) => log.display().to_string(),
        (None, Some(_)) => "the NATS stream".to_owned(),
        // An archive, a log that was copied into this home, or the log of a home that was moved.
        (None, None) => LogPath::in_home(&settings.home).file().display().to_string(),
    };
    let commands = count(commands, "command");
    let source = sanitize(&source);
    format!("{commands} recorded in {source}, perhaps by another person or in another home:")
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
    let lines = commands.iter().map(|(planned, runs)| line(planned, *runs, arguments));
    std::iter::once(head).chain(lines).collect()
}

/// A command that would run. Not shortened: the user decides by it.
fn line(planned: &PlannedCommand, runs: u64, arguments: &Arguments) -> String {
    let PlannedCommand { hook, event, command, runs: would_run, .. } = planned;
    let hook =
        if hook == command { String::new() } else { format!("  ({})", shorten_middle(hook, 40)) };
    let times = runs * u64::from(repeat(arguments));
    let event = pad(&sanitize(event), 16);
    let first = format!("  {times:>7} ×  {event} {}{hook}", sanitize(command));
    let resolved = (would_run.line != *command).then(|| format!("→ {}", sanitize(&would_run.line)));
    let variable =
        |(name, value): &(String, String)| format!("with {}={}", sanitize(name), sanitize(value));
    let more = resolved.into_iter().chain(would_run.env.iter().map(variable));
    let more = more.map(|text| format!("{:29}{text}", ""));
    std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n")
}

fn print_commands(
    commands: &BTreeMap<PlannedCommand, u64>,
    refused: &BTreeMap<PlannedCommand, u64>,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<()> {
    match format {
        Format::Json => {
            let to_json = |(planned, times): (&PlannedCommand, &u64)| {
                let PlannedCommand { hook, event, command, runs, .. } = planned;
                let env: Map<String, Value> =
                    runs.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                json!({"hook": hook, "event": event, "command": command, "runs": runs.line,
                       "env": env, "times": times * u64::from(repeat(arguments))})
            };
            let commands: Vec<Value> = commands.iter().map(to_json).collect();
            let foreign: Vec<Value> = refused.iter().map(to_json).collect();
            output::line(json!({"commands": commands, "foreign": foreign}).to_string())?;
        }
        Format::Text if commands.is_empty() && refused.is_empty() => {
            let nothing = Paint(settings.colour).good("nothing");
            output::line(format!("{nothing} would run outside of hookbus: there are only rules"))?;
        }
        Format::Text => {
            let own = if commands.is_empty() { Vec::new() } else { list(commands, arguments) };
            own.into_iter().try_for_each(output::line)?;
            if !refused.is_empty() {
                output::line(foreign_head(refused.len(), arguments, settings))?;
                for (command, runs) in refused {
                    output::line(line(command, *runs, arguments))?;
                }
                output::line("they would not run; `--run NAME` runs the commands of one hook")?;
            }
        }
    }
    Ok(())
}
