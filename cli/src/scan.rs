//! `hookbus scan`: which secrets rows of the log still hold, recorded before redaction or with `redact: false`.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use hookbus::active::{ActiveRedaction, HooksSource};
use hookbus::event::Seq;
use hookbus::log::{LogPath, LogReader, Query, ReadError, Row};
use hookbus::redact::Redactor;
use serde_json::json;

use crate::args::{find_session, open_log};
use crate::cli::Exit;
use crate::output::{self, Paint, Progress, count, sanitize};
use crate::settings::{Format, Settings};

/// How many rows are named for each kind.
const NAMED: usize = 5;

/// The arguments of `hookbus scan`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only the rows of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// The secrets of one kind.
#[derive(Debug, Default)]
struct Found {
    secrets: usize,
    /// How many different ones, by their fingerprints.
    distinct: std::collections::BTreeSet<String>,
    rows: Vec<Seq>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let session =
        arguments.session.as_deref().map(|prefix| find_session(&log, prefix)).transpose()?;
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let active = ActiveRedaction::new(&settings.home);
    // Also where redaction is off: the user asks.
    let redactor = active.redactor(&hooks.active().file);
    let built_in = active.built_in();
    let Some(redactor) = redactor.as_deref().or(built_in.as_ref()) else {
        anyhow::bail!("the built-in detectors cannot be used; please report this");
    };
    let query = Query { session, ..Query::default() };
    let (rows, found) = scan(&log, &query, redactor)?;
    let is_clean = found.is_empty();
    match format {
        Format::Json => output::line(to_json(rows, &found).to_string())?,
        Format::Text => print(rows, &found, Paint(settings.colour))?,
    }
    Ok(if is_clean { Exit::Success } else { Exit::Failure })
}

/// The number of rows, and what they hold.
fn scan(
    log: &LogReader,
    query: &Query,
    redactor: &Redactor,
) -> Result<(usize, BTreeMap<String, Found>)> {
    let head = log.head()?.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::new(head.unsigned_abs(), "rows");
    let (mut rows, mut found) = (0, BTreeMap::<String, Found>::new());
    log.each::<ReadError>(query, None, |row| {
        rows += 1;
        progress.update(row.seq.as_i64().unsigned_abs());
        for secret in secrets_in(&row, redactor) {
            let kind = found.entry(secret.kind).or_default();
            kind.secrets += 1;
            kind.distinct.insert(secret.fingerprint.to_string());
            if kind.rows.last() != Some(&row.seq) {
                kind.rows.push(row.seq);
            }
        }
        Ok(())
    })?;
    Ok((rows, found))
}

/// What a row holds. The text of your own policy is not looked at: it is recorded as it is.
fn secrets_in(row: &Row, redactor: &Redactor) -> Vec<hookbus::redact::FoundSecret> {
    if row.kind == "hooks.loaded" {
        return Vec::new();
    }
    let mut found = redactor.redact(&row.payload).found;
    found.extend(redactor.redact(row.context.as_deref().unwrap_or_default().as_bytes()).found);
    found
}

fn to_json(rows: usize, found: &BTreeMap<String, Found>) -> serde_json::Value {
    let kinds: Vec<_> = found
        .iter()
        .map(|(kind, found)| {
            let rows: Vec<i64> = found.rows.iter().map(|seq| seq.as_i64()).collect();
            json!({"kind": kind, "secrets": found.secrets, "distinct": found.distinct.len(), "rows": rows})
        })
        .collect();
    json!({"rows": rows, "kinds": kinds})
}

fn print(rows: usize, found: &BTreeMap<String, Found>, paint: Paint) -> Result<()> {
    if found.is_empty() {
        output::line(paint.good(&format!("no secrets found in {}", count(rows, "row"))))?;
        return Ok(());
    }
    for (kind, Found { secrets, distinct, rows }) in found {
        let mut named: Vec<String> =
            rows.iter().take(NAMED).map(|seq| seq.as_i64().to_string()).collect();
        if rows.len() > NAMED {
            named.push(format!("and {} more", rows.len() - NAMED));
        }
        let (times, different) = (count(*secrets, "time"), distinct.len());
        let line = format!("{}: {times}, {different} different", paint.bad(&sanitize(kind)));
        output::line(line)?;
        output::line(format!("    rows {}", named.join(", ")))?;
    }
    output::line(
        "hookbus log --seq N --raw shows a row. Change these secrets where they were issued.",
    )?;
    Ok(())
}
