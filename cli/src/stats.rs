//! `hookbus stats`: the figures people ask for, from the analytics database, which is brought up to date first.

mod report;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
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
    #[arg(long, value_name = "WHAT", value_parser = by_words())]
    by: Option<By>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Count the whole log again first
    #[arg(long)]
    rebuild: bool,
}

/// Reads the word of `--by`.
fn by_words() -> impl TypedValueParser<Value = By> {
    let word = |by: By| {
        let word = PossibleValue::new(by.as_str());
        match by.about() {
            Some(about) => word.help(about),
            None => word,
        }
    };
    PossibleValuesParser::new(By::ALL.map(word))
        .try_map(|word| By::parse(&word).ok_or("there is no such word"))
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let since = arguments.since.as_deref().map(parse_time).transpose()?.map(start_of_hour);
    let database = Database::of(settings);
    database.refresh(if arguments.rebuild { Freshness::Rebuilt } else { Freshness::UpToDate })?;
    let stats = Stats::open(&database.path)?;
    let paint = Paint(settings.colour);
    match (arguments.by, format) {
        (Some(by), Format::Json) => {
            let rows = objects(&stats.by(by, since)?);
            output::line(
                json!({"since": since.map(|it| it.to_string()), "by": by.as_str(), "rows": rows})
                    .to_string(),
            )?;
        }
        (None, Format::Json) => output::line(overview(&stats, since)?.to_string())?,
        (by, Format::Text) if arguments.csv => {
            let table = match by {
                Some(by) => stats.by(by, since)?,
                None => stats.totals(since)?,
            };
            print_csv(&table)?;
        }
        (Some(by), Format::Text) => {
            report::table(by, &stats.by(by, since)?, since, paint)?;
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
