//! `hookbus status`: whether all is well, what is not, and then the state of the daemon, the log, the relay, the observers
//! and the hooks. Without a daemon it reads the log and the hooks file itself.

mod details;
mod health;

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::active::HooksSource;
use hookbus::config::DaemonMode;
use hookbus::event::{Clock, SystemClock};
use hookbus::log::{LogPath, Spool};
use hookbus::server::{
    DaemonError, DaemonReply, DaemonRequest, LockOwner, SocketPath, ask, describe,
};
use serde_json::{Value, json};

pub(crate) use self::details::{describe_daemon, describe_hooks, describe_spool};
pub(crate) use self::health::{Headline, headline};
use crate::cli::Exit;
use crate::output::{self, Paint, sanitize};
use crate::settings::{Format, Settings};
use crate::shapes;
/// How long to wait for the daemon's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// A daemon locks its home first and listens a moment later.
const START_GRACE: Duration = Duration::from_millis(300);

const EXAMPLES: &str = "\
Examples:
  hookbus status                   Show everything
  hookbus status --check           Check everything, as a health check
  hookbus status --observer audit  Check one observer, as a health check
  hookbus status --json            Print all details as JSON";

/// The arguments of `hookbus status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Show this observer only; exit with 0 if it is working or standing by, without an error and without dead
    /// letters
    #[arg(long, value_name = "NAME")]
    observer: Option<String>,
    /// Show only what is broken, and exit with 0 if nothing is: the daemon, the log and its spool, the hooks and
    /// their approvals, the relay, the observers that the daemon runs. With `daemon: off` none has to run
    #[arg(long, conflicts_with = "observer")]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let state = state(settings);
    if let Some(name) = &arguments.observer {
        return show_observer(name, &state, format, settings);
    }
    if arguments.check {
        return show_problems(&health::problems(&state), format);
    }
    let ending = if state["daemon"].is_null() { Exit::Failure } else { Exit::Success };
    match format {
        Format::Json => {
            output::line(with_health(state).to_string())?;
        }
        Format::Text => print(&state, settings)?,
    }
    Ok(ending)
}

/// What `status --json` prints.
pub(crate) fn with_health(mut state: Value) -> Value {
    let problems = health::problems(&state);
    state["shape"] = json!(shapes::STATUS);
    state["healthy"] = json!(problems.is_empty());
    state["problems"] = json!(problems);
    state
}

fn print(state: &Value, settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    if let Some(unknown) = &settings.unknown_daemon_mode {
        output::to_stderr(format!(
            "HOOKBUS_DAEMON is `{unknown}`, which is not auto, running or off; using auto"
        ));
    }
    headline(state).print(paint)?;
    output::line("")?;
    details::print(state, &health::problems(state), settings)
}

fn show_observer(name: &str, state: &Value, format: Format, settings: &Settings) -> Result<Exit> {
    let observers = state["observers"].as_array().into_iter().flatten();
    let Some(observer) = observers.into_iter().find(|observer| observer["name"] == name) else {
        bail!("there is no observer `{name}`; `hookbus hooks list` shows them");
    };
    output::line(match format {
        Format::Json => observer.to_string(),
        Format::Text => details::describe_observer(observer, Paint(settings.colour)),
    })?;
    let is_healthy = health::problem_of_observer(observer).is_none();
    Ok(if is_healthy { Exit::Success } else { Exit::Failure })
}

fn show_problems(problems: &[String], format: Format) -> Result<Exit> {
    match format {
        Format::Json => {
            let healthy = problems.is_empty();
            let report = json!({"shape": shapes::STATUS, "healthy": healthy, "problems": problems});
            output::line(report.to_string())?;
        }
        Format::Text if problems.is_empty() => output::line("healthy")?,
        Format::Text => {
            for problem in problems {
                output::line(sanitize(problem))?;
            }
        }
    }
    Ok(if problems.is_empty() { Exit::Success } else { Exit::Failure })
}

/// The daemon's own report, or what can be found out without a daemon.
pub(crate) fn state(settings: &Settings) -> Value {
    let hung = match query_daemon(settings) {
        DaemonState::Answers(report) => return report,
        DaemonState::Hangs { pid } => json!({"pid": pid}),
        DaemonState::Absent => Value::Null,
    };
    let log = LogPath::in_home(&settings.home);
    let hooks = HooksSource::new(&settings.home, log.clone());
    let mut state = describe(&log, &hooks);
    state.insert("daemon".to_owned(), Value::Null);
    let active = hooks.active();
    let modes = [settings.daemon, active.file.daemon.mode];
    let is_off = modes.contains(&DaemonMode::Off);
    state.insert("daemon_off".to_owned(), json!(is_off));
    // The next hook starts one, which also catches up for the observers and for NATS.
    let is_optional = modes == [DaemonMode::Auto; 2];
    state.insert("daemon_optional".to_owned(), json!(is_optional));
    state.insert("hung".to_owned(), hung);
    let spool = Spool::new(&settings.home, &settings.spool_fallbacks);
    state.insert("spool".to_owned(), spool.backlog().to_json(SystemClock.now()));
    Value::Object(state)
}

enum DaemonState {
    /// It answers, with this report.
    Answers(Value),
    /// It holds the home but does not answer. The pid is missing if the process is not visible from here.
    Hangs {
        pid: Option<i32>,
    },
    Absent,
}

fn query_daemon(settings: &Settings) -> DaemonState {
    let socket = SocketPath::in_home(&settings.home);
    let mut reply = ask(&socket, &DaemonRequest::Status, ANSWER_TIMEOUT);
    let holder = reply.is_err().then(|| LockOwner::find(&settings.home)).flatten();
    if let (Err(DaemonError::NotRunning), Some(_)) = (&reply, &holder) {
        sleep(START_GRACE);
        reply = ask(&socket, &DaemonRequest::Status, ANSWER_TIMEOUT);
    }
    match reply {
        Ok(DaemonReply::Status(json)) => {
            serde_json::from_slice(&json).map_or(DaemonState::Absent, DaemonState::Answers)
        }
        Ok(DaemonReply::Answer { .. } | DaemonReply::Declined) | Err(DaemonError::Declined) => {
            DaemonState::Absent
        }
        Err(DaemonError::NotRunning) if holder.is_none() => DaemonState::Absent,
        Err(DaemonError::NotRunning | DaemonError::Failed(_) | DaemonError::TimedOut) => {
            DaemonState::Hangs { pid: holder.map(|holder| holder.pid()) }
        }
    }
}

/// Describes a daemon that holds its home but does not answer; none if it answers or there is none.
pub(crate) fn describe_hung_daemon(settings: &Settings) -> Option<String> {
    match query_daemon(settings) {
        DaemonState::Hangs { pid } => Some(describe_hung(pid)),
        DaemonState::Answers(_) | DaemonState::Absent => None,
    }
}

/// Whether a daemon holds this home, answering or not.
pub(crate) fn is_daemon_up(settings: &Settings) -> bool {
    !matches!(query_daemon(settings), DaemonState::Absent)
}

fn describe_hung(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => format!("running (pid {pid}) but does not answer; `hookbus stop` ends it"),
        None => {
            "running in another container or as another user, and does not answer; stop it there"
                .to_owned()
        }
    }
}
