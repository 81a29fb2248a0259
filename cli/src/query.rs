//! `hookbus query`: SQL over the log and its projections.

use std::io::{Write as _, stdout};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use hookbus_subscribers::analytics::{Column, QueryError, QueryLimits, Querying, VIEWS};
use serde_json::{Value, json};

use crate::analytics::{Database, Freshness};
use crate::cli::Exit;
use crate::output::{self, JsonLines, Paint, StdoutClosed};
use crate::settings::{Format, Settings};
use crate::tables::{Overflow, csv_line, lines, object, table, to_text};

/// How many rows a table has, unless `--limit` says more.
const TABLE_ROWS: usize = 1000;

/// How far the columns of a view are indented.
const INDENT: usize = 2;

/// The arguments of `hookbus query`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Arguments {
    /// The query, in the SQL of SQLite
    #[arg(required_unless_present = "views")]
    sql: Option<String>,
    /// Print CSV
    #[arg(long, conflicts_with_all = ["json", "table"])]
    csv: bool,
    /// Print a table (the default)
    #[arg(long, conflicts_with = "json")]
    table: bool,
    /// List the views and their columns
    #[arg(long, conflicts_with = "sql")]
    views: bool,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Print at most this many rows [default: 1000 in a table, else all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Do not look for new events first
    #[arg(long)]
    as_is: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let Some(sql) = &arguments.sql else {
        print_views(format, settings)?;
        return Ok(Exit::Success);
    };
    let database = Database::of(settings);
    if !arguments.as_is {
        database.refresh(Freshness::UpToDate)?;
    }
    let mut querying = Querying::open(&database.log, &database.path)?;
    let time = Duration::from_secs(arguments.timeout);
    let limits = QueryLimits { time, rows: arguments.limit };
    if format == Format::Json {
        print_json(&mut querying, sql, limits)?;
    } else if arguments.csv {
        print_csv(&mut querying, sql, limits)?;
    } else {
        let rows = Some(arguments.limit.unwrap_or(TABLE_ROWS));
        let result = querying.all(sql, QueryLimits { rows, ..limits })?;
        let paint = Paint(settings.colour);
        let lines = table(&result.columns, &result.rows, paint, settings.window);
        lines.into_iter().try_for_each(output::whole_line)?;
        if result.is_cut {
            output::to_stderr(format!(
                "the first {}; --limit prints more, --json and --csv print all",
                output::count(result.rows.len(), "row")
            ));
        }
    }
    Ok(Exit::Success)
}

/// A failure while rows are printed: of the query, or of stdout.
#[derive(Debug, thiserror::Error)]
enum PrintError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Closed(#[from] StdoutClosed),
}

impl PrintError {
    fn into_error(self) -> anyhow::Error {
        match self {
            Self::Query(error) => error.into(),
            Self::Closed(closed) => closed.into(),
        }
    }
}

fn print_json(querying: &mut Querying, sql: &str, limits: QueryLimits) -> Result<()> {
    let mut out = JsonLines::on_stdout();
    let mut columns = Vec::new();
    let names = std::cell::RefCell::new(&mut columns);
    let printed = querying.run::<PrintError>(
        sql,
        limits,
        &mut |found| {
            names.borrow_mut().extend_from_slice(found);
            Ok(())
        },
        &mut |row| {
            let line = Value::Object(object(&names.borrow(), &row)).to_string() + "\n";
            out.write_all(line.as_bytes()).map_err(|_| StdoutClosed.into())
        },
    );
    printed.map_err(PrintError::into_error)?;
    out.flush().context("cannot write")
}

fn print_csv(querying: &mut Querying, sql: &str, limits: QueryLimits) -> Result<()> {
    let mut write = |line: String| output::whole_line(line).map_err(PrintError::from);
    let write = std::cell::RefCell::new(&mut write);
    let printed = querying.run::<PrintError>(
        sql,
        limits,
        &mut |columns| (write.borrow_mut())(csv_line(columns.iter().map(String::as_str))),
        &mut |row| {
            let texts: Vec<String> = row.iter().map(to_text).map(shown_on_terminal).collect();
            (write.borrow_mut())(csv_line(texts.iter().map(String::as_str)))
        },
    );
    printed.map_err(PrintError::into_error)?;
    stdout().flush().context("cannot write")
}

/// What agents wrote is made safe for a terminal; a file or a program gets it as it is.
pub(crate) fn shown_on_terminal(text: String) -> String {
    if std::io::IsTerminal::is_terminal(&stdout()) { output::sanitize_lines(&text) } else { text }
}

fn print_views(format: Format, settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    for view in &VIEWS {
        if format == Format::Json {
            let columns: Vec<Value> = view
                .columns
                .iter()
                .map(|it| json!({"name": it.name, "type": it.kind.as_str(), "about": it.about}))
                .collect();
            let view = json!({"view": view.name, "about": view.about, "columns": columns});
            output::line(view.to_string())?;
            continue;
        }
        output::line(format!("{}: {}", paint.bold(view.name), view.about))?;
        let row = |it: &Column| [it.name, it.kind.as_str(), it.about].map(str::to_owned).to_vec();
        let window = settings.window.inside(INDENT);
        for line in lines(view.columns.iter().map(row).collect(), Overflow::Wrap, window) {
            output::line(format!("{}{line}", " ".repeat(INDENT)))?;
        }
    }
    Ok(())
}
