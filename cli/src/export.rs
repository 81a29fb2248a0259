//! `hookbus export`: rows of the log as JSON lines, each an envelope with its hash.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use hookbus::envelope;
use hookbus::event::Kind;
use hookbus::log::{LogReader, Query, Row};
use serde_json::json;

use crate::args::{open_log, parse_agent, parse_time};
use crate::cli::Exit;
use crate::output::{self, Progress, StdoutClosed, count};
use crate::settings::{Format, Settings};

/// Further back nobody looks for the hooks of a project.
const MOST_HOOKS: usize = 1000;

/// How many rows are read in one go.
const PAGE: usize = 500;

/// Rows of the log as JSON lines (CloudEvents with the hash of each row), oldest first.
///
/// What hooks were in force is always among them, so that `hookbus replay --as-recorded` works on
/// the result. `hookbus import` reads it; `hookbus replay --log FILE` does, too. A row that is damaged is
/// left out and told, and the exit code is 1.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only these sessions, as much of each id as makes it plain; `last` is the latest one.
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
    /// Only this agent: hermes, gemini, claude, codex.
    #[arg(long)]
    agent: Option<String>,
    /// Not before: `2h` ago, `today`, `2026-11-16`, `2026-11-16 14:05`, RFC 3339.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Where to write (default: stdout).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let sessions = arguments
        .sessions
        .iter()
        .map(|start| wanted_session(&log, start))
        .collect::<Result<Vec<String>>>()?;
    let query = Query {
        since: arguments.since.as_deref().map(parse_time).transpose()?,
        until: arguments.until.as_deref().map(parse_time).transpose()?,
        ..Query::default()
    };
    let agent = arguments.agent.as_deref().map(parse_agent).transpose()?;
    let fits = |row: &Row| {
        let of_session = sessions.is_empty() || sessions.contains(&row.session);
        row.kind == Kind::HooksLoaded.as_str()
            || (of_session && agent.as_ref().is_none_or(|agent| *agent == row.agent))
    };
    let (written, damaged) = match &arguments.output {
        None => write(&log, &query, fits, &mut io::stdout().lock())?,
        Some(path) => {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            write(&log, &query, fits, &mut BufWriter::new(file))?
        }
    };
    if let Some(path) = &arguments.output {
        output::line(match format {
            Format::Json => json!({"rows": written, "damaged": damaged, "file": path}).to_string(),
            Format::Text => format!("{} written to {}", count(written, "row"), path.display()),
        })?;
    }
    Ok(if damaged == 0 { Exit::Success } else { Exit::Failure })
}

/// The whole id of a session that is meant.
pub(crate) fn wanted_session(log: &LogReader, start: &str) -> Result<String> {
    match start {
        "last" => Ok(log.sessions()?.pop().map_or_else(String::new, |last| last.session)),
        start => Ok(log.find_session(start)?),
    }
}

fn write(
    log: &LogReader,
    query: &Query,
    fits: impl Fn(&Row) -> bool,
    out: &mut impl Write,
) -> Result<(usize, usize)> {
    let bus = log.bus()?;
    let whole = log.head()?.map_or(0, |(seq, _)| seq.as_i64().unsigned_abs());
    let mut progress = Progress::new(whole, "rows");
    let mut written = 0;
    let before = hooks_before(log, query)?;
    let mut put = |row: &Row| -> Result<()> {
        out.write_all(&envelope::line(bus, row)).map_err(|error| {
            if error.kind() == io::ErrorKind::BrokenPipe {
                StdoutClosed.into()
            } else {
                anyhow::Error::from(error).context("cannot write")
            }
        })?;
        written += 1;
        Ok(())
    };
    for row in &before {
        put(row)?;
    }
    let (mut last, mut damaged) = (None, 0);
    loop {
        let page = log.after_damage(query, last, PAGE)?;
        if page.is_empty() {
            break;
        }
        for row in page {
            match row {
                Ok(row) => {
                    last = Some(row.seq);
                    if fits(&row) {
                        put(&row)?;
                    }
                }
                Err(row) => {
                    last = Some(row.seq);
                    damaged += 1;
                    output::to_stderr(output::sanitize(&format!("{row}: left out")));
                }
            }
        }
        progress.update(last.map_or(0, |seq| seq.as_i64().unsigned_abs()));
    }
    out.flush().context("cannot write")?;
    Ok((written, damaged))
}

/// The hooks in force before the time range are part of it: the last of each bus, and of each project there.
fn hooks_before(log: &LogReader, query: &Query) -> Result<Vec<Row>> {
    let Some(since) = query.since else { return Ok(Vec::new()) };
    let mut before = Vec::new();
    for (bus, _) in log.buses()? {
        let of_bus = Query {
            kind: Some(Kind::HooksLoaded.as_str().to_owned()),
            until: Some(since),
            bus: log.is_archive().then_some(bus),
            ..Query::default()
        };
        let mut seen = HashSet::new();
        let file = |row: &Row| {
            let payload = row.payload_json();
            (payload["project"] == true).then(|| payload["path"].to_string())
        };
        let loaded = log.last(&of_bus, MOST_HOOKS)?;
        let mut last: Vec<Row> =
            loaded.into_iter().rev().filter(|row| seen.insert(file(row))).collect();
        last.reverse();
        before.extend(last);
    }
    Ok(before)
}
