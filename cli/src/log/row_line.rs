//! One row of the log as one line, fitted to the window.

use hookbus::event::{Kind, Outcome, RecordedDecision, RecordedVerdict, Seq};
use hookbus::log::Row;
use hookbus::view::{EventView, REMOVED, ToolOutcome, ToolStatus};
use serde_json::Value;

use crate::args::short_session;
use crate::output::{
    Paint, count, fit, local_time, pad, pad_left, sanitize, shorten, shorten_middle, size, width,
};
use crate::settings::Window;

/// A window that is narrower has no dates.
const WIDE: usize = 100;

/// The columns of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    paint: Paint,
    time: &'static str,
    name: usize,
    /// How many columns are left for what the row is about.
    rest: usize,
}

impl Columns {
    pub(super) fn new(window: Window, paint: Paint) -> Self {
        let (time, shown, name) =
            if window.columns < WIDE { ("%H:%M:%S", 8, 16) } else { ("%m-%d %H:%M:%S", 14, 22) };
        let left = 7 + shown + 1 + 8 + 13 + name + 1;
        Self { paint, time, name, rest: window.columns.saturating_sub(left).max(10) }
    }

    /// The line of a row; `bus` is what is said behind it about where it comes from.
    pub(super) fn line(mut self, row: &Row, bus: &str) -> String {
        let digits = row.seq.to_string().len();
        self.rest = self.rest.saturating_sub(digits.saturating_sub(6) + width(bus));
        format!(
            "{} {} {} {} {} {}{}",
            pad_left(&row.seq.to_string(), 6),
            self.paint.dim(&local_time(row.at).format(self.time).to_string()),
            pad(&fit(&sanitize(&row.agent), 7), 7),
            pad(&fit(&sanitize(&short_session(&row.session)), 12), 12),
            pad(&fit(&shorten_middle(&row.name, 60), self.name), self.name),
            self.what(row),
            self.paint.dim(bus),
        )
        .trim_end()
        .to_owned()
    }

    fn what(self, row: &Row) -> String {
        let kind = Kind::parse(&row.kind);
        if kind == Some(Kind::Decision) {
            let cause = row.cause.map_or_else(String::new, |cause| format!(" on {cause}"));
            if row.removed.is_some() {
                return format!("{REMOVED}{cause}");
            }
            let (word, said) = describe_decision(row.payload_json(), row.cause, self.paint);
            return format!("{word}  {}", fit(&said, self.rest.saturating_sub(width(&word) + 2)));
        }
        if kind.is_some_and(Kind::is_of_bus) {
            let text = describe_bus_row(&row.kind, &row.payload_json());
            return fit(&shorten(&text, usize::MAX), self.rest);
        }
        let event = EventView::new(row);
        let is_result = matches!(event.kind, Kind::ToolAfter | Kind::ToolFailed);
        let end = if is_result && !event.is_removed() {
            self.end(&event.outcome())
        } else if event.has_failed() {
            self.paint.bad("failed")
        } else {
            String::new()
        };
        let tool = row.tool.as_deref().map_or_else(String::new, |tool| format!("{tool}  "));
        let text = shorten(&format!("{tool}{}", event.subject()), usize::MAX);
        if end.is_empty() {
            return fit(&text, self.rest);
        }
        format!("{end}  {}", fit(&text, self.rest.saturating_sub(width(&end) + 2)))
    }

    fn end(self, outcome: &ToolOutcome) -> String {
        match (outcome.status, outcome.exit_code) {
            (ToolStatus::Ok, _) => self.paint.good("ok"),
            (ToolStatus::Failed, Some(code)) => self.paint.bad(&format!("failed, exit {code}")),
            (ToolStatus::Failed, None) => self.paint.bad("failed"),
            (ToolStatus::Denied, _) => self.paint.bad("denied"),
            (ToolStatus::Unknown, _) => String::new(),
        }
    }
}

/// What happened to the bus itself.
fn describe_bus_row(kind: &str, payload: &Value) -> String {
    let text = |key: &str| payload[key].as_str().unwrap_or_default();
    match Kind::parse(kind) {
        Some(Kind::HooksApproved | Kind::HooksRevoked) => {
            let what = payload["hook"].as_str().unwrap_or(text("command"));
            format!("{what} on {}, in {}", text("event"), text("file"))
        }
        Some(Kind::SettingsChanged) => {
            let keys = payload["changes"].as_array().into_iter().flatten();
            let keys: Vec<&str> = keys.filter_map(|change| change["key"].as_str()).collect();
            format!("{} in {}", keys.join(", "), text("file"))
        }
        Some(Kind::DaemonStarted) => {
            let pid = &payload["pid"];
            format!("{} in the {}, process {pid} on {}", text("version"), text("how"), text("host"))
        }
        Some(Kind::SessionHeld | Kind::SessionReleased) => {
            let note =
                payload["note"].as_str().map_or_else(String::new, |note| format!(": {note}"));
            format!("{} by {}{note}", text("session"), text("by"))
        }
        Some(Kind::LogCheckpoint) => {
            let key: String = text("key").chars().take(12).collect();
            format!("row {}, signed with the key {key}…", payload["seq"])
        }
        Some(Kind::LogRedacted) => {
            let some = |number: u64, what: &str| {
                count(usize::try_from(number).unwrap_or(usize::MAX), what)
            };
            let what = match payload["rows"]["count"].as_u64() {
                Some(rows) => some(rows, "row"),
                None => some(payload["parts"].as_u64().unwrap_or(0), "part") + " of payloads",
            };
            format!("{what}, by {}", text("by"))
        }
        Some(Kind::LogPruned) => {
            let number = |key: &str| payload[key]["count"].as_u64().unwrap_or(0);
            let parts = payload["parts"].as_u64().unwrap_or(0);
            let some = |number: u64, what: &str| {
                count(usize::try_from(number).unwrap_or(usize::MAX), what)
            };
            let what = match (number("payloads"), number("rows")) {
                (0, 0) => some(parts, "part") + " of payloads",
                (payloads, 0) => some(payloads, "payload"),
                (_, rows) => some(rows, "row"),
            };
            let bytes = payload["bytes"].as_u64().unwrap_or(0);
            format!("{what}, {}, by {}", size(bytes), text("by"))
        }
        Some(_) | None => text("path").to_owned(),
    }
}

/// What was decided: the word, and what each hook said.
fn describe_decision(payload: Value, cause: Option<Seq>, paint: Paint) -> (String, String) {
    let cause = cause.map_or_else(String::new, |cause| format!(" on {cause}"));
    // A later version may write outcomes that this one does not know.
    let Ok(decision) = RecordedDecision::from_json(payload) else {
        return (format!("?{cause}"), String::new());
    };
    let word = decision.outcome.as_str();
    let outcome = match decision.outcome {
        Outcome::Block | Outcome::Stop => paint.bad(word),
        Outcome::None | Outcome::Allow => paint.good(word),
        Outcome::Context | Outcome::Rewrite | Outcome::Ask => paint.notable(word),
    };
    let describe = |verdict: RecordedVerdict| {
        let RecordedVerdict { hook, verdict, reason, failure, shadow, .. } = verdict;
        let shadow = if shadow { " (shadow)" } else { "" };
        let reason = failure.or(reason);
        let reason =
            reason.map_or_else(String::new, |reason| format!(" ({})", shorten(&reason, 60)));
        sanitize(&format!("{hook}{shadow}: {verdict}{reason}"))
    };
    let mut verdicts: Vec<String> = decision.verdicts.into_iter().map(describe).collect();
    verdicts
        .extend(decision.notice.map(|notice| format!("told the user: {}", sanitize(&notice.text))));
    (format!("{outcome}{cause}"), verdicts.join(", "))
}
