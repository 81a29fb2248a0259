//! `hookbus completions`: prints a completion script for a shell, made from the same command line definition that
//! `--help` is made from.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::cli::{self, Exit};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  hookbus completions bash > ~/.local/share/bash-completion/completions/hookbus
  hookbus completions zsh > ~/.zfunc/_hookbus  # a directory in your $fpath
  hookbus completions fish > ~/.config/fish/completions/hookbus.fish";

/// The arguments of `hookbus completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell to print a script for.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit> {
    // `generate` panics when it cannot write, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut cli::command(), "hookbus", &mut script);
    output::bytes(&script)?;
    Ok(Exit::Success)
}
