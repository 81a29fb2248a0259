//! `hookbus boot`: the start-up checklist. A gateway that comes up has an agent work through `BOOT.md` in the
//! background; what it reports is kept, and handed on where a person wants that. `[SILENT]` means nothing to say.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;
use hookbus::event::{Clock, SystemClock};
use serde_json::json;

use crate::cli::Ending;
use crate::output;
use crate::settings::{Format, Settings};

const SILENT: &str = "[SILENT]";

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
    // A hook is given its event; whoever runs this by hand gives none.
    if !arguments.wait && !io::IsTerminal::is_terminal(&io::stdin()) {
        io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    }
    if checklist.trim().is_empty() {
        return Ok(Ending::Yes); // no checklist, nothing to do
    }
    if !arguments.wait {
        in_the_background(arguments, &file)?;
        return Ok(Ending::Yes);
    }
    let said = ask(&arguments.agent, &prompt(&checklist))?;
    let report =
        (!said.trim().is_empty() && !said.contains(SILENT)).then(|| said.trim().to_owned());
    keep(&settings.home.join("boot.log"), report.as_deref().unwrap_or("nothing to report"))?;
    if let (Some(report), Some(command)) = (&report, &arguments.deliver) {
        deliver(command, report)?;
    }
    if format == Format::Json {
        output::line(json!({"report": report}).to_string())?;
    } else if let Some(report) = report {
        output::line(report)?;
    }
    Ok(Ending::Yes)
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
    let mut log = OpenOptions::new().create(true).append(true).open(log)?;
    writeln!(log, "{} {text}", SystemClock.now())?;
    Ok(())
}

fn deliver(command: &str, report: &str) -> Result<()> {
    let mut child = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn()?;
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(report.as_bytes()));
    child.wait()?;
    written.transpose().context("nobody took the report")?;
    Ok(())
}
