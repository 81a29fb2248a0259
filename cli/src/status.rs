//! `hookbus status`: is a daemon up, and how are its log and its hooks?

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::decide::HooksSource;
use hookbus::log::LogPath;
use hookbus::server::{Holder, NoDaemon, Reply, Request, SocketPath, ask, describe};
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::output::{self, Paint, sanitize, shorten, format_duration};
use crate::settings::{Format, Settings};

const PATIENCE: Duration = Duration::from_secs(3);

/// A daemon that has its home does not listen yet: it has only just begun.
const BEGINS_WITHIN: Duration = Duration::from_millis(300);

/// `hookbus status`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// This observer only; exits 0 if its process runs and is not in trouble.
    #[arg(long, value_name = "NAME")]
    observer: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let state = state(settings);
    if let Some(name) = &arguments.observer {
        return of_observer(name, &state, format, settings);
    }
    let ending = if state["daemon"].is_null() { Exit::Failure } else { Exit::Success };
    match format {
        Format::Json => output::line(state.to_string())?,
        Format::Text => print(&state, settings)?,
    }
    Ok(ending)
}

fn of_observer(name: &str, state: &Value, format: Format, settings: &Settings) -> Result<Exit> {
    let observers = state["observers"].as_array().into_iter().flatten();
    let Some(observer) = observers.into_iter().find(|observer| observer["name"] == name) else {
        bail!("there is no observer `{name}`; `hookbus hooks list` shows them");
    };
    output::line(match format {
        Format::Json => observer.to_string(),
        Format::Text => describe_observer(observer, Paint(settings.colour)),
    })?;
    let well = ["working", "standing by"].iter().any(|state| observer["state"] == *state);
    Ok(if well { Exit::Success } else { Exit::Failure })
}

/// What the daemon says, or what can be seen without one.
pub(crate) fn state(settings: &Settings) -> Value {
    let hung = match daemon(settings) {
        Daemon::Says(state) => return state,
        Daemon::Hangs { pid } => json!({"pid": pid}),
        Daemon::Absent => Value::Null,
    };
    let log = LogPath::in_home(&settings.home);
    let hooks = HooksSource::new(&settings.home, log.clone());
    let mut state = describe(&log, &hooks);
    state.insert("daemon".to_owned(), Value::Null);
    state.insert("hung".to_owned(), hung);
    Value::Object(state)
}

enum Daemon {
    /// How it is.
    Says(Value),
    /// It has the home to itself, and says nothing. No process that can be seen from here where there is no pid.
    Hangs {
        pid: Option<i32>,
    },
    Absent,
}

fn daemon(settings: &Settings) -> Daemon {
    let socket = SocketPath::in_home(&settings.home);
    let mut asked = ask(&socket, &Request::Status, PATIENCE);
    let holder = asked.is_err().then(|| Holder::of(&settings.home)).flatten();
    if let (Err(NoDaemon::Absent), Some(_)) = (&asked, &holder) {
        sleep(BEGINS_WITHIN);
        asked = ask(&socket, &Request::Status, PATIENCE);
    }
    match asked {
        Ok(Reply::Status(json)) => {
            serde_json::from_slice(&json).map_or(Daemon::Absent, Daemon::Says)
        }
        Ok(Reply::Answer(_) | Reply::Declined) | Err(NoDaemon::Declined) => Daemon::Absent,
        Err(NoDaemon::Absent) if holder.is_none() => Daemon::Absent,
        Err(NoDaemon::Absent | NoDaemon::BrokeOff(_) | NoDaemon::OutOfTime) => {
            Daemon::Hangs { pid: holder.map(|holder| holder.pid()) }
        }
    }
}

/// What is to be said of a daemon that has its home to itself and does not answer; nothing if there is none, or it
/// does.
pub(crate) fn describe_hung_daemon(settings: &Settings) -> Option<String> {
    match daemon(settings) {
        Daemon::Hangs { pid } => Some(describe_hung(pid)),
        Daemon::Says(_) | Daemon::Absent => None,
    }
}

/// Whether a daemon listens in this home, well or not.
pub(crate) fn is_daemon_up(settings: &Settings) -> bool {
    !matches!(daemon(settings), Daemon::Absent)
}

fn describe_hung(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => format!("running (pid {pid}) but does not answer; `hookbus stop` ends it"),
        None => "running where it cannot be seen from here (another container, another user), and does not answer; \
                 end it there"
            .to_owned(),
    }
}

fn print(state: &Value, settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    if let Some(odd) = &settings.odd_daemon {
        output::to_stderr(format!(
            "HOOKBUS_DAEMON is `{odd}`; write auto, running or off (auto is used)"
        ));
    }
    output::line(format!("home    {}", settings.home.display()))?;
    let daemon = &state["daemon"];
    if let Some(hung) = state["hung"].as_object() {
        let pid = hung["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        output::line(format!(
            "daemon  {}; until then each hook handles its event by itself",
            paint.bad(&describe_hung(pid))
        ))?;
    } else if daemon.is_null() {
        output::line(format!(
            "daemon  {}: each hook handles its event by itself; `hookbus serve` starts one",
            paint.bad("not running")
        ))?;
    } else {
        let up = format_duration(Duration::from_secs(daemon["uptime_s"].as_u64().unwrap_or(0)));
        let leaves = daemon["leaves_after_idle_s"].as_u64().map_or_else(String::new, |after| {
            format!(", leaves after {} without calls", format_duration(Duration::from_secs(after)))
        });
        output::line(format!(
            "daemon  {} (pid {}, version {}), up {up}, {} calls, {} under way{leaves}",
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
    if let Some(relay) = relay(&state["relay"], paint) {
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
        Some(dead) => paint.bad(&format!(", {dead} set aside (`hookbus dead list`)")),
    };
    let deaths = match observer["process"]["deaths"].as_u64() {
        None | Some(0) => String::new(),
        Some(deaths) => paint.bad(&format!(", started again {deaths} times")),
    };
    let error = observer["error"]
        .as_str()
        .map_or_else(String::new, |error| format!(": {}", shorten(error, 100)));
    format!("observer {name}  {state}{pid}{lag}{dead}{deaths}{error}")
}

fn relay(relay: &Value, paint: Paint) -> Option<String> {
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
