//! `hookbus log`: prints the log row by row, filtered or followed.

use std::cell::RefCell;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::dialect::recorded_choice;
use hookbus::event::{Kind, Outcome, RecordedDecision, RecordedVerdict, Seq, gist};
use hookbus::log::{LogPath, LogReader, Query, Row};
use serde_json::Value;

use crate::args::{find_bus, open_log, parse_agent, parse_kind, parse_time};
use crate::bus_names::BusNames;
use crate::cli::Exit;
use crate::output::{self, Paint, local_time, sanitize, shorten};
use crate::settings::{Format, Settings};

/// How often `--follow` reads the log.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What is shown instead of a payload that was removed on purpose.
const REMOVED: &str = "(payload removed)";

const EXAMPLES: &str = "\
Examples:
  hookbus log -n 20                    Print the last 20 rows
  hookbus log -f --kind decision       Follow the decisions
  hookbus log --tool shell --since 2h  Print the shell calls of two hours
  hookbus log --session 7f6c --json    Print a session as JSON lines
  hookbus log --seq 42 --raw           Print a payload as it arrived";

/// The arguments of `hookbus log`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only this session; a unique prefix of its id is enough
    #[arg(long, value_name = "ID", help_heading = "Filters")]
    session: Option<String>,
    /// Only this agent: hermes, gemini, claude or codex
    #[arg(long, value_name = "AGENT", help_heading = "Filters")]
    agent: Option<String>,
    /// Only this kind of event, such as tool.before or `tool.*`
    #[arg(long, value_name = "KIND", help_heading = "Filters")]
    kind: Option<String>,
    /// Only events of this name, such as `pre_tool_call` or `command:*`
    #[arg(long, value_name = "NAME", help_heading = "Filters")]
    name: Option<String>,
    /// Only this tool or tool class, such as terminal or shell
    #[arg(long, value_name = "TOOL", help_heading = "Filters")]
    tool: Option<String>,
    /// Only from this time on: 2h (ago), today, 2026-11-16, RFC 3339
    ///
    /// Also `30m`, `7d`, `yesterday`, and a local time as in `2026-11-16 14:05`.
    #[arg(long, value_name = "TIME", help_heading = "Filters")]
    since: Option<String>,
    /// Only before this time, written as for --since
    #[arg(long, value_name = "TIME", help_heading = "Filters")]
    until: Option<String>,
    /// Only the row with this number
    #[arg(long, value_name = "SEQ", help_heading = "Filters")]
    seq: Option<i64>,
    /// Only the last N matching rows
    #[arg(short = 'n', long, value_name = "N", help_heading = "Filters")]
    last: Option<usize>,
    /// Only this bus of an archive: its name, or a unique prefix of its id
    #[arg(long, value_name = "BUS", help_heading = "Filters")]
    bus: Option<String>,
    /// Keep running and print new rows as they are recorded
    #[arg(short, long)]
    follow: bool,
    /// With --seq: print the payload byte for byte as it arrived
    #[arg(long, requires = "seq")]
    raw: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = if arguments.follow { wait_for_log(settings)? } else { open_log(settings)? };
    let query = query(arguments, &log)?;
    if arguments.raw {
        let row = only_row(&log, &query)?;
        if row.removed.is_some() {
            bail!(
                "the payload of row {} was removed on purpose; `hookbus log --kind log.pruned` tells when",
                row.seq
            );
        }
        output::payload(&row.payload)?;
        return Ok(Exit::Success);
    }
    if arguments.seq.is_some() {
        only_row(&log, &query)?;
    }
    let paint = Paint(settings.colour);
    let names = if log.is_archive() { Some(RefCell::new(BusNames::read(&log)?)) } else { None };
    let bus = |row: &Row| -> Result<String> {
        let (Some(names), Some(origin)) = (&names, &row.origin) else { return Ok(String::new()) };
        // `--follow` meets buses that were not there at the start.
        if !names.borrow().knows(origin.bus) {
            names.replace(BusNames::read(&log)?);
        }
        Ok(format!("  on {}", names.borrow().describe(origin.bus)))
    };
    let print = |row: &Row| -> Result<()> {
        output::line(match format {
            Format::Json => row.to_json().to_string(),
            Format::Text => format!("{}{}", describe(row, paint), paint.dim(&bus(row)?)),
        })?;
        Ok(())
    };
    let mut last = None;
    if let Some(count) = arguments.last {
        for row in log.last(&query, count)? {
            print(&row)?;
            last = Some(row.seq);
        }
        if last.is_none() {
            last = log.head()?.map(|(seq, _)| seq);
        }
    } else {
        last = log.each(&query, None, |row| print(&row))?;
    }
    if !arguments.follow {
        return Ok(Exit::Success);
    }
    loop {
        sleep(POLL_INTERVAL);
        last = log.each(&query, last, |row| print(&row))?;
    }
}

/// `--follow` may start before the first event is recorded.
fn wait_for_log(settings: &Settings) -> Result<LogReader> {
    let path = LogPath::in_home(&settings.home);
    while std::fs::metadata(path.file()).map_or(0, |file| file.len()) == 0 {
        sleep(POLL_INTERVAL);
    }
    open_log(settings)
}

fn only_row(log: &LogReader, query: &Query) -> Result<Row> {
    let Some(row) = log.last(query, 1)?.pop() else {
        if let Some(seq) = query.seq.filter(|seq| log.is_removed(*seq).unwrap_or(false)) {
            bail!("row {seq} was removed on purpose; `hookbus log --kind log.pruned` tells when");
        }
        bail!("no row matches; the last row is {}", log.head()?.map_or(0, |(seq, _)| seq.as_i64()));
    };
    Ok(row)
}

fn query(arguments: &Arguments, log: &LogReader) -> Result<Query> {
    Ok(Query {
        seq: arguments.seq.map(Seq::from_i64),
        session: arguments.session.as_deref().map(|prefix| log.find_session(prefix)).transpose()?,
        bus: arguments.bus.as_deref().map(|prefix| find_bus(log, prefix)).transpose()?,
        agent: arguments.agent.as_deref().map(parse_agent).transpose()?,
        kind: arguments.kind.as_deref().map(parse_kind).transpose()?,
        name: arguments.name.clone(),
        tool: arguments.tool.clone(),
        since: arguments.since.as_deref().map(parse_time).transpose()?,
        until: arguments.until.as_deref().map(parse_time).transpose()?,
    })
}

fn describe(row: &Row, paint: Paint) -> String {
    let payload = row.payload_json();
    let what = match row.kind.as_str() {
        "decision" if row.removed.is_some() => {
            let cause = row.cause.map_or_else(String::new, |cause| format!(" on {cause}"));
            format!("{REMOVED}{cause}")
        }
        "decision" => describe_decision(payload, row.cause, paint),
        kind if Kind::parse(kind).is_some_and(Kind::is_of_bus) => {
            shorten(&describe_bus_row(kind, &payload), 100)
        }
        _ => shorten(&summarize(row, &payload), 80),
    };
    format!(
        "{:>6}  {}  {:<7} {:<12} {:<26} {what}",
        row.seq,
        paint.dim(&local_time(row.at).format("%m-%d %H:%M:%S%.3f").to_string()),
        sanitize(&row.agent),
        shorten(&row.session, 12),
        shorten(&row.name, 40),
    )
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
        Some(Kind::LogPruned) => {
            let number = |key: &str| payload[key]["count"].as_u64().unwrap_or(0);
            let parts = payload["parts"].as_u64().unwrap_or(0);
            let what = match (number("payloads"), number("rows")) {
                (0, 0) => format!("{parts} parts of payloads"),
                (payloads, 0) => format!("{payloads} payloads"),
                (_, rows) => format!("{rows} rows"),
            };
            format!("{what}, {} bytes, by {}", payload["bytes"], text("by"))
        }
        Some(Kind::LogRedacted) => {
            let what = match payload["rows"]["count"].as_u64() {
                Some(rows) => format!("{rows} rows"),
                None => format!("{} parts of payloads", payload["parts"].as_u64().unwrap_or(0)),
            };
            format!("{what}, by {}", text("by"))
        }
        Some(_) | None => text("path").to_owned(),
    }
}

fn describe_decision(payload: Value, cause: Option<Seq>, paint: Paint) -> String {
    let cause = cause.map_or_else(String::new, |cause| format!(" on {cause}"));
    // A later version may write outcomes that this one does not know.
    let Ok(decision) = RecordedDecision::from_json(payload) else { return format!("?{cause}") };
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
        format!("{hook}{shadow}: {verdict}{reason}")
    };
    let mut verdicts: Vec<String> = decision.verdicts.into_iter().map(describe).collect();
    verdicts.extend(decision.notice.map(|notice| format!("told the user: {}", notice.text)));
    format!("{outcome}{cause}  {}", shorten(&verdicts.join(", "), 100))
}

/// What an event is about, in a few words: the command, the path, the prompt, the answer.
pub(crate) fn summarize(row: &Row, payload: &Value) -> String {
    let text = match row.removed {
        Some(_) => REMOVED.to_owned(),
        None => payload.as_object().map(gist).unwrap_or_default(),
    };
    let text = match &row.tool {
        Some(tool) => format!("{tool}  {text}"),
        None => text,
    };
    match row.context.as_deref().and_then(recorded_choice).as_deref() {
        Some("without") => format!("(fields left out) {text}"),
        Some(choice) => format!("({choice} only) {text}"),
        None => text,
    }
}
