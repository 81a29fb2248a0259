//! The details of `hookbus status`: a label and a sentence each, times in the local time zone. What is wrong was told
//! before and is not told again.

use std::time::Duration;

use anyhow::Result;
use chrono::DateTime;
use hookbus::event::{BusId, Clock, SystemClock, Time};
use serde_json::Value;

use super::describe_hung;
use crate::output::{
    self, Paint, counted, format_duration, number, pad, sanitize, shorten, size, when,
};
use crate::settings::Settings;

/// The columns of a label.
const LABEL: usize = 10;

/// Prints everything; `told` are the problems that were told already.
pub(super) fn print(state: &Value, told: &[String], settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    let is_new = |line: &String| !told.iter().any(|told| told.contains(line.as_str()));
    row("bus", &describe_bus(&state["bus"]))?;
    row("home", &sanitize(&settings.home.to_string_lossy()))?;
    row("daemon", &describe_daemon(state, paint))?;
    row("log", &describe_log(&state["log"], paint))?;
    for line in describe_spool(&state["spool"]).into_iter().filter(is_new) {
        row("spool", &paint.notable(&line))?;
    }
    if let Some(relay) = describe_relay(&state["relay"], paint) {
        row("relay", &relay)?;
    }
    if let Some(retention) = describe_retention(&state["retention"], paint) {
        row("retain", &retention)?;
    }
    for observer in list(&state["observers"]) {
        row("observer", &describe_observer(observer, paint))?;
    }
    let hooks = &state["hooks"];
    row("hooks", &describe_hooks(hooks))?;
    for choice in list(&hooks["record"]).filter_map(Value::as_str) {
        row("record", &sanitize(choice))?;
    }
    let remarks = list(&hooks["problems"]).filter_map(Value::as_str).map(str::to_owned);
    for remark in remarks.filter(is_new) {
        row("", &paint.notable(&sanitize(&remark)))?;
    }
    Ok(())
}

fn row(label: &str, text: &str) -> Result<()> {
    Ok(output::labelled(&pad(label, LABEL), text)?)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A time of the report as people say it.
fn told_time(value: &Value) -> Option<String> {
    let exact = DateTime::parse_from_rfc3339(value.as_str()?).ok()?;
    Some(when(Time::from(exact.to_utc()), SystemClock.now()))
}

/// Its name, its id, and who records.
fn describe_bus(bus: &Value) -> String {
    let text = |key: &str| sanitize(bus[key].as_str().unwrap_or("?"));
    let id = bus["id"].as_str().and_then(|id| id.parse::<BusId>().ok());
    let id = id.map_or_else(|| "no id yet".to_owned(), |id| id.short(&[]));
    format!("{} ({id}), user {} on {}", text("name"), text("user"), text("host"))
}

/// Whether a daemon runs, since when, and what it did.
pub(crate) fn describe_daemon(state: &Value, paint: Paint) -> String {
    let daemon = &state["daemon"];
    if let Some(hung) = state["hung"].as_object() {
        let pid = hung["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        return format!(
            "{}; until then each `hookbus hook` handles its event itself",
            paint.bad(&describe_hung(pid))
        );
    }
    if state["daemon_off"] == true {
        return "off, as it is set; hooks work without it".to_owned();
    }
    if daemon.is_null() && state["daemon_optional"] == true {
        return format!(
            "{}; hooks work without it, and the next one starts it",
            paint.notable("not running")
        );
    }
    if daemon.is_null() {
        return format!(
            "{}; hooks work without it (`hookbus serve` starts one)",
            paint.bad("not running")
        );
    }
    let now = SystemClock.now();
    let since = now.before(Duration::from_secs(daemon["uptime_s"].as_u64().unwrap_or(0)));
    let idle = daemon["leaves_after_idle_s"].as_u64().map_or_else(String::new, |after| {
        format!(", exits after {} without calls", format_duration(Duration::from_secs(after)))
    });
    format!(
        "{} since {} (pid {}, version {}), {}, {} in flight{idle}",
        paint.good("running"),
        when(since, now),
        daemon["pid"],
        daemon["version"].as_str().unwrap_or("?"),
        counted(daemon["calls"].as_u64().unwrap_or(0), "call"),
        daemon["in_flight"],
    )
}

fn describe_log(log: &Value, paint: Paint) -> String {
    if log["error"].is_string() {
        return paint.bad("cannot be used");
    }
    match (log["rows"].as_u64(), told_time(&log["last"])) {
        (None | Some(0), _) | (_, None) => "nothing is recorded yet".to_owned(),
        (Some(rows), Some(last)) => format!(
            "{}, {}, the last one {last}",
            counted(rows, "row"),
            size(log["bytes"].as_u64().unwrap_or(0)),
        ),
    }
}

/// How many hooks are in force, and of which version of the file.
pub(crate) fn describe_hooks(hooks: &Value) -> String {
    let in_force = counted(hooks["count"].as_u64().unwrap_or(0), "hook");
    match hooks["standing"].as_str().unwrap_or_default() {
        "current" => format!("{in_force} in force"),
        "no file" => "none: there is no hookbus.yaml; `hookbus init` writes one".to_owned(),
        "last good" => format!("{in_force} in force, of the last version without this mistake"),
        _ => "none are known: the file cannot be used, and no earlier version of it".to_owned(),
    }
}

/// What is in the spool, one line for each thing that the user should know; none if it is empty.
pub(crate) fn describe_spool(spool: &Value) -> Vec<String> {
    let texts = |key: &str| -> Vec<String> {
        list(&spool[key]).filter_map(Value::as_str).map(sanitize).collect()
    };
    let mut lines = Vec::new();
    let waiting = spool["waiting"].as_u64().unwrap_or(0);
    if waiting > 0 {
        let age = Duration::from_secs(spool["oldest_age_s"].as_u64().unwrap_or(0));
        let why =
            spool["why"].as_str().map_or_else(String::new, |why| format!(": {}", sanitize(why)));
        let verb = if waiting == 1 { "waits" } else { "wait" };
        let (events, age) = (counted(waiting, "event"), format_duration(age));
        lines.push(format!("{events} {verb} for the log, the oldest for {age}{why}"));
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

/// One observer: its name, what it does, what waits.
pub(super) fn describe_observer(observer: &Value, paint: Paint) -> String {
    let name = sanitize(observer["name"].as_str().unwrap_or("?"));
    let state = observer["state"].as_str().unwrap_or("not running");
    let state = match state {
        "working" => paint.good(state),
        // With the daemon, which is told for itself.
        "not running" => paint.notable(state),
        _ => paint.bad(state),
    };
    let number = |key: &str| observer[key].as_u64();
    let pid = number("pid").map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let lag = match number("lag_events") {
        None => String::new(),
        Some(0) => ", nothing waits".to_owned(),
        Some(lag) => format!(", {}", waiting(lag, "row", number("lag_s"))),
    };
    let dead = match number("dead_letters") {
        None | Some(0) => String::new(),
        Some(dead) => {
            paint.bad(&format!(", {} (`hookbus dead list`)", counted(dead, "dead letter")))
        }
    };
    let refused = match number("refused") {
        None | Some(0) => String::new(),
        Some(refused) => paint.bad(&format!(
            ", {} from NATS refused (`hookbus dead list`)",
            counted(refused, "message")
        )),
    };
    let restarts = match observer["process"]["deaths"].as_u64() {
        None | Some(0) => String::new(),
        Some(deaths) => paint.bad(&format!(", restarted {}", counted(deaths, "time"))),
    };
    let error = observer["error"]
        .as_str()
        .map_or_else(String::new, |error| format!(": {}", shorten(error, 100)));
    format!("{name}  {state}{pid}{lag}{dead}{refused}{restarts}{error}")
}

/// `1 row waits, for 3.0 s`
pub(super) fn waiting(number: u64, what: &str, age_s: Option<u64>) -> String {
    let verb = if number == 1 { "waits" } else { "wait" };
    let age = age_s.map(|age| format_duration(Duration::from_secs(age)));
    let age = age.map_or_else(String::new, |age| format!(", the oldest for {age}"));
    format!("{} {verb}{age}", counted(number, what))
}

/// What the rules of `retain:` removed last, and what is wrong with them; none if there are none.
fn describe_retention(retention: &Value, paint: Paint) -> Option<String> {
    if let Some(error) = retention["error"].as_str() {
        return Some(paint.bad(&sanitize(error)));
    }
    let rules = retention["rules"].as_u64().filter(|rules| *rules > 0)?;
    let rules = counted(rules, "rule");
    let last = &retention["last"];
    let Some(at) = told_time(&last["at"]) else { return Some(format!("{rules}, never run")) };
    Some(match last["error"].as_str() {
        Some(error) => format!("{rules}, failed {at}: {}", paint.bad(&sanitize(error))),
        None => {
            let removed = |key: &str, what: &str| counted(last[key].as_u64().unwrap_or(0), what);
            let (payloads, rows) = (removed("payloads", "payload"), removed("rows", "row"));
            format!("{rules}, last run {at}: {payloads} and {rows} removed")
        }
    })
}

fn describe_relay(relay: &Value, paint: Paint) -> Option<String> {
    let phase = relay["phase"].as_str()?;
    let phase = if phase == "publishing" { paint.good(phase) } else { paint.bad(phase) };
    let lag = match relay["lag_events"].as_u64() {
        Some(0) | None => "nothing waits".to_owned(),
        Some(lag) => waiting(lag, "event", Some(relay["lag_s"].as_u64().unwrap_or(0))),
    };
    let error =
        relay["error"].as_str().map_or_else(String::new, |error| format!(": {}", sanitize(error)));
    let foreign = match relay["foreign"].as_u64() {
        None | Some(0) => String::new(),
        Some(foreign) => {
            let verb =
                if foreign == 1 { "is not its own and was" } else { "are not its own and were" };
            paint.bad(&format!(
                ", {} on the subjects of this bus {verb} stepped over; find out who else may publish there",
                counted(foreign, "message")
            ))
        }
    };
    let published = relay["published"].as_u64().map_or_else(
        || "nothing published yet".to_owned(),
        |row| format!("published up to row {}", number(row)),
    );
    Some(format!("{phase}, {published}, {lag}{foreign}{error}"))
}
