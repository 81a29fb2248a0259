//! `hookbus stats`: the figures people ask for, from the analytics database, which is brought up to date first.

mod report;

use anyhow::Result;
use clap::{Args, ValueEnum};
use hookbus::event::Time;
use hookbus_subscribers::analytics::{By, QueryResult, Stats};
use serde_json::{Value, json};

use crate::analytics::{Database, Freshness};
use crate::args::parse_time;
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::settings::{Format, Settings};
use crate::tables::{csv_line, object, to_text};

/// The arguments of `hookbus stats`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only from this time on, from the start of its hour: `7d` (ago), `today`, `2026-11-16`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Tell figures apart by this
    #[arg(long, value_name = "WHAT")]
    by: Option<ByChoice>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Count the whole log again first
    #[arg(long)]
    rebuild: bool,
}

/// What figures can be told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByChoice {
    Agent,
    Tool,
    Hook,
    /// The directory in which sessions began
    Project,
    Model,
    /// The machine
    Host,
    /// In local time
    Day,
    /// The hosts that tool calls name
    Site,
    /// The files that tool calls name
    File,
}

impl ByChoice {
    const fn by(self) -> By {
        match self {
            Self::Agent => By::Agent,
            Self::Tool => By::Tool,
            Self::Hook => By::Hook,
            Self::Project => By::Project,
            Self::Model => By::Model,
            Self::Host => By::Host,
            Self::Day => By::Day,
            Self::Site => By::Site,
            Self::File => By::File,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let since = arguments.since.as_deref().map(parse_time).transpose()?.map(start_of_hour);
    let database = Database::of(settings);
    database.refresh(if arguments.rebuild { Freshness::Rebuilt } else { Freshness::UpToDate })?;
    let stats = Stats::open(&database.path)?;
    let paint = Paint(settings.colour);
    match (arguments.by, format) {
        (Some(by), Format::Json) => {
            let rows = objects(&stats.by(by.by(), since)?);
            output::line(
                json!({"since": since.map(|it| it.to_string()), "by": by.name(), "rows": rows})
                    .to_string(),
            )?;
        }
        (None, Format::Json) => output::line(overview(&stats, since)?.to_string())?,
        (by, Format::Text) if arguments.csv => {
            let table = match by {
                Some(by) => stats.by(by.by(), since)?,
                None => stats.totals(since)?,
            };
            print_csv(&table)?;
        }
        (Some(by), Format::Text) => {
            report::table(by.by(), &stats.by(by.by(), since)?, paint)?;
        }
        (None, Format::Text) => report::overview(&stats, since, paint)?,
    }
    Ok(Exit::Success)
}

/// Figures are summed up by hour.
fn start_of_hour(since: Time) -> Time {
    const HOUR: i64 = 3_600_000_000;
    Time::from_micros(since.micros().div_euclid(HOUR) * HOUR)
}

fn objects(table: &QueryResult) -> Vec<Value> {
    table.rows.iter().map(|row| Value::Object(object(&table.columns, row))).collect()
}

fn overview(stats: &Stats, since: Option<Time>) -> Result<Value> {
    let by = |by| stats.by(by, since).map(|table| objects(&table));
    let totals = objects(&stats.totals(since)?).pop().unwrap_or_default();
    Ok(json!({
        "since": since.map(|it| it.to_string()),
        "totals": totals,
        "agents": by(By::Agent)?,
        "tools": by(By::Tool)?,
        "hooks": by(By::Hook)?,
        "projects": by(By::Project)?,
        "models": by(By::Model)?,
        "hosts": by(By::Host)?,
        "days": by(By::Day)?,
    }))
}

fn print_csv(table: &QueryResult) -> Result<()> {
    output::whole_line(csv_line(table.columns.iter().map(String::as_str)))?;
    for row in &table.rows {
        let texts: Vec<String> = row.iter().map(to_text).collect();
        output::whole_line(csv_line(texts.iter().map(String::as_str)))?;
    }
    Ok(())
}
