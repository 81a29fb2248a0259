//! `hookbus verify`: recomputes the hash chain of the log, or of each bus in an archive.

use std::time::Instant;

use anyhow::Result;
use hookbus::event::Seq;
use hookbus::log::{LogPath, VerifyReport, verify};
use serde_json::{Value, json};

use crate::args::open_log;
use crate::cli::Exit;
use crate::output::{self, Paint, Progress, format_duration};
use crate::settings::{Format, Settings};

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let rows = log.head()?.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::new(rows.unsigned_abs(), "rows");
    let started = Instant::now();
    let reports = verify(&LogPath::in_home(&settings.home), |done| progress.update(done))?;
    drop(progress);
    let sound = reports.iter().all(|report| report.flaws.is_empty());
    let took = format_duration(started.elapsed());
    match (format, reports.as_slice()) {
        (Format::Json, [own]) if !log.is_archive() => output::line(to_json(own).to_string())?,
        (Format::Json, buses) => {
            let buses: Vec<Value> = buses.iter().map(to_json).collect();
            output::line(json!({"sound": sound, "buses": buses}).to_string())?;
        }
        (Format::Text, reports) => {
            for report in reports {
                output::line(describe(report, &took, Paint(settings.colour)))?;
            }
        }
    }
    Ok(if sound { Exit::Success } else { Exit::Failure })
}

fn describe(report: &VerifyReport, took: &str, paint: Paint) -> String {
    let VerifyReport { bus, rows, head, flaws, gaps, .. } = report;
    let gaps: Vec<String> = gaps
        .iter()
        .map(|gap| format!("\n  rows {} to {} are missing", gap.start(), gap.end()))
        .collect();
    if !flaws.is_empty() {
        let flaws: Vec<String> = flaws.iter().map(|flaw| format!("\n  {flaw}")).collect();
        let word = paint.bad("not sound");
        return format!("{word}: {rows} rows, bus {bus}{}{}", flaws.concat(), gaps.concat());
    }
    let head = head.map_or_else(String::new, |(seq, hash)| {
        format!(", head {seq} {}", &hex::encode(hash)[..12])
    });
    let word = if gaps.is_empty() { "sound" } else { "sound, but incomplete" };
    format!("{}: {rows} rows{head} (bus {bus}, {took}){}", paint.good(word), gaps.concat())
}

fn to_json(report: &VerifyReport) -> Value {
    let flaws: Vec<Value> = report
        .flaws
        .iter()
        .map(|flaw| json!({"seq": flaw.seq.as_i64(), "what": flaw.what}))
        .collect();
    let gaps: Vec<[i64; 2]> = report.gaps.iter().map(|gap| [*gap.start(), *gap.end()]).collect();
    json!({
        "sound": flaws.is_empty(),
        "whole": gaps.is_empty(),
        "gaps": gaps,
        "bus": report.bus.to_string(),
        "rows": report.rows,
        "first": report.first.map(Seq::as_i64),
        "head": report.head.map(|(seq, hash)| json!({"seq": seq.as_i64(), "hash": hex::encode(hash)})),
        "flaws": flaws,
    })
}
