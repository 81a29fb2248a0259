//! `hookbus man`: the manual pages, made from the same command line definition that `--help` is made from. One page
//! goes to stdout, all of them go into a directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use serde_json::json;

use crate::cli::{self, Exit};
use crate::settings::Format;
use crate::{output, reference};

const EXAMPLES: &str = "\
Examples:
  hookbus man | man -l -                     Read the first page
  hookbus man hooks test | man -l -          Read the page of one command
  hookbus man --out ~/.local/share/man/man1  Install all pages";

/// The arguments of `hookbus man`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print the page of this command, such as `hooks test` (default: of `hookbus` itself).
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory; it is created if it does not exist.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Print the reference of all commands as Markdown: the source of `cli/docs/commands.md`.
    #[arg(long, hide = true, conflicts_with_all = ["command", "out"])]
    markdown: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format) -> Result<Exit> {
    let root = built();
    match &arguments.out {
        Some(directory) => {
            let pages = write_all(&root, directory)?;
            output::line(match format {
                Format::Json => {
                    json!({"directory": directory.to_string_lossy(), "pages": pages}).to_string()
                }
                Format::Text => {
                    format!("{} in {}", output::count(pages, "page"), directory.display())
                }
            })?;
        }
        None if arguments.markdown => output::bytes(reference::markdown(&root).as_bytes())?,
        None => output::bytes(&page(find(&root, &arguments.command)?)?)?,
    }
    Ok(Exit::Success)
}

/// The whole command line, with the full name of each subcommand (`hookbus hooks test`) filled in.
fn built() -> Command {
    let mut root = cli::command();
    root.build();
    root
}

fn find<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command> {
    let mut command = root;
    for word in words {
        let Some(found) = command.find_subcommand(word) else {
            bail!("there is no command `hookbus {}`; `hookbus --help` lists them", words.join(" "));
        };
        command = found;
    }
    Ok(command)
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let source = concat!("hookbus ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source);
    man.render(&mut page).context("cannot write the page")?;
    Ok(page)
}

/// Writes a page for `command` and for each command below it; says how many.
fn write_all(command: &Command, directory: &Path) -> Result<usize> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let file = directory.join(Man::new(command.clone()).get_filename());
    fs::write(&file, page(command)?).with_context(|| format!("cannot write {}", file.display()))?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.map(|below| write_all(below, directory)).sum::<Result<usize>>().map(|pages| pages + 1)
}
