//! `hookbus sessions`: one line per recorded session.

use anyhow::Result;
use clap::Args;
use hookbus::log::SessionSummary;
use serde_json::json;

use crate::args::{open_log, parse_agent};
use crate::bus_names::BusNames;
use crate::cli::Exit;
use crate::output::{self, Paint, count, format_duration, local_time, sanitize};
use crate::settings::{Format, Settings};

const EXAMPLES: &str = "\
Examples:
  hookbus sessions -n 5            List the five latest sessions
  hookbus sessions --agent gemini  List the sessions of Gemini CLI";

/// The arguments of `hookbus sessions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only this agent: hermes, gemini, claude or codex
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only the latest N sessions
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let agent = arguments.agent.as_deref().map(parse_agent).transpose()?;
    let log = open_log(settings)?;
    let names = if log.is_archive() { BusNames::read(&log)? } else { BusNames::none() };
    let mut sessions = log.sessions()?;
    sessions.retain(|session| agent.as_ref().is_none_or(|agent| *agent == session.agent));
    let skipped = arguments.last.map_or(0, |last| sessions.len().saturating_sub(last));
    let paint = Paint(settings.colour);
    if sessions.is_empty() && format == Format::Text {
        output::line(match &agent {
            Some(agent) => format!("no sessions of {agent} are recorded"),
            None => "no sessions are recorded".to_owned(),
        })?;
    }
    for session in sessions.iter().skip(skipped) {
        output::line(match format {
            Format::Json => to_json(session, &names),
            Format::Text => describe(session, &names, paint),
        })?;
    }
    Ok(Exit::Success)
}

fn to_json(session: &SessionSummary, names: &BusNames) -> String {
    let SessionSummary { session, agent, first, last, events, blocked, bus } = session;
    let mut object = json!({"session": session, "agent": agent, "first": first.to_string(),
           "last": last.to_string(), "events": events, "blocked": blocked});
    if let Some(bus) = bus {
        object["bus"] = json!(bus.to_string());
        object["bus_name"] = json!(names.name(*bus));
    }
    object.to_string()
}

fn describe(session: &SessionSummary, names: &BusNames, paint: Paint) -> String {
    let bus = session.bus.map_or_else(String::new, |bus| format!(", on {}", names.describe(bus)));
    let blocked = match session.blocked {
        0 => String::new(),
        count => paint.bad(&format!(", {count} blocked")),
    };
    let name = sanitize(&session.session);
    let name = if name.is_empty() { "(no session)" } else { &name };
    format!(
        "{:<38} {:<7} {}  {:>12}  {}{blocked}{bus}",
        paint.bold(name),
        sanitize(&session.agent),
        local_time(session.first).format("%Y-%m-%d %H:%M:%S"),
        format_duration(session.last.since(session.first)),
        count(usize::try_from(session.events).unwrap_or(0), "event"),
    )
}
