//! `hookbus export`: writes rows of the log as JSON lines, each a CloudEvents envelope with the row's hash; or a view as
//! Parquet or CSV.

mod parquet;
mod view;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hookbus::envelope;
use hookbus::event::Kind;
use hookbus::log::{LogReader, Query, Row};
use serde_json::json;

use self::view::{Selection, ViewFormat};
use crate::args::{find_session, open_log, parse_agent, parse_time};
use crate::cli::Exit;
use crate::output::{self, Progress, StdoutClosed, count};
use crate::settings::{Format, Settings};

/// How many versions of the hooks before `--since` are searched for those of projects.
const MOST_HOOKS: usize = 1000;

/// Rows that are read at a time.
const PAGE: usize = 500;

/// Write rows of the log as JSON lines, oldest first: CloudEvents with the hash of each row.
///
/// The rows with the hooks that were in force are always included, so that `hookbus replay --as-recorded`
/// works with the file. Read it with `hookbus import` or `hookbus replay --log FILE`. Damaged rows are
/// skipped and reported on stderr, and the exit code is then 1.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only these sessions: id, a unique prefix of it, its short form, or `last`
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
    /// Only events of this agent: hermes, gemini, claude, codex.
    #[arg(long)]
    agent: Option<String>,
    /// Only rows at or after this time: `2h` (ago), `today`, `2026-11-16`, `2026-11-16 14:05`, RFC 3339.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only rows before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Write to this file (default: stdout).
    #[arg(short, long, visible_alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// JSON lines of the log, or a view as Parquet or CSV.
    #[arg(long, default_value = "jsonl")]
    format: FileFormat,
    /// The view to export as Parquet or CSV: events, sessions, turns, `tool_calls`, decisions, verdicts, hooks, usage,
    /// files or hosts.
    #[arg(long, value_name = "VIEW")]
    view: Option<String>,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    Jsonl,
    Parquet,
    Csv,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let sessions = arguments
        .sessions
        .iter()
        .map(|start| find_session(&log, start))
        .collect::<Result<Vec<String>>>()?;
    let query = Query {
        since: arguments.since.as_deref().map(parse_time).transpose()?,
        until: arguments.until.as_deref().map(parse_time).transpose()?,
        ..Query::default()
    };
    let agent = arguments.agent.as_deref().map(parse_agent).transpose()?;
    let is_selected = |row: &Row| {
        let in_session = sessions.is_empty() || sessions.contains(&row.session);
        row.kind == Kind::HooksLoaded.as_str()
            || (in_session && agent.as_ref().is_none_or(|agent| *agent == row.agent))
    };
    let format_of_view = match arguments.format {
        FileFormat::Jsonl => None,
        FileFormat::Parquet => Some(ViewFormat::Parquet),
        FileFormat::Csv => Some(ViewFormat::Csv),
    };
    if let Some(view_format) = format_of_view {
        let selection = Selection {
            view: view::find(arguments.view.as_deref())?,
            sessions: &sessions,
            agent: agent.as_deref(),
            since: query.since,
            until: query.until,
        };
        let rows = view::write(&selection, view_format, arguments.output.as_deref(), settings)?;
        tell(arguments, format, rows, 0)?;
        return Ok(Exit::Success);
    }
    if arguments.view.is_some() {
        bail!("a view is exported with --format parquet or --format csv");
    }
    let (written, damaged) = match &arguments.output {
        None => write(&log, &query, is_selected, &mut output::JsonLines::on_stdout())?,
        Some(path) => {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            write(&log, &query, is_selected, &mut BufWriter::new(file))?
        }
    };
    tell(arguments, format, written, damaged)?;
    Ok(if damaged == 0 { Exit::Success } else { Exit::Failure })
}

/// Tells what was written into a file.
fn tell(arguments: &Arguments, format: Format, written: usize, damaged: usize) -> Result<()> {
    if let Some(path) = &arguments.output {
        output::line(match format {
            Format::Json => json!({"rows": written, "damaged": damaged, "file": path}).to_string(),
            Format::Text => format!("{} written to {}", count(written, "row"), path.display()),
        })?;
    }
    Ok(())
}

fn write(
    log: &LogReader,
    query: &Query,
    is_selected: impl Fn(&Row) -> bool,
    out: &mut impl Write,
) -> Result<(usize, usize)> {
    let bus = log.bus()?;
    let total = log.head()?.map_or(0, |(seq, _)| seq.as_i64().unsigned_abs());
    let mut progress = Progress::new(total, "rows");
    let mut written = 0;
    let before = hooks_before(log, query)?;
    let mut write_row = |row: &Row| -> Result<()> {
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
        write_row(row)?;
    }
    let (mut last, mut damaged) = (None, 0);
    loop {
        let page = log.after_with_damage(query, last, PAGE)?;
        if page.is_empty() {
            break;
        }
        for row in page {
            match row {
                Ok(row) => {
                    last = Some(row.seq);
                    if is_selected(&row) {
                        write_row(&row)?;
                    }
                }
                Err(row) => {
                    last = Some(row.seq);
                    damaged += 1;
                    output::to_stderr(output::sanitize(&format!("{row}: skipped")));
                }
            }
        }
        progress.update(last.map_or(0, |seq| seq.as_i64().unsigned_abs()));
    }
    out.flush().context("cannot write")?;
    Ok((written, damaged))
}

/// The hooks that were in force when the time range starts: the last version of each bus and each project.
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
        let project_file = |row: &Row| {
            let payload = row.payload_json();
            (payload["project"] == true).then(|| payload["path"].to_string())
        };
        let loaded = log.last(&of_bus, MOST_HOOKS)?;
        let mut last: Vec<Row> =
            loaded.into_iter().rev().filter(|row| seen.insert(project_file(row))).collect();
        last.reverse();
        before.extend(last);
    }
    Ok(before)
}
