//! `hookbus init`: writes a first policy into an empty home. It never replaces a file.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use crate::cli::Exit;
use crate::output::{self, sanitize};
use crate::settings::{Format, Settings};

/// The first policy. `@HOME@` stands for a regex that finds the home in a path or a shell line.
const STARTER: &str = include_str!("init/starter.yaml");

const EXAMPLES: &str = "\
Examples:
  hookbus init          Write a first policy to ~/.hookbus/hookbus.yaml
  hookbus init --print  Only show it";

/// The arguments of `hookbus init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print the policy and write nothing
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let policy = starter(&settings.home)?;
    let file = settings.home.join("hookbus.yaml");
    if arguments.print {
        match format {
            Format::Json => output::line(json!({"file": file, "policy": policy}).to_string())?,
            Format::Text => output::part(&policy)?,
        }
        return Ok(Exit::Success);
    }
    write_new(&file, &policy)?;
    match format {
        Format::Json => output::line(json!({"file": file, "written": true}).to_string())?,
        Format::Text => {
            output::line(format!("wrote {}", sanitize(&file.display().to_string())))?;
            output::line(
                "read it, change it as you like; `hookbus hooks list` shows what is in force",
            )?;
        }
    }
    Ok(Exit::Success)
}

/// The starter policy for this home.
fn starter(home: &Path) -> Result<String> {
    let home = home.to_str().context("the home's path is not UTF-8; choose another one")?;
    // In single quotes, where YAML has no other special character.
    let path = regex_escape(home).replace('\'', "''");
    // The usual home is found under all its spellings: `~/.hookbus`, `$HOME/.hookbus`, `.hookbus`.
    let pattern = if home.ends_with("/.hookbus") { r"\.hookbus\b".to_owned() } else { path };
    Ok(STARTER.replace("@HOME@", &pattern))
}

fn regex_escape(text: &str) -> String {
    let special = |letter: char| r"\.+*?()|[]{}^$#&-~".contains(letter);
    text.chars().flat_map(|it| special(it).then_some('\\').into_iter().chain([it])).collect()
}

/// Writes a file that only its owner can read; fails if there is one.
fn write_new(file: &Path, text: &str) -> Result<()> {
    if let Some(home) = file.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
        made.with_context(|| format!("cannot create {}", home.display()))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    match opened.and_then(|mut opened| opened.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!(
                "{} exists and is left as it is; `hookbus init --print` shows the starter policy",
                file.display()
            )
        }
        Err(error) => {
            // A policy that is cut off would be an error at every event.
            if let Err(error) = fs::remove_file(file) {
                tracing::debug!(%error, "cannot remove the unfinished file");
            }
            Err(error).with_context(|| format!("cannot write {}", file.display()))
        }
    }
}
