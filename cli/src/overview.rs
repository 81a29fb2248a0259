//! `hookbus` without a command: what is going on, and what to type next. Reads the latest sessions only, so that it takes no
//! longer with a large log; where nothing is set up yet, it says how to begin.

mod agents;

use anyhow::Result;
use chrono::NaiveTime;
use hookbus::event::{Clock, SystemClock, Time};
use hookbus::log::{LogPath, LogReader};
use serde_json::{Value, json};

use self::agents::AgentState;
use crate::bus_names::BusNames;
use crate::cli::Exit;
use crate::init::installed;
use crate::output::{self, Paint, count, local_time, pad, sanitize, width};
use crate::sessions::{SessionSummary, recent};
use crate::settings::{Format, Settings};
use crate::shapes;
use crate::status::{self, Headline, describe_daemon, headline};

/// How many sessions are listed.
const LISTED: usize = 3;

/// How many sessions of today are looked at.
const MOST_OF_TODAY: usize = 20;

/// The columns of a label.
const LABEL: usize = 8;

/// A command, and what it is good for.
type NextStep = (String, &'static str);

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Exit> {
    let is_set_up = ["hookbus.yaml", "log.db"].iter().any(|it| settings.home.join(it).exists());
    if is_set_up {
        Overview::read(settings)?.show(format, settings)?;
    } else {
        welcome(format, settings)?;
    }
    Ok(Exit::Success)
}

/// What is said where nothing is set up.
fn welcome(format: Format, settings: &Settings) -> Result<()> {
    let found: Vec<&str> = installed(settings).iter().map(|agent| agent.name).collect();
    let next = [
        ("hookbus demo", "see it work, in a scratch home"),
        ("hookbus init", "write a first policy, connect your agents"),
        ("hookbus --help", "all commands"),
    ];
    let next = next.map(|(command, what)| (settings.command(command), what));
    if format == Format::Json {
        let commands: Vec<&String> = next.iter().map(|(command, _)| command).collect();
        let report = json!({
            "shape": shapes::OVERVIEW, "shapes": shapes::to_json(), "home": settings.home,
            "set_up": false, "installed": found, "next": commands,
        });
        return Ok(output::line(report.to_string())?);
    }
    let home = sanitize(&settings.home.to_string_lossy());
    output::line("hookbus records what your AI agents do, and runs your hooks on it.")?;
    output::line(format!("Nothing is set up yet: {home} has no policy and no log."))?;
    output::line(match found.as_slice() {
        [] => "No agent was found: neither hermes, gemini, claude nor codex.".to_owned(),
        found => format!("Agents on this machine: {}.", found.join(", ")),
    })?;
    print_next(&next, Paint(settings.colour))
}

/// Everything that is told.
struct Overview {
    state: Value,
    headline: Headline,
    agents: Vec<AgentState>,
    sessions: Vec<SessionSummary>,
    today: Today,
    names: BusNames,
}

/// What the sessions of today came to.
#[derive(Debug, Default)]
struct Today {
    sessions: usize,
    blocked: usize,
    failed: usize,
    /// Whether there may be more.
    is_at_least: bool,
}

impl Overview {
    fn read(settings: &Settings) -> Result<Self> {
        let state = status::state(settings);
        let headline = headline(&state);
        let mut overview = Self {
            state,
            headline,
            agents: Vec::new(),
            sessions: Vec::new(),
            today: Today::default(),
            names: BusNames::none(),
        };
        // A log that cannot be read is told with the problems.
        if let Ok(log) = LogReader::open(&LogPath::in_home(&settings.home)) {
            let (sessions, has_more) = recent(&log, None, MOST_OF_TODAY)?;
            overview.today = Today::of(&sessions, has_more);
            if log.is_archive() {
                overview.names = BusNames::read(&log)?;
            }
            overview.sessions = sessions;
        }
        overview.agents = agents::read(settings, &overview.sessions);
        overview.sessions.truncate(LISTED);
        Ok(overview)
    }

    fn show(&self, format: Format, settings: &Settings) -> Result<()> {
        let next = self.next(settings);
        if format == Format::Json {
            let commands: Vec<&String> = next.iter().map(|(command, _)| command).collect();
            let sessions: Vec<Value> =
                self.sessions.iter().map(|it| it.to_json(&self.names)).collect();
            let agents: Vec<Value> = self.agents.iter().map(AgentState::to_json).collect();
            let report = json!({
                "shape": shapes::OVERVIEW,
                "shapes": shapes::to_json(),
                "home": settings.home,
                "set_up": true,
                "healthy": self.headline.problems.is_empty(),
                "problems": self.headline.problems,
                "daemon": self.state["daemon"],
                "hooks": self.state["hooks"]["count"],
                "agents": agents,
                "today": {
                    "sessions": self.today.sessions, "blocked": self.today.blocked,
                    "failed": self.today.failed, "at_least": self.today.is_at_least,
                },
                "sessions": sessions,
                "next": commands,
            });
            return Ok(output::line(report.to_string())?);
        }
        let (paint, now) = (Paint(settings.colour), SystemClock.now());
        self.headline.print(paint)?;
        let row = |label: &str, text: &str| output::labelled(&pad(label, LABEL), text);
        row("daemon", &describe_daemon(&self.state, paint))?;
        row("hooks", &status::describe_hooks(&self.state["hooks"]))?;
        for (at, agent) in self.agents.iter().enumerate() {
            row(if at == 0 { "agents" } else { "" }, &agent.describe(now, paint))?;
        }
        row("today", &self.today.describe(paint))?;
        if !self.sessions.is_empty() {
            output::line(format!("\n{}", paint.bold("last sessions")))?;
        }
        for session in &self.sessions {
            let columns = settings.window.columns.saturating_sub(2);
            for line in session.fitted(now, &self.names, paint, columns) {
                output::line(format!("  {line}"))?;
            }
        }
        print_next(&next, paint)
    }

    /// What to type next.
    fn next(&self, settings: &Settings) -> Vec<NextStep> {
        let mut next = Vec::new();
        let mut add = |command: &str, what| next.push((settings.command(command), what));
        if !self.headline.problems.is_empty() {
            add("hookbus hooks doctor", "what is wrong, and what to do about it");
        }
        if self.state["hooks"]["standing"] == "no file" {
            add("hookbus init", "write a first policy");
        }
        let open = self.agents.iter().find_map(AgentState::connect_command);
        if let Some(command) = open.filter(|_| self.agents.iter().all(|it| !it.is_connected())) {
            add(&command, "record what this agent does");
        }
        if !self.sessions.is_empty() {
            add("hookbus show last", "what happened in the latest session");
        }
        if self.today.blocked > 0 {
            add("hookbus why last", "why an agent was held back last");
        }
        add("hookbus status", "all details");
        add("hookbus --help", "all commands");
        next
    }
}

impl Today {
    /// Counts those of the latest sessions that were active today.
    fn of(sessions: &[SessionSummary], has_more: bool) -> Self {
        let midnight = local_time(SystemClock.now()).with_time(NaiveTime::MIN).earliest();
        let is_today = |at: Time| midnight.is_none_or(|midnight| local_time(at) >= midnight);
        let mut today = Self::default();
        for session in sessions.iter().filter(|session| is_today(session.last)) {
            today.sessions += 1;
            today.blocked += session.blocked;
            today.failed += session.failed;
            today.is_at_least |= session.is_at_least;
        }
        today.is_at_least |= has_more && today.sessions == sessions.len();
        today
    }

    fn describe(&self, paint: Paint) -> String {
        if self.sessions == 0 {
            return "nothing was recorded yet".to_owned();
        }
        let least = if self.is_at_least { "at least " } else { "" };
        let bad = |number: usize, what: &str| {
            let text = format!("{number} {what}");
            if number > 0 { paint.bad(&text) } else { text }
        };
        format!(
            "{least}{}; in them {}, {}",
            count(self.sessions, "session"),
            bad(self.blocked, "blocked"),
            bad(self.failed, "failed")
        )
    }
}

fn print_next(next: &[NextStep], paint: Paint) -> Result<()> {
    output::line(format!("\n{}", paint.bold("next")))?;
    let longest = next.iter().map(|(command, _)| width(command)).max().unwrap_or(0);
    for (command, what) in next {
        output::labelled(&format!("  {}  ", pad(&sanitize(command), longest)), &paint.dim(what))?;
    }
    Ok(())
}
