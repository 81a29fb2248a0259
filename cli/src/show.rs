//! `hookbus show`: reads a session from the log and prints what happened in it, as text, JSON or a page.

mod decision_lines;
mod html;
mod item_lines;
mod session_lines;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use hookbus::log::{LogReader, Query, ReadError};
use hookbus::view::SessionView;

use self::session_lines::Style;
use crate::args::{find_session, open_log};
use crate::cli::Exit;
use crate::output::{self, Pager, Paint};
use crate::settings::{Format, Settings};

/// Sub-agents that are nested deeper are not shown.
const MAX_DEPTH: usize = 5;

const EXAMPLES: &str = "\
Examples:
  hookbus show last                     Show the latest session
  hookbus show 2e141a                   Show the session with this short id
  hookbus show last --full              Also show all that commands printed
  hookbus show last --html report.html  Write a file for a colleague";

/// The arguments of `hookbus show`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Session id, a unique prefix of it, its short form, or `last` for the latest session
    #[arg(value_name = "SESSION")]
    session: String,
    /// Print prompts, inputs, outputs and answers as a whole
    #[arg(long)]
    full: bool,
    /// Write the session as one HTML file; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "full")]
    html: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let session = find_session(&log, &arguments.session)?;
    let view = read(&log, &session, 0)?;
    if let Some(file) = &arguments.html {
        let page = html::page(&view);
        if file.as_os_str() == "-" {
            output::bytes(page.as_bytes())?;
        } else {
            let written = std::fs::write(file, page);
            written.with_context(|| format!("cannot write {}", file.display()))?;
            output::line(format!("written to {}", file.display()))?;
        }
        return Ok(Exit::Success);
    }
    if format == Format::Json {
        output::line(view.to_json().to_string())?;
        return Ok(Exit::Success);
    }
    let lines = style(settings, arguments.full).session(&view);
    let is_long = settings.window.lines.is_some_and(|height| lines.len() >= height);
    let _pager = is_long.then(|| Pager::start(&settings.pager)).flatten();
    lines.into_iter().try_for_each(output::line)?;
    Ok(Exit::Success)
}

/// Prints a session, for the demo.
pub(crate) fn print_session(settings: &Settings, session: &str) -> Result<()> {
    let view = read(&open_log(settings)?, session, 0)?;
    let lines = style(settings, false).session(&view);
    Ok(lines.into_iter().try_for_each(output::line)?)
}

const fn style(settings: &Settings, full: bool) -> Style {
    Style { paint: Paint(settings.colour), columns: settings.window.columns, full }
}

/// The session, with the sessions of its sub-agents inside.
fn read(log: &LogReader, session: &str, depth: usize) -> Result<SessionView> {
    let query = Query { session: Some(session.to_owned()), ..Query::default() };
    let mut view = SessionView::new(session);
    log.each(&query, None, |row| {
        view.add(&row);
        Ok::<_, ReadError>(())
    })?;
    if depth < MAX_DEPTH {
        for child in view.child_sessions().into_iter().filter(|child| child != session) {
            let child = read(log, &child, depth + 1)?;
            if child.events > 0 {
                view.attach(child);
            }
        }
    }
    Ok(view)
}
