//! What `hookbus top` says about a session, a hook, the daemon and what waits, in a few characters each. Everything that an
//! agent wrote is made safe for a terminal here.

use std::time::Duration;

use hookbus::event::{Outcome, Time};
use hookbus::view::{HeldBack, HookFigures};
use serde_json::Value;

use super::live_session::{LiveSession, SessionState};
use super::snapshot::Snapshot;
use crate::args::short_session;
use crate::output::{
    format_duration, local_time, number, sanitize, shorten, shorten_middle, width,
};
use crate::status::describe_spool;

/// Whether a line tells of something that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    Yes,
    No,
}

/// A span in at most four characters: `5s`, `12m`, `3h`, `9d`.
pub(super) fn short_span(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// A latency in few characters: `30µs`, `1.3ms`, `12ms`, `1.2s`.
pub(super) fn latency(span: Option<Duration>) -> String {
    let Some(span) = span else { return "-".to_owned() };
    let micros = span.as_micros();
    match micros {
        0..1000 => format!("{micros}µs"),
        1000..10_000 => format!("{}.{}ms", micros / 1000, micros / 100 % 10),
        10_000..1_000_000 => format!("{}ms", micros / 1000),
        _ => format!("{:.1}s", span.as_secs_f64()),
    }
}

fn count(count: usize, is_at_least: bool) -> String {
    let text = number(u64::try_from(count).unwrap_or(u64::MAX));
    if is_at_least { format!("{text}+") } else { text }
}

/// Agent, project, prompt or id, age, last event, events, blocked, failed.
pub(super) fn cells_of_session(live: &LiveSession, now: Time) -> [String; 8] {
    let summary = &live.summary;
    let prompt = summary.prompt.as_deref().map(|prompt| shorten(prompt, 200));
    let id = || {
        let id = sanitize(&short_session(&summary.session));
        if id.is_empty() { "(no session)".to_owned() } else { id }
    };
    let project = summary.project_name().map_or_else(|| "-".to_owned(), |name| shorten(&name, 40));
    let ago = short_span(now.since(summary.last));
    let last = match live.state(now) {
        SessionState::Ended => format!("{ago} end"),
        SessionState::Live | SessionState::Idle => ago,
    };
    let end = if live.state(now) == SessionState::Live { now } else { summary.last };
    let age = end.since(summary.first);
    [
        sanitize(&summary.agent),
        project,
        prompt.filter(|prompt| !prompt.is_empty()).unwrap_or_else(id),
        short_span(age),
        last,
        count(summary.rows.events, summary.rows.has_more),
        count(summary.blocked, summary.is_at_least),
        count(summary.failed, summary.is_at_least),
    ]
}

/// Time, what happened, hook, what it is about and why.
pub(super) fn describe_held(held: &HeldBack) -> [String; 4] {
    let outcome = match held.outcome {
        Outcome::Ask => "asked",
        Outcome::Stop => "stopped",
        Outcome::Block | Outcome::Allow | Outcome::Context | Outcome::Rewrite | Outcome::None => {
            "blocked"
        }
    };
    let hook = held.hook.as_deref().map_or_else(|| "-".to_owned(), |hook| shorten_middle(hook, 40));
    let tool = held.tool.as_deref().unwrap_or_default();
    let about = held.about.as_deref().unwrap_or_default();
    let reason = held.reason.as_deref().map_or_else(String::new, |why| format!(" — {why}"));
    [
        local_time(held.at).format("%H:%M:%S").to_string(),
        outcome.to_owned(),
        hook,
        shorten(&format!("{tool} {about}{reason}"), 500),
    ]
}

/// Name, calls, blocked or asked, failed, p50, p95.
pub(super) fn cells_of_hook(hook: &HookFigures) -> [String; 6] {
    let shadow = if hook.shadow { " (shadow)" } else { "" };
    [
        shorten_middle(&format!("{}{shadow}", hook.hook), 60),
        count(hook.calls, false),
        count(hook.blocked + hook.asked, false),
        count(hook.failed + hook.unapproved, false),
        latency(hook.p50),
        latency(hook.p95),
    ]
}

/// The first lines: the bus and its daemon, the events, and what is wrong or waits. What is well shares lines of so many
/// columns.
pub(super) fn state_lines(snapshot: &Snapshot, columns: usize) -> Vec<(Problem, String)> {
    let state = &snapshot.state;
    let (problem, daemon) = daemon(state);
    let bus = state["bus"]["name"].as_str().map(sanitize).unwrap_or_default();
    let mut lines = vec![(problem, format!("{bus}  daemon {daemon}").trim_start().to_owned())];
    lines.push((Problem::No, events_line(snapshot)));
    if let Some(error) = snapshot.log.error.as_deref() {
        lines.push((Problem::Yes, format!("the log: {}", shorten(error, 300))));
    }
    lines.extend(describe_spool(&state["spool"]).into_iter().map(|line| (Problem::Yes, line)));
    let readers = relay(&state["relay"]).into_iter().chain(observers(state));
    let (bad, good): (Vec<_>, Vec<_>) = readers.partition(|(problem, _)| *problem == Problem::Yes);
    lines.extend(bad);
    let mut packed: Vec<String> = Vec::new();
    for (_, text) in good {
        match packed.last_mut() {
            Some(line) if width(line) + 3 + width(&text) <= columns => {
                line.push_str(" · ");
                line.push_str(&text);
            }
            Some(_) | None => packed.push(text),
        }
    }
    lines.extend(packed.into_iter().map(|line| (Problem::No, line)));
    lines
}

/// Whether a daemon runs.
pub(super) fn daemon(state: &Value) -> (Problem, String) {
    let daemon = &state["daemon"];
    if state["hung"].is_object() {
        (Problem::Yes, "does not answer (`hookbus stop` ends it)".to_owned())
    } else if daemon.is_object() {
        let up = short_span(Duration::from_secs(daemon["uptime_s"].as_u64().unwrap_or(0)));
        (Problem::No, format!("running, pid {}, up {up}, {} calls", daemon["pid"], daemon["calls"]))
    } else if state["daemon_off"] == true {
        (Problem::No, "off".to_owned())
    } else if state.is_null() {
        (Problem::No, "…".to_owned())
    } else {
        (Problem::No, "not running".to_owned())
    }
}

fn events_line(snapshot: &Snapshot) -> String {
    let rates = &snapshot.log.rates;
    let rows = snapshot.log.head.map_or(0, |seq| seq.as_i64().unsigned_abs());
    format!(
        "{} events/s, {:.1}/s in the last minute, {} live, {} rows",
        rates.last_second(),
        rates.per_second(),
        crate::output::count(snapshot.live_sessions(), "session"),
        number(rows),
    )
}

/// What waits for a reader of the log.
fn lag(reader: &Value) -> (u64, String) {
    match (reader["lag_events"].as_u64(), reader["lag_s"].as_u64()) {
        (None | Some(0), _) => (0, "no lag".to_owned()),
        (Some(rows), None) => (0, format!("{} rows behind", number(rows))),
        (Some(rows), Some(age)) => {
            let age_text = format_duration(Duration::from_secs(age));
            (age, format!("{} rows behind, {age_text}", number(rows)))
        }
    }
}

/// Rows that wait for longer than this are not on their way.
const LONGEST_LAG_S: u64 = 60;

/// The relay; none if no NATS is configured.
pub(super) fn relay(relay: &Value) -> Option<(Problem, String)> {
    let phase = relay["phase"].as_str()?;
    let (age, lag) = lag(relay);
    let error = relay["error"].as_str().map(|error| format!(": {}", shorten(error, 100)));
    let is_fine = phase == "publishing" && age <= LONGEST_LAG_S && error.is_none();
    let problem = if is_fine { Problem::No } else { Problem::Yes };
    Some((problem, format!("relay {phase}, {lag}{}", error.unwrap_or_default())))
}

/// Each observer.
pub(super) fn observers(state: &Value) -> Vec<(Problem, String)> {
    let observers = state["observers"].as_array().into_iter().flatten();
    observers.map(observer).collect()
}

fn observer(observer: &Value) -> (Problem, String) {
    let name = shorten(observer["name"].as_str().unwrap_or("?"), 24);
    let standing = observer["state"].as_str().unwrap_or("not running");
    let (age, lag) = lag(observer);
    let dead = observer["dead_letters"].as_u64().filter(|dead| *dead > 0);
    let error = observer["error"].as_str().map(|error| format!(": {}", shorten(error, 100)));
    let is_fine = ["working", "standing by"].contains(&standing)
        && age <= LONGEST_LAG_S
        && dead.is_none()
        && error.is_none();
    let dead = dead.map_or_else(String::new, |dead| format!(", {dead} dead letters"));
    let problem = if is_fine { Problem::No } else { Problem::Yes };
    let standing = sanitize(standing);
    (problem, format!("observer {name} {standing}, {lag}{dead}{}", error.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spans_are_short() {
        let told = [0, 59, 60, 3599, 3600, 86_399, 86_400 * 9]
            .map(|seconds| short_span(Duration::from_secs(seconds)));
        assert_eq!(told, ["0s", "59s", "1m", "59m", "1h", "23h", "9d"]);
        let told = [0, 300, 9_960, 12_345, 999_400, 1_234_000]
            .map(|micros| latency(Some(Duration::from_micros(micros))));
        assert_eq!(told, ["0µs", "300µs", "9.9ms", "12ms", "999ms", "1.2s"]);
        assert_eq!(latency(None), "-");
    }

    #[test]
    fn what_waits_too_long_is_a_problem() {
        let relayed = |value: Value| relay(&value).expect("a relay");
        let fine = json!({"phase": "publishing", "lag_events": 3, "lag_s": 1});
        assert_eq!(
            relayed(fine),
            (Problem::No, "relay publishing, 3 rows behind, 1.0 s".to_owned())
        );
        let late = json!({"phase": "publishing", "lag_events": 3, "lag_s": 61});
        assert_eq!(relayed(late).0, Problem::Yes);
        let state = json!({"observers": [
            {"name": "audit\u{1b}[2J", "state": "working", "lag_events": 0},
            {"name": "gone"},
        ]});
        let told = observers(&state);
        assert_eq!(told[0], (Problem::No, "observer audit\u{fffd}[2J working, no lag".to_owned()));
        assert_eq!(told[1].0, Problem::Yes);
        assert_eq!(relay(&Value::Null), None);
    }
}
