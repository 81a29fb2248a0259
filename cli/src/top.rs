//! `hookbus top`: what happens now, on one screen: sessions, rates, what was blocked or asked about, hooks with their
//! latencies, and what waits for the relay and the observers. Once, as text or JSON, where there is no terminal.

mod draw;
mod live_session;
mod log_tail;
mod model;
mod snapshot;
mod watch;
mod words;

#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use hookbus::event::{Clock, SystemClock};
use hookbus::log::LogPath;

use self::log_tail::LogTail;
use self::snapshot::Snapshot;
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::settings::{Format, Settings};
use crate::{screen, status};

/// Looking more often shows nothing more.
const SHORTEST: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  hookbus top                Watch what happens; `?` shows the keys
  hookbus top --interval 5   Look every five seconds
  hookbus top --once         Print it once, as text
  hookbus top --json         Print it once, as JSON";

/// The arguments of `hookbus top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Seconds between two looks at the log
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Print it once as text, and exit; so does `hookbus top` without a terminal
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let interval = Duration::try_from_secs_f64(arguments.interval)
        .context("--interval must be a number of seconds")?
        .max(SHORTEST);
    if format == Format::Text && !arguments.once && settings.has_screen {
        screen::restore_on_signals()?;
        watch::run(settings, interval)?;
        return Ok(Exit::Success);
    }
    let mut tail = LogTail::new(LogPath::in_home(&settings.home));
    let snapshot = Snapshot { log: tail.look(SystemClock.now()), state: status::state(settings) };
    match format {
        Format::Json => output::line(snapshot.to_json().to_string())?,
        Format::Text => {
            let lines = snapshot.lines(settings.window.columns, Paint(settings.colour));
            lines.into_iter().try_for_each(output::line)?;
        }
    }
    Ok(if snapshot.log.error.is_some() { Exit::Failure } else { Exit::Success })
}
