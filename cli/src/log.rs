//! `hookbus log`: prints the log row by row, filtered or followed. At a terminal it prints the last screenful, and more in a
//! pager; in a pipe everything.

mod filter;
mod known_values;
mod row_line;

use std::cell::RefCell;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::event::Seq;
use hookbus::log::{LogPath, LogReader, Query, Row};

use self::filter::Filter;
use self::known_values::{check_name, check_tool};
use self::row_line::Columns;
use crate::args::{find_bus, find_session, open_log, parse_agent, parse_kind, parse_time};
use crate::bus_names::BusNames;
use crate::cli::Exit;
use crate::output::{self, Pager, Paint};
use crate::settings::{Format, Settings};

/// How often `--follow` reads the log.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How many rows are read in one go, from the end of the log backwards.
const PAGE: usize = 500;

const EXAMPLES: &str = "\
Examples:
  hookbus log                          The last screenful; in a pipe, all rows
  hookbus log --all                    All rows, at a terminal in a pager
  hookbus log -f --kind decision       Follow the decisions from now on
  hookbus log --tool shell --since 2h  The shell calls of two hours
  hookbus log --failed --project shop  What failed in this project
  hookbus log --session last --json    A session as JSON lines
  hookbus log --seq 42 --raw           A payload as it arrived";

/// The arguments of `hookbus log`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only this session: its id, a unique prefix of it, its short form, or `last`
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
    /// Only rows whose payload matches this text or regular expression
    #[arg(long, value_name = "TEXT", help_heading = "Filters")]
    grep: Option<String>,
    /// Only decisions that blocked or stopped something
    #[arg(long, help_heading = "Filters")]
    blocked: bool,
    /// Only tool calls, turns and model requests that failed
    #[arg(long, help_heading = "Filters", conflicts_with = "blocked")]
    failed: bool,
    /// Only decisions in which this hook said something
    #[arg(long, value_name = "NAME", help_heading = "Filters", conflicts_with = "failed")]
    hook: Option<String>,
    /// Only projects with this directory name, or in this directory
    #[arg(long, value_name = "NAME|DIR", help_heading = "Filters")]
    project: Option<String>,
    /// Only the row with this number
    #[arg(long, value_name = "SEQ", help_heading = "Filters")]
    seq: Option<i64>,
    /// Only the last N matching rows
    #[arg(short = 'n', long, value_name = "N", help_heading = "Filters")]
    last: Option<usize>,
    /// Only this bus of an archive: its name, or a unique prefix of its id
    #[arg(long, value_name = "BUS", help_heading = "Filters")]
    bus: Option<String>,
    /// All rows, at a terminal in a pager
    #[arg(long, conflicts_with_all = ["last", "follow"])]
    all: bool,
    /// Print new rows as they are recorded, from now on; with -n, after the last N
    #[arg(short, long)]
    follow: bool,
    /// With --seq: print the payload byte for byte as it arrived
    #[arg(long, requires = "seq")]
    raw: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = if arguments.follow { wait_for_log(settings)? } else { open_log(settings)? };
    let mut filter = Filter::new(arguments)?;
    let query = query(arguments, &filter, &log)?;
    if arguments.raw {
        return raw(&log, &query);
    }
    if arguments.seq.is_some() {
        only_row(&log, &query)?;
    }
    let columns = Columns::new(settings.window, Paint(settings.colour));
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
            Format::Text => columns.line(row, &bus(row)?),
        })?;
        Ok(())
    };
    let height = settings.window.lines.filter(|_| format == Format::Text);
    let screenful = height.map(|height| height.saturating_sub(2).max(5));
    let default = if arguments.follow { Some(0) } else { screenful.filter(|_| !arguments.all) };
    let wanted = arguments.last.or(default);
    let is_long = arguments.all || wanted > screenful;
    let pager = (height.is_some() && is_long && !arguments.follow)
        .then(|| Pager::start(&settings.pager))
        .flatten();
    let head = log.head()?.map(|(seq, _)| seq);
    let mut last = match wanted {
        Some(count) => {
            let (rows, has_more) = last_rows(&log, &query, &mut filter, count)?;
            rows.iter().try_for_each(&print)?;
            if has_more && arguments.last.is_none() && !arguments.follow {
                let hint = "older rows: `hookbus log --all`, or -n 1000";
                output::line(Paint(settings.colour).dim(hint))?;
            }
            head
        }
        None => each(&log, &query, &mut filter, None, print)?,
    };
    drop(pager);
    filter.check_hook()?;
    if !arguments.follow {
        return Ok(Exit::Success);
    }
    loop {
        sleep(POLL_INTERVAL);
        last = each(&log, &query, &mut filter, last, print)?;
    }
}

fn raw(log: &LogReader, query: &Query) -> Result<Exit> {
    let row = only_row(log, query)?;
    if row.removed.is_some() {
        bail!(
            "the payload of row {} was removed on purpose; `hookbus log --kind log.pruned` tells when",
            row.seq
        );
    }
    output::payload(&row.payload)?;
    Ok(Exit::Success)
}

/// Prints the rows after `after` that pass. Returns how far the log was read.
fn each(
    log: &LogReader,
    query: &Query,
    filter: &mut Filter,
    after: Option<Seq>,
    print: impl Fn(&Row) -> Result<()>,
) -> Result<Option<Seq>> {
    log.each(query, after, |row| {
        if filter.passes(log, &row)? {
            print(&row)?;
        }
        Ok(())
    })
}

/// The last `count` rows that pass, in log order, and whether there are more.
fn last_rows(
    log: &LogReader,
    query: &Query,
    filter: &mut Filter,
    count: usize,
) -> Result<(Vec<Row>, bool)> {
    let (mut found, mut before) = (Vec::new(), None);
    if count == 0 {
        return Ok((found, true));
    }
    loop {
        let page = PAGE.min(count.saturating_add(1));
        let rows = log.before(query, before, page)?;
        let is_end = rows.len() < page;
        for row in rows {
            before = Some(row.seq);
            if filter.passes(log, &row)? {
                if found.len() == count {
                    found.reverse();
                    return Ok((found, true));
                }
                found.push(row);
            }
        }
        if is_end {
            found.reverse();
            return Ok((found, false));
        }
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

fn query(arguments: &Arguments, filter: &Filter, log: &LogReader) -> Result<Query> {
    let find = |text: &str| find_session(log, text);
    let query = Query {
        seq: arguments.seq.map(Seq::from_i64),
        session: arguments.session.as_deref().map(find).transpose()?,
        bus: arguments.bus.as_deref().map(|prefix| find_bus(log, prefix)).transpose()?,
        agent: arguments.agent.as_deref().map(parse_agent).transpose()?,
        kind: arguments.kind.as_deref().map(parse_kind).transpose()?,
        kinds: filter.kinds(),
        name: arguments.name.clone(),
        tool: arguments.tool.clone(),
        since: arguments.since.as_deref().map(parse_time).transpose()?,
        until: arguments.until.as_deref().map(parse_time).transpose()?,
    };
    if let Some(tool) = &arguments.tool {
        check_tool(log, tool)?;
    }
    if let Some(name) = &arguments.name {
        check_name(log, name)?;
    }
    Ok(query)
}
