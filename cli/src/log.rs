//! `hookbus log`: the log as it is, row by row.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::decide::did_you_mean;
use hookbus::event::{Kind, Seq};
use hookbus::log::{LogPath, LogReader, Query, Row};
use serde_json::Value;

use crate::cli::Exit;
use crate::output::{self, Paint, sanitize, local_time, shorten};
use crate::args::{parse_agent, find_bus, parse_time, open_log};
use crate::settings::{Format, Settings};

/// How often `-f` looks for more.
const FOLLOW: Duration = Duration::from_millis(100);

/// `hookbus log`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only this session (as much of its id as makes it plain).
    #[arg(long)]
    session: Option<String>,
    /// Only this bus, in an archive (as much of its id as makes it plain).
    #[arg(long)]
    bus: Option<String>,
    /// Only this agent: hermes, gemini, claude, codex.
    #[arg(long)]
    agent: Option<String>,
    /// Only this kind, such as tool.before; `tool.*` is a family.
    #[arg(long)]
    kind: Option<String>,
    /// Only events of this name, such as `pre_tool_call`; `command:*` is a family.
    #[arg(long)]
    name: Option<String>,
    /// Only this tool or tool class, such as terminal or shell.
    #[arg(long)]
    tool: Option<String>,
    /// Not before: `2h` ago, `today`, `2026-11-16`, `2026-11-16 14:05`, RFC 3339.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this row.
    #[arg(long, value_name = "N")]
    seq: Option<i64>,
    /// Only the last N rows that fit.
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
    /// Go on: print new rows as they come.
    #[arg(short, long)]
    follow: bool,
    /// With --seq: the payload, byte for byte as it arrived.
    #[arg(long, requires = "seq")]
    raw: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = if arguments.follow { wait_for_log(settings)? } else { open_log(settings)? };
    let query = query(arguments, &log)?;
    if arguments.raw {
        output::bytes(&only_row(&log, &query)?.payload)?;
        return Ok(Exit::Success);
    }
    if arguments.seq.is_some() {
        only_row(&log, &query)?;
    }
    let paint = Paint(settings.colour);
    let print = |row: &Row| {
        output::line(match format {
            Format::Json => row.to_json().to_string(),
            Format::Text => describe(row, paint),
        })
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
        last = log.each(&query, None, |row| Ok::<_, anyhow::Error>(print(&row)?))?;
    }
    if !arguments.follow {
        return Ok(Exit::Success);
    }
    loop {
        sleep(FOLLOW);
        last = log.each(&query, last, |row| Ok::<_, anyhow::Error>(print(&row)?))?;
    }
}

/// Whoever follows means what is to come, and that may be the first event of all.
fn wait_for_log(settings: &Settings) -> Result<LogReader> {
    let path = LogPath::in_home(&settings.home);
    while std::fs::metadata(path.file()).map_or(0, |file| file.len()) == 0 {
        sleep(FOLLOW);
    }
    open_log(settings)
}

fn only_row(log: &LogReader, query: &Query) -> Result<Row> {
    let Some(row) = log.last(query, 1)?.pop() else {
        bail!(
            "there is no such row; the last one is {}",
            log.head()?.map_or(0, |(seq, _)| seq.as_i64())
        );
    };
    Ok(row)
}

/// A kind that does not exist would find nothing, and say nothing about why.
pub(crate) fn parse_kind(kind: &str) -> Result<String> {
    if !kind.contains('*') && Kind::parse(kind).is_none() {
        let near = did_you_mean(kind, Kind::ALL.iter().map(|kind| kind.as_str()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        bail!("there is no kind `{kind}`{hint}");
    }
    Ok(kind.to_owned())
}

fn query(arguments: &Arguments, log: &LogReader) -> Result<Query> {
    Ok(Query {
        seq: arguments.seq.map(Seq::from_i64),
        session: arguments.session.as_deref().map(|prefix| log.find_session(prefix)).transpose()?,
        bus: arguments.bus.as_deref().map(|start| find_bus(log, start)).transpose()?,
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
        "decision" => decision(&payload, row.cause, paint),
        "hooks.loaded" => shorten(payload["path"].as_str().unwrap_or_default(), 60),
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

fn decision(payload: &Value, cause: Option<Seq>, paint: Paint) -> String {
    let outcome = payload["outcome"].as_str().unwrap_or("?");
    let outcome = match outcome {
        "block" | "stop" => paint.bad(outcome),
        "none" | "allow" => paint.good(outcome),
        other => paint.notable(&sanitize(other)),
    };
    let verdicts: Vec<String> = payload["verdicts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|verdict| {
            let hook = verdict["hook"].as_str().unwrap_or("?");
            let said = verdict["verdict"].as_str().unwrap_or("?");
            let reason = verdict["failure"].as_str().or(verdict["reason"].as_str());
            let reason =
                reason.map_or_else(String::new, |reason| format!(" ({})", shorten(reason, 60)));
            format!("{hook}: {said}{reason}")
        })
        .collect();
    let cause = cause.map_or_else(String::new, |cause| format!(" on {cause}"));
    format!("{outcome}{cause}  {}", shorten(&verdicts.join(", "), 100))
}

/// The few words that say what an event is about.
pub(crate) fn summarize(row: &Row, payload: &Value) -> String {
    let extra = &payload["extra"];
    let input = &payload["tool_input"];
    let answers = [
        &extra["assistant_response"],
        &extra["response_text"],
        &extra["final_response"],
        &payload["prompt_response"],
        &payload["last_assistant_message"],
    ];
    let questions = [
        &input["command"],
        &input["file_path"],
        &input["path"],
        &input["url"],
        &input["query"],
        &input["prompt"],
        &input["goal"],
        &payload["prompt"],
        &extra["user_message"],
        &extra["command"],
        &payload["message"],
        &extra["child_goal"],
        &extra["child_summary"],
        &payload["source"],
        &payload["reason"],
        &extra["reason"],
        &payload["trigger"],
    ];
    // Where an agent repeats its prompt beside its answer, the answer is the news.
    let text = answers.iter().chain(&questions).find_map(|value| value.as_str());
    let text = text.map_or_else(
        || if input.is_object() { input.to_string() } else { String::new() },
        str::to_owned,
    );
    match &row.tool {
        Some(tool) => format!("{tool}  {text}"),
        None => text,
    }
}
