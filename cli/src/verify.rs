//! `hookbus verify`: walks the hash chain.

use std::time::Instant;

use anyhow::Result;
use hookbus::log::{LogPath, Report, verify};
use serde_json::{Value, json};

use crate::cli::Ending;
use crate::output::{self, Paint, Progress, spell};
use crate::reading::open_log;
use crate::settings::{Format, Settings};

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Ending> {
    let rows = open_log(settings)?.head()?.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::of(rows.unsigned_abs(), "rows");
    let started = Instant::now();
    let report = verify(&LogPath::in_home(&settings.home), |done| progress.at(done))?;
    drop(progress);
    let paint = Paint(settings.colour);
    match format {
        Format::Json => output::line(to_json(&report).to_string())?,
        Format::Text if report.flaws.is_empty() => {
            let head = report.head.map_or_else(String::new, |(seq, hash)| {
                format!(", head {seq} {}", &hex::encode(hash)[..12])
            });
            let took = spell(started.elapsed());
            output::line(format!(
                "{}: {} rows{head} (bus {}, {took})",
                paint.good("sound"),
                report.rows,
                report.bus
            ))?;
        }
        Format::Text => {
            output::line(format!(
                "{}: {} rows, bus {}",
                paint.bad("not sound"),
                report.rows,
                report.bus
            ))?;
            for flaw in &report.flaws {
                output::line(format!("  {flaw}"))?;
            }
        }
    }
    Ok(if report.flaws.is_empty() { Ending::Yes } else { Ending::No })
}

fn to_json(report: &Report) -> Value {
    let flaws: Vec<Value> = report
        .flaws
        .iter()
        .map(|flaw| json!({"seq": flaw.seq.as_i64(), "what": flaw.what}))
        .collect();
    json!({
        "sound": flaws.is_empty(),
        "bus": report.bus.to_string(),
        "rows": report.rows,
        "head": report.head.map(|(seq, hash)| json!({"seq": seq.as_i64(), "hash": hex::encode(hash)})),
        "flaws": flaws,
    })
}
