//! `hookbus boot`: the start-up checklist. A gateway that comes up has an agent work through `BOOT.md` in the
//! background; what it reports is kept, and handed on where a person wants that. `[SILENT]` means nothing to say.
//! An observer of the start is what it is made for: each start is worked through once, and not when it is long past.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use hookbus::event::{Clock, SystemClock, Time};
use hookbus::json::read_leniently;
use serde_json::{Value, json};

use crate::cli::Ending;
use crate::output;
use crate::reading::moment;
use crate::settings::{Format, Settings};

const SILENT: &str = "[SILENT]";

/// In `boot.log`, about a start that is still to be seen to.
const NOT_BEGUN: &str = "could not begin";

/// What a start that is longer ago than this would have needed, it has needed then.
const PAST: Duration = Duration::from_mins(10);

/// No event is longer.
const LONGEST_EVENT: u64 = 64 << 20;

/// `hookbus boot`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The checklist; `BOOT.md` in the home of Hermes unless said.
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

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Ending> {
    let usual = || settings.hermes.as_ref().map(|home| home.join("BOOT.md"));
    let file =
        arguments.file.clone().or_else(usual).context("say where the checklist is: --file FILE")?;
    let checklist = fs::read_to_string(&file).unwrap_or_default();
    let start = Start::told()?;
    if checklist.trim().is_empty() {
        return Ok(Ending::Yes); // no checklist, nothing to do
    }
    let log = settings.home.join("boot.log");
    let id = start.as_ref().map(|start| start.id.as_deref().unwrap_or("without an id"));
    if let (Some(start), Some(id)) = (&start, id) {
        if start.is_known(&log) {
            return Ok(Ending::Yes); // an observer may be told twice
        }
        if let Some(why) = start.is_past(SystemClock.now()) {
            keep(&log, &format!("left alone, for event {id}: {why}"))?;
            return Ok(Ending::Yes);
        }
        keep(&log, &format!("begins, for event {id}"))?;
    }
    if !arguments.wait {
        let started = in_the_background(arguments, &file);
        if let (Err(why), Some(id)) = (&started, id) {
            keep(&log, &format!("{NOT_BEGUN}, for event {id}: {why:#}"))?;
        }
        return started.map(|()| Ending::Yes);
    }
    // Nobody may be there to see an error: that an agent cannot be started is a report too.
    let said = ask(&arguments.agent, &prompt(&checklist)).unwrap_or_else(|why| format!("{why:#}"));
    let report =
        (!said.trim().is_empty() && !said.contains(SILENT)).then(|| said.trim().to_owned());
    keep(&log, report.as_deref().unwrap_or("nothing to report"))?;
    if let (Some(report), Some(command)) = (&report, &arguments.deliver)
        && let Err(why) = deliver(command, report)
    {
        keep(&log, &format!("the report was not delivered: {why:#}"))?;
        return Err(why);
    }
    if format == Format::Json {
        output::line(json!({"report": report}).to_string())?;
    } else if let Some(report) = report {
        output::line(report)?;
    }
    Ok(Ending::Yes)
}

/// The start of a gateway, as a hook or an observer tells of it.
#[derive(Debug)]
struct Start {
    id: Option<String>,
    at: Option<Time>,
    /// It is told once more, for others to rebuild what they keep.
    replayed: bool,
}

impl Start {
    /// The one on stdin; whoever runs this by hand gives none.
    fn told() -> Result<Option<Self>> {
        if io::IsTerminal::is_terminal(&io::stdin()) {
            return Ok(None);
        }
        let mut event = Vec::new();
        io::stdin().lock().take(LONGEST_EVENT).read_to_end(&mut event)?;
        let event = read_leniently(&event).unwrap_or_default();
        let text = |key: &str| event["hookbus"][key].as_str().map(str::to_owned);
        Ok(event.get("hookbus").map(|ours| Self {
            id: text("id"),
            at: text("time").and_then(|time| moment(&time).ok()),
            replayed: ours.get("replay") == Some(&Value::Bool(true)),
        }))
    }

    /// Whether it was seen to before. What could not be begun was not.
    fn is_known(&self, log: &Path) -> bool {
        let known = fs::read_to_string(log).unwrap_or_default();
        let told = self.id.as_ref().and_then(|id| known.lines().rfind(|line| line.contains(id)));
        told.is_some_and(|line| !line.contains(NOT_BEGUN))
    }

    /// Why it is too late for it.
    fn is_past(&self, now: Time) -> Option<String> {
        if self.replayed {
            return Some("it is replayed".to_owned());
        }
        let at = self.at.filter(|at| now.since(*at) > PAST)?;
        Some(format!("the gateway started at {at}, which is more than ten minutes ago"))
    }
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
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("cannot start in the background")?;
    Ok(())
}

fn ask(agent: &[String], prompt: &str) -> Result<String> {
    let (program, words) =
        agent.split_first().context("say which agent: `hookbus boot -- hermes -z`")?;
    let output = Command::new(program)
        .args(words)
        .arg(prompt)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{program}`; say which agent after `--`"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Ok(format!("`{program}` failed: {}", output::shorten(&why, 400)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn keep(log: &Path, text: &str) -> Result<()> {
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
