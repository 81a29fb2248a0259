//! `hookbus anchor`: signs the last row of the log, and keeps that elsewhere.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::anchor::{AnchorPlace, Anchored};
use hookbus::dialect::derive;
use hookbus::event::{Clock, Seq, SystemClock};
use hookbus::log::{
    BusRow, LogPath, LogReader, SignedCheckpoint, SigningKey, VerifyOptions, verify,
};
use serde_json::{Value, json};

use crate::args::open_log;
use crate::cli::Exit;
use crate::output::{self, Progress, sanitize};
use crate::settings::{Format, Settings};
use crate::{bus_rows, checkpoints};

/// How long the daemon may take to relay a checkpoint to NATS.
const RELAY_LIMIT: Duration = Duration::from_secs(20);

/// How often the stream is asked.
const RELAY_POLL: Duration = Duration::from_millis(300);

/// The arguments of `hookbus anchor`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file, `git:REPOSITORY`, `git:REPOSITORY#REF`, or `nats`; can be given several times
    ///
    /// A file gets one more line. A git repository gets one more commit in refs/hookbus/BUS, or in the
    /// ref that is named; its work tree and branches are not touched. `nats`: the checkpoint is a row
    /// of the log, which the daemon relays; waits until the stream holds it. Without a place the
    /// checkpoint is only recorded and, with `--json`, printed.
    #[arg(long = "to", value_name = "PLACE")]
    places: Vec<String>,
}

/// The checkpoint in the log, and whether it was made now.
struct Recorded {
    signed: SignedCheckpoint,
    row: Seq,
    is_new: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let recorded = record(settings)?;
    let log = open_log(settings)?;
    let mut results = Vec::new();
    for place in &arguments.places {
        results.push((place, add(place, &recorded.signed, &log, settings)));
    }
    let is_done = results.iter().all(|(_, result)| result.is_ok());
    if format == Format::Json {
        output::line(to_json(&recorded, &results).to_string())?;
    } else {
        describe(&recorded, &results)?;
    }
    Ok(if is_done { Exit::Success } else { Exit::Failure })
}

/// Makes a checkpoint and records it; the last one again if nothing happened since.
fn record(settings: &Settings) -> Result<Recorded> {
    let log = open_log(settings)?;
    if log.is_archive() {
        bail!("this is an archive of other buses; run `hookbus anchor` where each of them is");
    }
    let key = SigningKey::of_home_or_new(&settings.home)?;
    let own = |log: &LogReader| -> Result<Option<(Seq, SignedCheckpoint)>> {
        let recorded = log.recorded_checkpoints()?.into_iter();
        let own = recorded.filter(|(_, it)| it.check(Some(key.public())).is_ok());
        // One that waited in the spool was recorded after newer ones.
        Ok(own.max_by_key(|(row, it)| (it.checkpoint.seq, *row)))
    };
    let last = own(&log)?;
    if let Some((_, last)) = &last
        && !log.agrees_with(&last.checkpoint)?
    {
        bail!(
            "the log is not as it was when row {} was signed, so nothing is signed; `hookbus verify` tells more",
            last.checkpoint.seq
        );
    }
    let Some((head, _)) = log.head()? else {
        bail!("the log is empty: there is nothing to sign yet");
    };
    if let Some((row, signed)) = last.filter(|(row, _)| *row == head) {
        return Ok(Recorded { signed, row, is_new: false });
    }
    let start = match &last {
        Some((_, last)) if log.confirms(&last.checkpoint)? => {
            Some((last.checkpoint.seq, last.checkpoint.hash))
        }
        Some(_) | None => None,
    };
    let total = head.as_i64() - start.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::new(total.unsigned_abs(), "rows");
    let options = VerifyOptions { start, ..VerifyOptions::default() };
    let path = LogPath::in_home(&settings.home);
    let verified = verify(&path, options, &derive, |done| progress.update(done))?;
    drop(progress);
    let head = verified.buses.first().and_then(|bus| bus.head).filter(|_| verified.is_sound());
    let Some(head) = head else {
        bail!("the log is not sound, so nothing is signed; `hookbus verify` tells what is wrong");
    };
    let signed = key.sign(log.checkpoint(head, SystemClock.now(), key.public())?);
    bus_rows::record(&[BusRow::LogCheckpoint(Box::new(signed))], settings)?;
    let recorded = open_log(settings)?.recorded_checkpoints()?;
    let found = recorded.into_iter().rfind(|(_, it)| *it == signed);
    let (row, _) = found.context(
        "the log cannot be written now: the checkpoint waits in the spool; run `hookbus anchor` again when the log has taken it",
    )?;
    Ok(Recorded { signed, row, is_new: true })
}

/// Writes the checkpoint to a place.
fn add(
    place: &str,
    signed: &SignedCheckpoint,
    log: &LogReader,
    settings: &Settings,
) -> Result<Anchored> {
    if checkpoints::is_nats(place) {
        return wait_for_stream(place, signed, settings);
    }
    if let AnchorPlace::File(file) = AnchorPlace::parse(place)
        && is_in(&file, &settings.home)
    {
        bail!("{place} is in the home itself, where it proves nothing; name a file elsewhere");
    }
    Ok(AnchorPlace::parse(place).add(signed, &|last| log.agrees_with(last))?)
}

fn is_in(file: &Path, home: &Path) -> bool {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), home.canonicalize()) {
        (Ok(folder), Ok(home)) => folder.starts_with(home),
        _ => false,
    }
}

/// The row of the checkpoint goes to NATS as all rows do; waits until it is there.
fn wait_for_stream(
    place: &str,
    signed: &SignedCheckpoint,
    settings: &Settings,
) -> Result<Anchored> {
    let started = Instant::now();
    loop {
        let bus = signed.checkpoint.bus;
        let held = checkpoints::from_nats(place, &[bus], settings);
        // The daemon creates the stream when it first publishes.
        let is_late = started.elapsed() > RELAY_LIMIT;
        match held {
            Ok(held) if held.iter().any(|it| it.as_ref() == Ok(signed)) => {
                return Ok(Anchored::Added);
            }
            Err(error) if is_late => return Err(error),
            Ok(_) if is_late => bail!(
                "the stream does not hold the checkpoint yet, because no daemon relays the log or NATS is behind; it will be published \
                 with the other rows, see `hookbus status`"
            ),
            Ok(_) | Err(_) => sleep(RELAY_POLL),
        }
    }
}

fn describe(recorded: &Recorded, results: &[(&String, Result<Anchored>)]) -> Result<()> {
    let checkpoint = &recorded.signed.checkpoint;
    let hash = hex::encode(checkpoint.hash);
    let what =
        if recorded.is_new { "signed row" } else { "nothing new since the checkpoint of row" };
    output::line(format!("{what} {}, hash {}…", checkpoint.seq, &hash[..16]))?;
    output::line(format!("key {}", checkpoint.key))?;
    for (place, result) in results {
        let place = sanitize(place);
        match result {
            Ok(Anchored::Added) => output::line(format!("kept in {place}"))?,
            Ok(Anchored::Known) => output::line(format!("{place} has it already"))?,
            Err(error) => {
                output::to_stderr(sanitize(&format!("hookbus: not kept in {place}: {error:#}")));
            }
        }
    }
    if results.is_empty() {
        output::to_stderr("it is only in the log itself; `--to PLACE` keeps it elsewhere");
    }
    Ok(())
}

fn to_json(recorded: &Recorded, results: &[(&String, Result<Anchored>)]) -> Value {
    let places: Vec<Value> = results
        .iter()
        .map(|(place, result)| match result {
            Ok(Anchored::Added) => json!({"place": place, "result": "added"}),
            Ok(Anchored::Known) => json!({"place": place, "result": "known"}),
            Err(error) => {
                json!({"place": place, "result": "failed", "error": format!("{error:#}")})
            }
        })
        .collect();
    json!({
        "checkpoint": recorded.signed.to_json(),
        "row": recorded.row.as_i64(),
        "new": recorded.is_new,
        "places": places,
    })
}
