//! `hookbus boot`: the start-up checklist. A gateway that comes up has an agent work through `BOOT.md` in the
//! background; what it reports is kept, and handed on where a person wants that. `[SILENT]` means nothing to say.
//! An observer of the start is what it is made for: each start is worked through once, and not when it is long past.

mod start;

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

use self::start::{NOT_BEGUN, Start};
use crate::cli::Exit;
use crate::output;
use crate::settings::{Format, Settings};

const SILENT: &str = "[SILENT]";

/// More than this of what a failed agent wrote to stderr helps nobody.
const LONGEST_ERROR: usize = 4000;

/// `hookbus boot`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The checklist, which has to be there; `BOOT.md` in the home of Hermes unless said, which need not.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A program that gets the report on its stdin, if there is something to report.
    #[arg(long, value_name = "COMMAND")]
    deliver: Option<String>,
    /// Stay until the agent is done, instead of leaving it in the background.
    #[arg(long)]
    wait: bool,
    /// The agent: a command whose last argument will be the prompt.
    #[arg(last = true, default_values = ["hermes", "-z"])]
    agent: Vec<String>,
}

/// What becomes of it.
enum Outcome {
    /// There is nothing to do, and this is why.
    Idle(String),
    /// The agent works in the background.
    Begun,
    /// The agent is done; none: it has nothing to say.
    Done(Option<String>),
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let usual = || settings.hermes.as_ref().map(|home| home.join("BOOT.md"));
    let file =
        arguments.file.clone().or_else(usual).context("say where the checklist is: --file FILE")?;
    let file = std::path::absolute(file)?;
    let log = settings.home.join("boot.log");
    let start = Start::told()?;
    if let Some(place) = start.as_ref().and_then(|start| start.place.as_deref()) {
        // An observer runs beside its hooks file, where no agent should work.
        std::env::set_current_dir(place)?;
    }
    let outcome = see_to(arguments, &file, start.as_ref(), &log)?;
    match (format, outcome) {
        (Format::Json, outcome) => output::line(in_json(&file, &log, outcome).to_string())?,
        (Format::Text, Outcome::Done(Some(report))) => output::line(report)?,
        // What a hook prints, an agent may read.
        (Format::Text, Outcome::Idle(_) | Outcome::Begun) if start.is_some() => {}
        (Format::Text, Outcome::Idle(why)) => output::line(format!("{why}; nothing to do"))?,
        (Format::Text, Outcome::Begun) => output::line(format!(
            "an agent works through {} in the background; its report goes to {}",
            file.display(),
            log.display()
        ))?,
        (Format::Text, Outcome::Done(None)) => {}
    }
    Ok(Exit::Success)
}

fn in_json(file: &Path, log: &Path, outcome: Outcome) -> Value {
    let (file, log) = (file.to_string_lossy(), log.to_string_lossy());
    match outcome {
        Outcome::Idle(why) => {
            json!({"file": file, "begun": false, "why": why, "log": log, "report": null})
        }
        Outcome::Begun => json!({"file": file, "begun": true, "log": log, "report": null}),
        Outcome::Done(report) => {
            json!({"file": file, "begun": true, "log": log, "report": report})
        }
    }
}

fn see_to(
    arguments: &Arguments,
    file: &Path,
    start: Option<&Start>,
    log: &Path,
) -> Result<Outcome> {
    let checklist = match checklist(file)? {
        Ok(checklist) => checklist,
        Err(why) => return without_checklist(why, arguments, start, log),
    };
    let id = start.map(Start::id);
    if let (Some(start), Some(id)) = (start, id) {
        if start.is_known(log) {
            // An observer may be told twice.
            return Ok(Outcome::Idle(format!("event {id} was seen to before")));
        }
        if let Some(why) = start.is_past(SystemClock.now()) {
            keep(log, &format!("left alone, for event {id}: {why}"))?;
            return Ok(Outcome::Idle(why));
        }
        keep(log, &format!("begins, for event {id}"))?;
    }
    if arguments.wait {
        return work_through(&checklist, arguments, log).map(Outcome::Done);
    }
    let started = in_the_background(arguments, file);
    if let (Err(why), Some(id)) = (&started, id) {
        keep(log, &format!("{NOT_BEGUN}, for event {id}: {why:#}"))?;
    }
    started.map(|()| Outcome::Begun)
}

/// What is to be done, or why that is nothing.
fn checklist(file: &Path) -> Result<Result<String, String>> {
    let shown = file.display();
    match fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => Ok(Err(format!("{shown} is empty"))),
        Ok(text) => Ok(Ok(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Err(format!("there is no {shown}")))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
    }
}

/// The usual checklist need not be there. One that was named is missed: a person at once, and where a gateway starts
/// the log says so.
fn without_checklist(
    why: String,
    arguments: &Arguments,
    start: Option<&Start>,
    log: &Path,
) -> Result<Outcome> {
    let is_missing = arguments.file.as_ref().is_some_and(|file| !file.exists());
    match start {
        None if is_missing => bail!("{why}; check the path after --file"),
        Some(start) if is_missing && !start.is_known(log) => {
            keep(log, &format!("left alone, for event {}: {why}", start.id()))?;
        }
        Some(_) | None => {}
    }
    Ok(Outcome::Idle(why))
}

/// Has the agent do it; gives back what it reports, kept and delivered.
fn work_through(checklist: &str, arguments: &Arguments, log: &Path) -> Result<Option<String>> {
    // Nobody may be there to see an error: that an agent cannot be started is a report too.
    let report =
        ask(&arguments.agent, &prompt(checklist)).unwrap_or_else(|why| Some(format!("{why:#}")));
    keep(log, report.as_deref().unwrap_or("nothing to report"))?;
    if let (Some(report), Some(command)) = (&report, &arguments.deliver)
        && let Err(why) = deliver(command, report)
    {
        keep(log, &format!("the report was not delivered: {why:#}"))?;
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

/// The same command once more, for itself: whoever started this one does not wait for it.
fn in_the_background(arguments: &Arguments, file: &Path) -> Result<()> {
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

/// What the agent has to say; none: nothing.
fn ask(agent: &[String], prompt: &str) -> Result<Option<String>> {
    let (program, words) =
        agent.split_first().context("say which agent: `hookbus boot -- hermes -z`")?;
    let output = Command::new(program)
        .args(words)
        .arg(prompt)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{program}`; say which agent after `--`"))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(Some(said).filter(|said| !said.is_empty() && !said.contains(SILENT)));
    }
    // Whatever it said before it failed, silence is not what it meant.
    let errors = String::from_utf8_lossy(&output.stderr);
    let errors = output::shorten(errors.trim(), LONGEST_ERROR);
    let parts = [format!("`{program}` failed ({})", how(output.status)), said, errors];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Ok(Some(parts.join("\n")))
}

/// How a process ended that did not end well.
fn how(ended: ExitStatus) -> String {
    match (ended.code(), ended.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => ended.to_string(),
    }
}

fn keep(log: &Path, text: &str) -> Result<()> {
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
    let ended = child.wait()?;
    written.transpose().context("nobody took the report")?;
    anyhow::ensure!(ended.success(), "`{command}` failed ({ended})");
    Ok(())
}
