//! `hookbus status`: the state of the daemon, the log, the relay, the observers and the hooks. Without a daemon it
//! reads the log and the hooks file itself.

mod health;

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::active::HooksSource;
use hookbus::config::DaemonMode;
use hookbus::event::{BusId, Clock, SystemClock};
use hookbus::log::{LogPath, Spool};
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
    let is_healthy = health::problem_of_observer(observer).is_none();
    Ok(if is_healthy { Exit::Success } else { Exit::Failure })
}

fn show_problems(problems: &[String], format: Format) -> Result<Exit> {
    match format {
        Format::Json => {
            let report = json!({"healthy": problems.is_empty(), "problems": problems});
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
    let by_file = hooks.active().file.daemon.mode;
    let is_off = [settings.daemon, by_file].contains(&DaemonMode::Off);
    state.insert("daemon_off".to_owned(), json!(is_off));
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

fn print(state: &Value, settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    if let Some(unknown) = &settings.unknown_daemon_mode {
        output::to_stderr(format!(
            "HOOKBUS_DAEMON is `{unknown}`, which is not auto, running or off; using auto"
        ));
    }
    output::line(format!("home    {}", sanitize(&settings.home.to_string_lossy())))?;
    output::line(describe_bus(&state["bus"]))?;
    output::line(describe_daemon(state, paint))?;
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
    for line in describe_damage(log) {
        output::line(format!("        {}", paint.bad(&line)))?;
    }
    for line in describe_spool(&state["spool"]) {
        output::line(format!("spool   {}", paint.bad(&line)))?;
    }
    if let Some(relay) = describe_relay(&state["relay"], paint) {
        output::line(relay)?;
    }
    if let Some(retention) = describe_retention(&state["retention"], paint) {
        output::line(retention)?;
    }
    for observer in state["observers"].as_array().into_iter().flatten() {
        output::line(describe_observer(observer, paint))?;
    }
    let hooks = &state["hooks"];
    let standing = hooks["standing"].as_str().unwrap_or_default();
    output::line(format!("hooks   {} ({standing})", hooks["count"]))?;
    for choice in hooks["record"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output::line(format!("record  {}", sanitize(choice)))?;
    }
    let problems = hooks["problems"].as_array().into_iter().flatten();
    let errors = ["error", "consent_error"].iter().filter_map(|key| hooks[*key].as_str());
    for problem in errors.chain(problems.filter_map(Value::as_str)) {
        output::line(format!("        {}", paint.bad(&sanitize(problem))))?;
    }
    Ok(())
}

/// The line about the bus: its name, its id, and who records.
fn describe_bus(bus: &Value) -> String {
    let text = |key: &str| sanitize(bus[key].as_str().unwrap_or("?"));
    let id = bus["id"].as_str().and_then(|id| id.parse::<BusId>().ok());
    let id = id.map_or_else(|| "no id yet".to_owned(), |id| id.short(&[]));
    format!("bus     {} ({id}), user {} on {}", text("name"), text("user"), text("host"))
}

/// The line about the daemon.
fn describe_daemon(state: &Value, paint: Paint) -> String {
    let daemon = &state["daemon"];
    if let Some(hung) = state["hung"].as_object() {
        let pid = hung["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        format!(
            "daemon  {}; until then each `hookbus hook` handles its event itself",
            paint.bad(&describe_hung(pid))
        )
    } else if state["daemon_off"] == true {
        "daemon  off, as it is set; hooks work without it".to_owned()
    } else if daemon.is_null() {
        format!(
            "daemon  {}; hooks work without it (`hookbus serve` starts one)",
            paint.bad("not running")
        )
    } else {
        let up = format_duration(Duration::from_secs(daemon["uptime_s"].as_u64().unwrap_or(0)));
        let idle = daemon["leaves_after_idle_s"].as_u64().map_or_else(String::new, |after| {
            format!(", exits after {} without calls", format_duration(Duration::from_secs(after)))
        });
        format!(
            "daemon  {} (pid {}, version {}), up {up}, {} calls, {} in flight{idle}",
            paint.good("running"),
            daemon["pid"],
            daemon["version"].as_str().unwrap_or("?"),
            daemon["calls"],
            daemon["in_flight"],
        )
    }
}

/// Losses of rows that the daemon noticed.
fn describe_damage(log: &Value) -> impl Iterator<Item = String> {
    let file = log["damage_file"].as_str().unwrap_or_default();
    let lines = log["damage"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.map(move |line| sanitize(&format!("{line} (delete {file} when you have read this)")))
}

/// What is in the spool, one line for each thing that the user should know; none if it is empty.
pub(crate) fn describe_spool(spool: &Value) -> Vec<String> {
    let texts = |key: &str| -> Vec<String> {
        let texts = spool[key].as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).map(sanitize).collect()
    };
    let mut lines = Vec::new();
    let waiting = spool["waiting"].as_u64().unwrap_or(0);
    if waiting > 0 {
        let age = Duration::from_secs(spool["oldest_age_s"].as_u64().unwrap_or(0));
        let why =
            spool["why"].as_str().map_or_else(String::new, |why| format!(": {}", sanitize(why)));
        let (noun, verb) = if waiting == 1 { ("event", "waits") } else { ("events", "wait") };
        let age = format_duration(age);
        lines.push(format!("{waiting} {noun} {verb} for the log, the oldest for {age}{why}"));
    }
    let incomplete = spool["incomplete"].as_u64().unwrap_or(0);
    if incomplete > 0 {
        let (noun, them) =
            if incomplete == 1 { ("event was", "it") } else { ("events were", "them") };
        lines.push(format!(
            "{incomplete} {noun} not written to the end; the next process takes {them} in ten minutes later, or sets {them} aside"
        ));
    }
    let unreadable = spool["unreadable"].as_u64().unwrap_or(0);
    if unreadable > 0 {
        let files = texts("unreadable_files").join(", ");
        let (noun, them) =
            if unreadable == 1 { ("file holds", "it") } else { ("files hold", "them") };
        lines.push(format!(
            "{unreadable} {noun} no event, set aside; look at {them} and delete {them}: {files}"
        ));
    }
    for directory in texts("unusable_directories") {
        lines
            .push(format!("{directory} cannot be read, or other users can write to it; remove it"));
    }
    lines
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
        Some(lag) => match number("lag_s") {
            None => format!(", {lag} rows wait"),
            Some(age) => {
                let age = format_duration(Duration::from_secs(age));
                format!(", {lag} rows wait, the oldest for {age}")
            }
        },
    };
    let dead = match number("dead_letters") {
        None | Some(0) => String::new(),
        Some(dead) => paint.bad(&format!(", {dead} dead letters (`hookbus dead list`)")),
    };
    let refused = match number("refused") {
        None | Some(0) => String::new(),
        Some(refused) => {
            paint.bad(&format!(", {refused} messages from NATS refused (`hookbus dead list`)"))
        }
    };
    let restarts = match observer["process"]["deaths"].as_u64() {
        None | Some(0) => String::new(),
        Some(deaths) => paint.bad(&format!(", restarted {deaths} times")),
    };
    let error = observer["error"]
        .as_str()
        .map_or_else(String::new, |error| format!(": {}", shorten(error, 100)));
    format!("observer {name}  {state}{pid}{lag}{dead}{refused}{restarts}{error}")
}

/// What the rules of `retain:` removed last, and what is wrong with them; none if there are none.
fn describe_retention(retention: &Value, paint: Paint) -> Option<String> {
    if let Some(error) = retention["error"].as_str() {
        return Some(format!("retain  {}", paint.bad(&sanitize(error))));
    }
    let rules = retention["rules"].as_u64().filter(|rules| *rules > 0)?;
    let rules = output::count(usize::try_from(rules).unwrap_or(usize::MAX), "rule");
    let last = &retention["last"];
    let Some(at) = last["at"].as_str() else { return Some(format!("retain  {rules}, never run")) };
    let at = sanitize(at);
    Some(match last["error"].as_str() {
        Some(error) => format!("retain  {rules}, failed at {at}: {}", paint.bad(&sanitize(error))),
        None => format!(
            "retain  {rules}, last run at {at}: {} payloads and {} rows removed",
            last["payloads"], last["rows"]
        ),
    })
}

fn describe_relay(relay: &Value, paint: Paint) -> Option<String> {
    let phase = relay["phase"].as_str()?;
    let phase = if phase == "publishing" { paint.good(phase) } else { paint.bad(phase) };
    let lag = match relay["lag_events"].as_u64() {
        Some(0) | None => "nothing waits".to_owned(),
        Some(lag) => {
            let age = Duration::from_secs(relay["lag_s"].as_u64().unwrap_or(0));
            format!("{lag} events wait, the oldest for {}", format_duration(age))
        }
    };
    let error =
        relay["error"].as_str().map_or_else(String::new, |error| format!(": {}", sanitize(error)));
    let foreign = match relay["foreign"].as_u64() {
        None | Some(0) => String::new(),
        Some(foreign) => paint.bad(&format!(
            ", {foreign} messages on the subjects of this bus are not its own and were stepped over; \
             find out who else may publish there"
        )),
    };
    let published = &relay["published"];
    Some(format!("relay   {phase}, published up to row {published}, {lag}{foreign}{error}"))
}
