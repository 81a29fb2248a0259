//! `hookbus boot`: runs an agent on the checklist in BOOT.md when a gateway starts. The report goes to boot.log and to
//! the `--deliver` command. Made for an observer of `gateway:startup`: each start is handled once, and not if it is
//! old or replayed.

mod gateway_start;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::event::{Clock, SystemClock};
use serde_json::{Value, json};

use self::gateway_start::{GatewayStart, NOT_BEGUN};
use crate::cli::Exit;
use crate::output;
use crate::settings::{Format, Settings};

/// The agent's word for "nothing to report".
const SILENT: &str = "[SILENT]";

/// How much of a failed agent's stderr goes into the report.
const MAX_STDERR: usize = 4000;

const EXAMPLES: &str = "\
Examples:
  hookbus boot --wait              Run the checklist now and print the report
  hookbus boot --deliver 'mail -s boot me@example.org' -- hermes -z
                                   Run it in the background, mail the report

As a hook in hookbus.yaml:
  gateway:startup:
    - name: boot
      mode: observe
      source: log
      command: hookbus boot -- hermes -z";

/// The arguments of `hookbus boot`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Checklist to run; must exist [default: BOOT.md in the home of Hermes, if it exists]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Shell command that gets the report on stdin, if there is one
    #[arg(long, value_name = "COMMAND")]
    deliver: Option<String>,
    /// Wait until the agent has finished, and print the report
    #[arg(long)]
    wait: bool,
    /// Command that runs the agent; the prompt becomes its last argument
    #[arg(last = true, value_name = "AGENT", default_values = ["hermes", "-z"])]
    agent: Vec<String>,
}

/// What `hookbus boot` did.
enum BootOutcome {
    /// Nothing, for this reason.
    Skipped(String),
    /// It started the agent in the background.
    Begun,
    /// It ran the agent to its end; none if there is nothing to report.
    Done(Option<String>),
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let default = || settings.hermes.as_ref().map(|home| home.join("BOOT.md"));
    let file = arguments.file.clone().or_else(default);
    let file = file.context("no home of Hermes found; name the checklist with --file FILE")?;
    let file = std::path::absolute(file)?;
    let log = settings.home.join("boot.log");
    let start = GatewayStart::from_stdin()?;
    if let Some(cwd) = start.as_ref().and_then(|start| start.cwd.as_deref()) {
        // An observer runs in the directory of its hooks file; the agent belongs where the gateway runs.
        std::env::set_current_dir(cwd)?;
    }
    let outcome = boot(arguments, &file, start.as_ref(), &log)?;
    match (format, outcome) {
        (Format::Json, outcome) => output::line(to_json(&file, &log, outcome).to_string())?,
        (Format::Text, BootOutcome::Done(Some(report))) => output::line(report)?,
        // An agent may read what a hook prints.
        (Format::Text, BootOutcome::Skipped(_) | BootOutcome::Begun) if start.is_some() => {}
        (Format::Text, BootOutcome::Skipped(why)) => output::line(format!("nothing to do: {why}"))?,
        (Format::Text, BootOutcome::Begun) => output::line(format!(
            "running the agent on {} in the background; its report goes to {}",
            file.display(),
            log.display()
        ))?,
        (Format::Text, BootOutcome::Done(None)) => {}
    }
    Ok(Exit::Success)
}

fn to_json(file: &Path, log: &Path, outcome: BootOutcome) -> Value {
    let (file, log) = (file.to_string_lossy(), log.to_string_lossy());
    match outcome {
        BootOutcome::Skipped(why) => {
            json!({"file": file, "begun": false, "why": why, "log": log, "report": null})
        }
        BootOutcome::Begun => json!({"file": file, "begun": true, "log": log, "report": null}),
        BootOutcome::Done(report) => {
            json!({"file": file, "begun": true, "log": log, "report": report})
        }
    }
}

fn boot(
    arguments: &Arguments,
    file: &Path,
    start: Option<&GatewayStart>,
    log: &Path,
) -> Result<BootOutcome> {
    let checklist = match read_checklist(file)? {
        Checklist::Items(text) => text,
        Checklist::Absent(why) => return skip_checklist(why, arguments, start, log),
    };
    let id = start.map(GatewayStart::id);
    if let (Some(start), Some(id)) = (start, id) {
        if start.was_handled(log) {
            // Observers get events at least once.
            return Ok(BootOutcome::Skipped(format!("event {id} was handled before")));
        }
        if let Some(why) = start.reason_to_skip(SystemClock.now()) {
            append(log, &format!("skipped, for event {id}: {why}"))?;
            return Ok(BootOutcome::Skipped(why));
        }
        append(log, &format!("begins, for event {id}"))?;
    }
    if arguments.wait {
        return run_agent(&checklist, arguments, log).map(BootOutcome::Done);
    }
    let started = start_in_background(arguments, file);
    if let (Err(why), Some(id)) = (&started, id) {
        append(log, &format!("{NOT_BEGUN}, for event {id}: {why:#}"))?;
    }
    started.map(|()| BootOutcome::Begun)
}

enum Checklist {
    Items(String),
    /// There is none, for this reason.
    Absent(String),
}

fn read_checklist(file: &Path) -> Result<Checklist> {
    let shown = file.display();
    match fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => Ok(Checklist::Absent(format!("{shown} is empty"))),
        Ok(text) => Ok(Checklist::Items(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Checklist::Absent(format!("{shown} does not exist")))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
    }
}

/// The default checklist may be missing. One named with `--file` may not: that is an error when a user runs this by
/// hand, and a line in boot.log when a gateway starts.
fn skip_checklist(
    why: String,
    arguments: &Arguments,
    start: Option<&GatewayStart>,
    log: &Path,
) -> Result<BootOutcome> {
    let is_missing = arguments.file.as_ref().is_some_and(|file| !file.exists());
    match start {
        None if is_missing => bail!("{why}; check the path of --file"),
        Some(start) if is_missing && !start.was_handled(log) => {
            append(log, &format!("skipped, for event {}: {why}", start.id()))?;
        }
        Some(_) | None => {}
    }
    Ok(BootOutcome::Skipped(why))
}

/// Runs the agent to its end; logs, delivers and returns its report.
fn run_agent(checklist: &str, arguments: &Arguments, log: &Path) -> Result<Option<String>> {
    // No user may be there to see an error, so a failure to start the agent is a report too.
    let report =
        ask(&arguments.agent, &prompt(checklist)).unwrap_or_else(|why| Some(format!("{why:#}")));
    append(log, report.as_deref().unwrap_or("nothing to report"))?;
    if let (Some(report), Some(command)) = (&report, &arguments.deliver)
        && let Err(why) = deliver(command, report)
    {
        append(log, &format!("the report was not delivered: {why:#}"))?;
        return Err(why);
    }
    Ok(report)
}

fn prompt(checklist: &str) -> String {
    format!(
        "The gateway has just started. Work through this checklist, exactly as it says:\n\n{}\n\n\
         If nothing needs a person's attention, answer with {SILENT} and nothing else.",
        checklist.trim()
    )
}

/// Starts `hookbus boot --wait` as a process of its own, so that the caller does not wait for the agent.
fn start_in_background(arguments: &Arguments, file: &Path) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["boot", "--wait", "--file"]).arg(file);
    if let Some(deliver) = &arguments.deliver {
        command.args(["--deliver", deliver]);
    }
    command.arg("--").args(&arguments.agent);
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("cannot start in the background")?;
    Ok(())
}

/// Runs the agent with the prompt and returns its report; none if there is nothing to report.
fn ask(agent: &[String], prompt: &str) -> Result<Option<String>> {
    let (program, words) =
        agent.split_first().context("no agent given; write `hookbus boot -- hermes -z`")?;
    let output = Command::new(program)
        .args(words)
        .arg(prompt)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{program}`; name the agent after `--`"))?;
    let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(Some(answer).filter(|answer| !answer.is_empty() && !answer.contains(SILENT)));
    }
    // A failure is always reported, also if the answer contains [SILENT].
    let errors = String::from_utf8_lossy(&output.stderr);
    let errors = output::shorten(errors.trim(), MAX_STDERR);
    let parts = [format!("`{program}` failed ({})", describe_exit(output.status)), answer, errors];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Ok(Some(parts.join("\n")))
}

fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Appends a line with the time to boot.log.
fn append(log: &Path, text: &str) -> Result<()> {
    if let Some(home) = log.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    }
    let mut log = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    writeln!(log, "{} {text}", SystemClock.now())?;
    Ok(())
}

fn deliver(command: &str, report: &str) -> Result<()> {
    let mut child = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn()?;
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(report.as_bytes()));
    let status = child.wait()?;
    written.transpose().with_context(|| format!("`{command}` did not read the report"))?;
    anyhow::ensure!(status.success(), "`{command}` failed ({status})");
    Ok(())
}
