//! Everything that `hookbus top` shows at one moment, as JSON and as plain text.

use std::time::Duration;

use hookbus::event::{Seq, Time};
use hookbus::view::{HeldBack, HookFigures};
use serde_json::{Value, json};

use super::live_session::{LiveSession, SessionState};
use super::log_tail::{LogFigures, WINDOW};
use super::words::{Problem, cells_of_hook, cells_of_session, describe_held, state_lines};
use crate::output::{Paint, fit, number, pad};
use crate::{shapes, status};

/// How many lines of each list the plain text has.
const MOST_LINES: usize = 20;

/// One moment.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) log: LogFigures,
    /// The daemon, the relay and the observers, as `hookbus status` finds them.
    pub(super) state: Value,
}

impl Snapshot {
    /// How many sessions are live.
    pub(super) fn live_sessions(&self) -> usize {
        let now = self.log.at;
        self.log.sessions.iter().filter(|live| live.state(now) == SessionState::Live).count()
    }

    pub(super) fn to_json(&self) -> Value {
        let LogFigures { at, head, error, rates, sessions, held, hooks } = &self.log;
        json!({
            "shape": shapes::TOP,
            "time": at.to_string(),
            "window_s": WINDOW.as_secs(),
            "log": {"rows": head.map_or(0, Seq::as_i64), "error": error},
            "events": {
                "last_second": rates.last_second(),
                "last_minute": rates.last_minute(),
                "per_second": (rates.per_second() * 100.0).round() / 100.0,
            },
            "live_sessions": self.live_sessions(),
            "sessions": sessions.iter().map(|live| live.to_json(*at)).collect::<Vec<_>>(),
            "held": held.iter().map(HeldBack::to_json).collect::<Vec<_>>(),
            "hooks": hooks.iter().map(HookFigures::to_json).collect::<Vec<_>>(),
            "status": status::with_health(self.state.clone()),
        })
    }

    /// The same as text.
    pub(super) fn lines(&self, columns: usize, paint: Paint) -> Vec<String> {
        let now = self.log.at;
        let mut lines: Vec<String> = state_lines(self, columns)
            .into_iter()
            .map(|(problem, line)| match problem {
                Problem::Yes => paint.bad(&fit(&line, columns)),
                Problem::No => fit(&line, columns),
            })
            .collect();
        let mut list = |title: &str, rows: Vec<String>| {
            lines.push(String::new());
            lines.push(paint.bold(title));
            if rows.is_empty() {
                lines.push("  none".to_owned());
            }
            let more = rows.len().saturating_sub(MOST_LINES);
            lines.extend(rows.into_iter().take(MOST_LINES).map(|row| fit(&row, columns)));
            if more > 0 {
                let more = number(u64::try_from(more).unwrap_or(u64::MAX));
                lines.push(paint.dim(&format!("  … {more} more")));
            }
        };
        let sessions = &self.log.sessions;
        list("sessions", sessions.iter().map(|live| session_line(live, now)).collect());
        let held = self.log.held.iter().map(|held| {
            let [time, outcome, hook, about] = describe_held(held);
            format!("  {time}  {}  {}  {about}", pad(&outcome, 7), pad(&hook, 20))
        });
        list("blocked and asked", held.collect());
        let hooks = self.log.hooks.iter().map(|hook| {
            let [name, calls, blocked, failed, p50, p95] = cells_of_hook(hook);
            format!(
                "  {}  {calls} calls, {blocked} blocked, {failed} failed, p50 {p50}, p95 {p95}",
                pad(&fit(&name, 30), 30)
            )
        });
        let minutes = WINDOW.as_secs() / Duration::from_mins(1).as_secs();
        list(&format!("hooks, last {minutes} min"), hooks.collect());
        lines
    }
}

fn session_line(live: &LiveSession, now: Time) -> String {
    let [agent, project, prompt, age, last, events, blocked, failed] = cells_of_session(live, now);
    format!(
        "  {}  {}  {}  {age} old, last {last}, {events} events, {blocked} blocked, {failed} failed",
        pad(&agent, 7),
        pad(&fit(&project, 14), 14),
        pad(&fit(&prompt, 40), 40),
    )
}
