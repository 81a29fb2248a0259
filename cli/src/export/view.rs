//! `hookbus export --format parquet|csv`: a view, for `DuckDB`, pandas or a spreadsheet.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hookbus::config::did_you_mean;
use hookbus::event::Time;
use hookbus_subscribers::analytics::{
    Column, QueryError, QueryLimits, Querying, SqlValue, VIEWS, View,
};

use super::parquet::ParquetFile;
use crate::analytics::{Database, Freshness};
use crate::output::StdoutClosed;
use crate::query::shown_on_terminal;
use crate::settings::Settings;
use crate::tables::{csv_line, to_text};

/// An export reads a whole view, so only a mistake takes so long.
const LONGEST: Duration = Duration::from_hours(24);

/// The format of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewFormat {
    Parquet,
    Csv,
}

/// What of a view is exported.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub(super) view: &'static View,
    pub(super) sessions: &'a [String],
    pub(super) agent: Option<&'a str>,
    pub(super) since: Option<Time>,
    pub(super) until: Option<Time>,
}

/// The view with this name.
pub(super) fn find(name: Option<&str>) -> Result<&'static View> {
    let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
    let Some(name) = name else {
        bail!("name what to export with --view: {}", names.join(", "));
    };
    if let Some(view) = View::find(name) {
        return Ok(view);
    }
    let near = did_you_mean(name, names.iter().copied());
    let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    bail!("there is no view `{name}`{hint} There are {}", names.join(", "))
}

/// Writes the rows of a view; returns how many.
pub(super) fn write(
    selection: &Selection<'_>,
    format: ViewFormat,
    output: Option<&Path>,
    settings: &Settings,
) -> Result<usize> {
    let sql = selection.sql()?;
    let database = Database::of(settings);
    database.refresh(Freshness::UpToDate)?;
    let mut querying = Querying::open(&database.log, &database.path)?;
    match output {
        Some(path) => {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            write_to(BufWriter::new(file), &mut querying, &sql, format, selection.view, |it| it)
        }
        None if format == ViewFormat::Parquet && io::stdout().is_terminal() => {
            bail!("Parquet is not for a terminal; name a file with --output FILE")
        }
        None => {
            let out = io::stdout();
            write_to(out, &mut querying, &sql, format, selection.view, shown_on_terminal)
        }
    }
}

fn write_to(
    mut out: impl Write + Send,
    querying: &mut Querying,
    sql: &str,
    format: ViewFormat,
    view: &'static View,
    shown: fn(String) -> String,
) -> Result<usize> {
    let mut rows = 0;
    match format {
        ViewFormat::Parquet => {
            let mut file = ParquetFile::new(out, view.columns).context("cannot write")?;
            each_row(querying, sql, &mut |row| {
                rows += 1;
                file.add(row).context("cannot write")
            })?;
            file.finish().context("cannot write")?;
        }
        ViewFormat::Csv => {
            let header = csv_line(view.columns.iter().map(|column| column.name));
            write_line(&mut out, &header)?;
            each_row(querying, sql, &mut |row| {
                rows += 1;
                let texts: Vec<String> = row.iter().map(to_text).map(shown).collect();
                write_line(&mut out, &csv_line(texts.iter().map(String::as_str)))
            })?;
            out.flush().context("cannot write")?;
        }
    }
    Ok(rows)
}

fn write_line(out: &mut impl Write, line: &str) -> Result<()> {
    match writeln!(out, "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        written => written.context("cannot write"),
    }
}

/// What stopped an export.
struct Stopped(anyhow::Error);

impl From<QueryError> for Stopped {
    fn from(error: QueryError) -> Self {
        Self(error.into())
    }
}

fn each_row(
    querying: &mut Querying,
    sql: &str,
    each: &mut dyn FnMut(Vec<SqlValue>) -> Result<()>,
) -> Result<()> {
    let limits = QueryLimits { time: LONGEST, rows: None };
    let done = querying
        .run::<Stopped>(sql, limits, &mut |_| Ok(()), &mut |row| each(row).map_err(Stopped));
    done.map(drop).map_err(|Stopped(error)| error)
}

impl Selection<'_> {
    /// The query for these rows.
    fn sql(&self) -> Result<String> {
        let View { name, columns, .. } = self.view;
        let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let has = |name: &str| columns.iter().any(|column| column.name == name);
        let need = |name: &str, option: &str| {
            if has(name) {
                return Ok(());
            }
            bail!(
                "the view `{}` has no column `{name}`, so {option} cannot be used with it",
                self.view.name
            )
        };
        let mut conditions = Vec::new();
        if let Some(agent) = self.agent {
            need("agent", "--agent")?;
            conditions.push(format!("agent = {}", quote(agent)));
        }
        if !self.sessions.is_empty() {
            need("session", "a session")?;
            let sessions: Vec<String> = self.sessions.iter().map(|it| quote(it)).collect();
            conditions.push(format!("session IN ({})", sessions.join(", ")));
        }
        for (time, comparison, option) in
            [(self.since, ">=", "--since"), (self.until, "<", "--until")]
        {
            let Some(time) = time else { continue };
            let Some(Column { name, .. }) = self.view.time_column() else {
                bail!(
                    "the view `{}` has no time, so {option} cannot be used with it",
                    self.view.name
                );
            };
            conditions.push(format!("{name} {comparison} {}", quote(&time.to_string())));
        }
        let conditions = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let columns: Vec<&str> = columns.iter().map(|column| column.name).collect();
        Ok(format!("SELECT {} FROM {name}{conditions}", columns.join(", ")))
    }
}
