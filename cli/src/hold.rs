//! `hookbus hold`: keeps sessions from being pruned, lists them, and releases them again.

use anyhow::{Result, bail};
use clap::Args;
use hookbus::event::{Clock, SystemClock};
use hookbus::log::{BusRow, Hold, SessionHold};
use serde_json::{Value, json};

use crate::args::{find_session, open_log};
use crate::bus_rows;
use crate::cli::Exit;
use crate::output::{self, sanitize, when, wrapped};
use crate::prune::user_at_host;
use crate::settings::{Format, Settings};

/// The arguments of `hookbus hold`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The session to hold: its id, a unique prefix of it, its short form, or `last`
    #[arg(value_name = "SESSION", required_unless_present = "list")]
    session: Option<String>,
    /// Why, for those who read the log later
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Allow the session to be pruned again
    #[arg(long)]
    release: bool,
    /// List the sessions that are held
    #[arg(long, conflicts_with_all = ["session", "release", "note"])]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let holds = log.holds()?;
    let Some(prefix) = &arguments.session else { return list(&holds, format) };
    if log.is_archive() {
        bail!("this is an archive, which is never pruned; hold the session in the log of its bus");
    }
    // A session whose rows are gone can be released too.
    let held = holds.iter().find(|it| it.hold.session == *prefix);
    let session = match held {
        Some(known) => known.hold.session.clone(),
        None => find_session(&log, prefix)?,
    };
    let is_held = holds.iter().any(|it| it.hold.session == session);
    if is_held == arguments.release {
        let hold = SessionHold {
            session: session.clone(),
            note: arguments.note.clone(),
            by: user_at_host(),
        };
        let row = if arguments.release {
            BusRow::SessionReleased(hold)
        } else {
            BusRow::SessionHeld(hold)
        };
        bus_rows::record(&[row], settings)?;
        // It went to the spool if the log cannot be written, and `hookbus prune` does not look there.
        let is_recorded = |hold: &Hold| hold.hold.session == session;
        if open_log(settings)?.holds()?.iter().any(is_recorded) == arguments.release {
            bail!(
                "the log cannot be written now: this waits in the spool, and does not count until the log has taken it"
            );
        }
    }
    let state = match (arguments.release, is_held) {
        (false, false) => "is held: `hookbus prune` leaves it alone",
        (false, true) => "was held already",
        (true, true) => "is released: `hookbus prune` may remove it",
        (true, false) => "was not held",
    };
    output::line(match format {
        Format::Json => json!({"session": session, "held": !arguments.release}).to_string(),
        Format::Text => format!("session {} {state}", sanitize(&session)),
    })?;
    Ok(Exit::Success)
}

fn list(holds: &[Hold], format: Format) -> Result<Exit> {
    if format == Format::Json {
        let holds: Vec<Value> = holds.iter().map(to_json).collect();
        output::line(json!({"holds": holds}).to_string())?;
        return Ok(Exit::Success);
    }
    if holds.is_empty() {
        output::line("no session is held")?;
    }
    for Hold { hold: SessionHold { session, note, by }, since } in holds {
        let since = when(*since, SystemClock.now());
        output::line(format!("{}  since {since}, by {}", sanitize(session), sanitize(by)))?;
        for line in note.iter().flat_map(|note| wrapped(note, "    ")) {
            output::line(line)?;
        }
    }
    Ok(Exit::Success)
}

fn to_json(Hold { hold, since }: &Hold) -> Value {
    json!({
        "session": hold.session,
        "note": hold.note,
        "by": hold.by,
        "since": since.to_string(),
    })
}
