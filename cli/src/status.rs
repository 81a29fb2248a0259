//! `hookbus status`: the state of the daemon, the log, the relay, the observers and the hooks. Without a daemon it
//! reads the log and the hooks file itself.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::active::HooksSource;
use hookbus::log::LogPath;
use hookbus::server::{
    DaemonError, DaemonReply, DaemonRequest, LockOwner, SocketPath, ask, describe,
};
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::output::{self, Paint, format_duration, sanitize, shorten};
use crate::settings::{Format, Settings};

/// How long to wait for the daemon's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// A daemon locks its home first and listens a moment later.
const START_GRACE: Duration = Duration::from_millis(300);

const EXAMPLES: &str = "\
Examples:
  hookbus status                   Show everything
  hookbus status --observer audit  Check one observer, as a health check
  hookbus status --json            Print all details as JSON";

/// The arguments of `hookbus status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Show this observer only; exit with 0 if it is working or standing by
    #[arg(long, value_name = "NAME")]
    observer: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let state = state(settings);
    if let Some(name) = &arguments.observer {
        return show_observer(name, &state, format, settings);
    }
    let ending = if state["daemon"].is_null() { Exit::Failure } else { Exit::Success };
    match format {
        Format::Json => output::line(state.to_string())?,
        Format::Text => print(&state, settings)?,
    }
    Ok(ending)
}

fn show_observer(name: &str, state: &Value, format: Format, settings: &Settings) -> Result<Exit> {
    let observers = state["observers"].as_array().into_iter().flatten();
    let Some(observer) = observers.into_iter().find(|observer| observer["name"] == name) else {
        bail!("there is no observer `{name}`; `hookbus hooks list` shows them");
    };
    output::line(match format {
        Format::Json => observer.to_string(),
        Format::Text => describe_observer(observer, Paint(settings.colour)),
    })?;
    let is_healthy = ["working", "standing by"].iter().any(|state| observer["state"] == *state);
    Ok(if is_healthy { Exit::Success } else { Exit::Failure })
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
    state.insert("hung".to_owned(), hung);
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
        Ok(DaemonReply::Answer(_) | DaemonReply::Declined) | Err(DaemonError::Declined) => {
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

fn print(state: &Value, settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    if let Some(unknown) = &settings.unknown_daemon_mode {
        output::to_stderr(format!(
            "HOOKBUS_DAEMON is `{unknown}`, which is not auto, running or off; using auto"
        ));
    }
    output::line(format!("home    {}", settings.home.display()))?;
    let daemon = &state["daemon"];
    if let Some(hung) = state["hung"].as_object() {
        let pid = hung["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        output::line(format!(
            "daemon  {}; until then each `hookbus hook` handles its event itself",
            paint.bad(&describe_hung(pid))
        ))?;
    } else if daemon.is_null() {
        output::line(format!(
            "daemon  {}: each `hookbus hook` handles its event itself; `hookbus serve` starts one",
            paint.bad("not running")
        ))?;
    } else {
        let up = format_duration(Duration::from_secs(daemon["uptime_s"].as_u64().unwrap_or(0)));
        let idle = daemon["leaves_after_idle_s"].as_u64().map_or_else(String::new, |after| {
            format!(", exits after {} without calls", format_duration(Duration::from_secs(after)))
        });
        output::line(format!(
            "daemon  {} (pid {}, version {}), up {up}, {} calls, {} in flight{idle}",
            paint.good("running"),
            daemon["pid"],
            daemon["version"].as_str().unwrap_or("?"),
            daemon["calls"],
            daemon["in_flight"],
        ))?;
    }
    let log = &state["log"];
    output::line(match log["error"].as_str() {
        Some(error) => format!("log     {}", paint.bad(error)),
        None => format!(
            "log     {} rows, {} kB, last {}",
            log["rows"],
            log["bytes"].as_u64().unwrap_or(0) / 1024,
            log["last"].as_str().unwrap_or("never")
        ),
    })?;
    if let Some(relay) = describe_relay(&state["relay"], paint) {
        output::line(relay)?;
    }
    for observer in state["observers"].as_array().into_iter().flatten() {
        output::line(describe_observer(observer, paint))?;
    }
    let hooks = &state["hooks"];
    let standing = hooks["standing"].as_str().unwrap_or_default();
    output::line(format!("hooks   {} ({standing})", hooks["count"]))?;
    let problems = hooks["problems"].as_array().into_iter().flatten();
    for problem in hooks["error"].as_str().into_iter().chain(problems.filter_map(Value::as_str)) {
        output::line(format!("        {}", paint.bad(&sanitize(problem))))?;
    }
    Ok(())
}

fn describe_observer(observer: &Value, paint: Paint) -> String {
    let name = sanitize(observer["name"].as_str().unwrap_or("?"));
    let state = observer["state"].as_str().unwrap_or("not running");
    let state = if state == "working" { paint.good(state) } else { paint.bad(state) };
    let number = |key: &str| observer[key].as_u64();
    let pid = number("pid").map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let lag = match number("lag_events") {
        None => String::new(),
        Some(0) => ", nothing waits".to_owned(),
        Some(lag) => format!(", {lag} rows wait"),
    };
    let dead = match number("dead_letters") {
        None | Some(0) => String::new(),
        Some(dead) => paint.bad(&format!(", {dead} dead letters (`hookbus dead list`)")),
    };
    let restarts = match observer["process"]["deaths"].as_u64() {
        None | Some(0) => String::new(),
        Some(deaths) => paint.bad(&format!(", restarted {deaths} times")),
    };
    let error = observer["error"]
        .as_str()
        .map_or_else(String::new, |error| format!(": {}", shorten(error, 100)));
    format!("observer {name}  {state}{pid}{lag}{dead}{restarts}{error}")
}

fn describe_relay(relay: &Value, paint: Paint) -> Option<String> {
    let phase = relay["phase"].as_str()?;
    let phase = if phase == "publishing" { paint.good(phase) } else { paint.bad(phase) };
    let lag = match relay["lag_events"].as_u64() {
        Some(0) | None => "nothing waits".to_owned(),
        Some(lag) => format!("{lag} events wait, {} s", relay["lag_s"]),
    };
    let error =
        relay["error"].as_str().map_or_else(String::new, |error| format!(": {}", sanitize(error)));
    Some(format!("relay   {phase}, published up to row {}, {lag}{error}", relay["published"]))
}
