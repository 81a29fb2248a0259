//! `hookbus serve --install`: a systemd user unit that keeps a daemon running for this home. Its command names the
//! program and the home by absolute paths, so that no environment decides about them. systemd need not run to write it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cli::Exit;
use crate::output;
use crate::prompt::{self, PromptOn};
use crate::settings::Settings;

/// The first line of a unit that we wrote. Another one is left alone.
const MARK: &str =
    "# Written by `hookbus serve --install`; `hookbus serve --uninstall` removes it.";

/// The arguments of `hookbus serve` that are about the unit.
#[derive(Debug, Args)]
pub(super) struct UnitArguments {
    /// Write a systemd user unit that keeps a daemon running for this home, instead of running one
    #[arg(long, conflicts_with_all = ["background", "idle", "nats", "no_observers", "uninstall"])]
    install: bool,
    /// Remove that unit
    #[arg(long, conflicts_with_all = ["background", "idle", "nats", "no_observers"])]
    uninstall: bool,
    /// Write or remove the unit without asking
    #[arg(long)]
    yes: bool,
}

/// Whether the user has agreed already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    Given,
    Ask,
}

/// Writes or removes the unit, if the arguments say so.
pub(super) fn run(arguments: &UnitArguments, settings: &Settings) -> Result<Option<Exit>> {
    let consent = if arguments.yes { Consent::Given } else { Consent::Ask };
    match (arguments.install, arguments.uninstall) {
        (true, _) => install(settings, consent).map(Some),
        (false, true) => uninstall(consent).map(Some),
        (false, false) => Ok(None),
    }
}

/// Shows the unit and writes it.
fn install(settings: &Settings, consent: Consent) -> Result<Exit> {
    let file = unit_file()?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let text = unit(&program, &settings.home)?;
    match existing(&file)? {
        Some(now) if now == text => {
            output::line(format!("{} is up to date", file.display()))?;
            return next_steps();
        }
        Some(now) if !now.starts_with(MARK) => {
            bail!("{} is not from hookbus; remove it first", file.display());
        }
        Some(_) | None => {}
    }
    output::line(format!("{}:\n\n{text}", file.display()))?;
    if !agrees(consent, "Write this unit?")? {
        return Ok(Exit::Failure);
    }
    let folder = file.parent().context("the unit has no directory")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    output::line(format!("wrote {}", file.display()))?;
    next_steps()
}

/// Removes the unit.
fn uninstall(consent: Consent) -> Result<Exit> {
    let file = unit_file()?;
    let Some(now) = existing(&file)? else {
        output::line(format!("there is no {}", file.display()))?;
        return Ok(Exit::Success);
    };
    if !now.starts_with(MARK) {
        bail!("{} is not from hookbus; remove it by hand", file.display());
    }
    if !agrees(consent, &format!("Remove {}?", file.display()))? {
        return Ok(Exit::Failure);
    }
    fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    output::line(format!("removed {}; now run:", file.display()))?;
    output::line("  systemctl --user disable --now hookbus.service")?;
    output::line("  systemctl --user daemon-reload")?;
    Ok(Exit::Success)
}

fn next_steps() -> Result<Exit> {
    output::line("now run:")?;
    output::line("  systemctl --user daemon-reload")?;
    output::line("  systemctl --user enable --now hookbus.service")?;
    Ok(Exit::Success)
}

fn agrees(consent: Consent, question: &str) -> Result<bool> {
    match consent {
        Consent::Given => Ok(true),
        Consent::Ask if prompt::is_interactive(PromptOn::Stdout) => {
            prompt::yes_no(PromptOn::Stdout, question)
        }
        Consent::Ask => bail!("there is no terminal to ask at; add `--yes`"),
    }
}

fn existing(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

fn unit_file() -> Result<PathBuf> {
    let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = configured.filter(|folder| folder.is_absolute());
    let folder = folder.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    let folder = folder.context("there is no home directory; set HOME")?;
    Ok(folder.join("systemd/user/hookbus.service"))
}

fn unit(program: &Path, home: &Path) -> Result<String> {
    // systemd replaces variables in the arguments of a command, but not in the path of its program.
    let (program, home) = (quoted(program)?, quoted(home)?.replace('$', "$$"));
    Ok(format!(
        "{MARK}
[Unit]
Description=hookbus, the hook bus for AI agents

[Service]
ExecStart=\"{program}\" --home \"{home}\" serve
Restart=on-failure
RestartSec=2
UMask=0077

[Install]
WantedBy=default.target
"
    ))
}

/// A path inside of double quotes, as systemd reads it in `ExecStart=`: it takes `\` and `"` for escapes and quotes,
/// and `%` for the start of a specifier.
fn quoted(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    let text = text.with_context(|| {
        format!("{} cannot be written in a unit; use another path", path.display())
    })?;
    Ok(text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}
