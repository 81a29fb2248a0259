//! `hookbus verify`: is the log whole and unchanged? Compares it with a copy of its end that was kept elsewhere, and
//! mends what can be computed again.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hookbus::dialect::derive;
use hookbus::event::{BusId, Clock, Seq, SystemClock};
use hookbus::log::{
    AgainstCheckpoints, Flaw, HeldRows, LogPath, LogReader, PublicKey, Reference, Repaired,
    SavedHead, SignedCheckpoint, Verification, VerifyOptions, VerifyReport, repair, verify,
};
use hookbus::relay::published_head;
use serde_json::{Map, Value, json};

use crate::args::{nats_settings, open_log};
use crate::bus_names::BusNames;
use crate::checkpoints::{self, Checkpoints};
use crate::cli::Exit;
use crate::output::{self, Paint, Progress, count, counted, format_duration, local_time, sanitize};
use crate::settings::{Format, Settings};

/// A file with saved heads is not larger than this.
const MAX_SAVED: u64 = 16 << 20;

/// Without a key a checkpoint proves nothing.
const NO_KEY: &str = "this home has no signing.key, so that it is not known who may sign; name the public key with `--key`";

/// The arguments of `hookbus verify`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Compare with checkpoints, a saved head, an archive, a copy of the log, or a NATS stream
    ///
    /// A file or `git:REPOSITORY[#REF]` that `hookbus anchor` wrote, whose signatures are checked too; a
    /// file of `--save-head` or of `verify --json`; a directory or file with an archive or a copy of
    /// the log; `nats` for the stream of hookbus.yaml, or the URL of a NATS server (its last row, and its
    /// checkpoints). Finds rows that were cut off the end, a log that was rewritten, another log in its
    /// place, and rows that were taken out of an archive (not with `nats` or checkpoints).
    #[arg(long, value_name = "WHERE")]
    against: Option<String>,
    /// The public key that checkpoints have to be signed with [default: that of this home]
    ///
    /// The 64 hex digits that `hookbus anchor` prints. Write them down elsewhere: a key that was replaced
    /// together with the log and its checkpoints shows only there.
    #[arg(long, value_name = "HEX")]
    key: Option<String>,
    /// Check only the rows after a signed checkpoint
    ///
    /// `last` for the last one in the log itself, or a place as for `--against`: its newest one counts.
    /// Rows up to it, and the pages and indexes of the file, are not checked.
    #[arg(long, value_name = "CHECKPOINT", conflicts_with_all = ["repair", "save_head"])]
    from: Option<String>,
    /// Save the last row and its hash, for a later `--against`
    #[arg(long, value_name = "FILE")]
    save_head: Option<PathBuf>,
    /// Mend indexes, triggers and derived columns; a copy of the log is kept
    ///
    /// Triggers, views and indexes that do not belong to a log are removed. What the hash of a row covers is never
    /// changed.
    #[arg(long)]
    repair: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let path = LogPath::in_home(&settings.home);
    let repaired =
        if arguments.repair { Some(repair(&path, &derive, SystemClock.now())?) } else { None };
    // A log without one of its tables cannot be read; verifying it tells that.
    let log = open_log(settings);
    let started = Instant::now();
    let key = checkpoints::trusted_key(arguments.key.as_deref(), settings)?;
    let start = match &arguments.from {
        Some(place) => Some(starting_point(place, log.as_ref(), key, settings)?),
        None => None,
    };
    let mut verified = verify_rows(&path, log.as_ref().ok(), start.as_ref())?;
    let is_archive = log.as_ref().is_ok_and(LogReader::is_archive);
    let names = log.as_ref().ok().and_then(|log| BusNames::read(log).ok());
    let names = names.unwrap_or_else(BusNames::none);
    let mut report =
        Report { repaired, start, checkpoints: None, is_archive, names, started, format, settings };
    if let Ok(log) = &log {
        compare_with_own(&mut verified, log)?;
    }
    if let Some(place) = &arguments.against {
        report.checkpoints = compare(&mut verified, &log?, place, key, settings)?;
    }
    if let Some(file) = &arguments.save_head {
        if !verified.is_sound() {
            report.print(&verified)?;
            bail!("the log is not sound, so its head is not saved");
        }
        save_head(file, &verified)?;
    }
    report.print(&verified)?;
    Ok(if verified.is_sound() { Exit::Success } else { Exit::Failure })
}

/// The checkpoint of `--from`.
fn starting_point(
    place: &str,
    log: Result<&LogReader, &anyhow::Error>,
    key: Option<PublicKey>,
    settings: &Settings,
) -> Result<SignedCheckpoint> {
    let log = log.map_err(|error| anyhow!("{error:#}"))?;
    if log.is_archive() {
        bail!("an archive has no checkpoints of its own; verify it without `--from`");
    }
    let key = key.context(NO_KEY)?;
    checkpoints::starting_point(place, log, key, settings)
}

/// Verifies the rows and the file, with a progress bar.
fn verify_rows(
    path: &LogPath,
    log: Option<&LogReader>,
    start: Option<&SignedCheckpoint>,
) -> Result<Verification> {
    let start = start.map(|signed| (signed.checkpoint.seq, signed.checkpoint.hash));
    let head = log.and_then(|log| log.head().ok().flatten());
    let rows = head.map_or(0, |(seq, _)| seq.as_i64()) - start.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::new(rows.unsigned_abs(), "rows");
    let options = VerifyOptions { start, ..VerifyOptions::default() };
    Ok(verify(path, options, &derive, |done| progress.update(done))?)
}

/// Compares with the checkpoints that the log itself recorded: a person without the key can rewrite the chain, and not
/// these.
fn compare_with_own(verified: &mut Verification, log: &LogReader) -> Result<()> {
    if log.is_archive() || verified.buses.is_empty() {
        return Ok(());
    }
    // They are found by an index. If that is damaged, the verification has told of it.
    let Ok(own) = log.recorded_checkpoints() else { return Ok(()) };
    let own: Checkpoints = own.into_iter().map(|(_, signed)| Ok(signed)).collect();
    if !own.is_empty() {
        verified.compare_checkpoints(log, &own, None, "a signed checkpoint in this log")?;
    }
    Ok(())
}

/// Compares with what `--against` names. Returns what came of a comparison with checkpoints.
fn compare(
    verified: &mut Verification,
    log: &LogReader,
    place: &str,
    key: Option<PublicKey>,
    settings: &Settings,
) -> Result<Option<AgainstCheckpoints>> {
    let is_nats = checkpoints::is_nats(place);
    if is_nats {
        let (reference, name) = find_reference(place, verified, settings)?;
        verified.compare(log, &reference, &name)?;
        // Without a key a person who may publish there could make the log look changed.
        if key.is_none() {
            return Ok(None);
        }
    }
    let buses: Vec<BusId> = verified.buses.iter().map(|report| report.bus).collect();
    match checkpoints::read(place, &buses, settings)? {
        Some(found) if is_nats && found.is_empty() => Ok(None),
        Some(found) => {
            let key = key.context(NO_KEY)?;
            let name = if is_nats { "the stream" } else { place };
            Ok(Some(verified.compare_checkpoints(log, &found, Some(key), name)?))
        }
        None => {
            let (reference, name) = find_reference(place, verified, settings)?;
            verified.compare(log, &reference, &name)?;
            Ok(None)
        }
    }
}

/// What `--against` names, and how messages call it.
fn find_reference(
    place: &str,
    verified: &Verification,
    settings: &Settings,
) -> Result<(Reference, String)> {
    if checkpoints::is_nats(place) {
        let url = (place != "nats").then_some(place);
        let Some(nats) = nats_settings(url, settings) else {
            bail!("there is no `nats:` in hookbus.yaml; write `--against nats://HOST`");
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut heads = Vec::new();
        for VerifyReport { bus, .. } in &verified.buses {
            let head = runtime.block_on(published_head(&nats, *bus))?;
            heads.extend(head.map(|head| SavedHead { bus: *bus, head: Some(head), held: None }));
        }
        return Ok((Reference::Heads(heads), format!("the stream {}", nats.stream)));
    }
    let path = Path::new(place);
    if path.is_dir() {
        let log = LogReader::open(&LogPath::in_home(path))?;
        return Ok((Reference::Log(Box::new(log)), place.to_owned()));
    }
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_SAVED).read_to_end(&mut content))
        .with_context(|| format!("cannot read {place}"))?;
    if content.starts_with(b"SQLite format 3\0") {
        let log = LogReader::open(&LogPath::of_file(path))?;
        return Ok((Reference::Log(Box::new(log)), place.to_owned()));
    }
    let heads = serde_json::from_slice(&content).ok().and_then(|json| read_heads(&json));
    let heads = heads.with_context(|| {
        format!("{place} is neither a saved head nor a log; `hookbus verify --save-head FILE` writes one")
    })?;
    Ok((Reference::Heads(heads), place.to_owned()))
}

/// Reads what `--save-head` and `verify --json` write: one bus, or several under `buses`.
fn read_heads(json: &Value) -> Option<Vec<SavedHead>> {
    let buses = match json.get("buses") {
        Some(buses) => buses.as_array()?.iter().collect(),
        None => vec![json],
    };
    let read = |bus: &Value| {
        let id: BusId = bus.get("bus")?.as_str()?.parse().ok()?;
        let head = bus.get("head")?;
        let head = if head.is_null() {
            None
        } else {
            let seq = Seq::from_i64(head.get("seq")?.as_i64()?);
            let hash = hex::decode(head.get("hash")?.as_str()?).ok()?;
            Some((seq, hash.try_into().ok()?))
        };
        Some(SavedHead { bus: id, head, held: read_held_rows(bus) })
    };
    buses.into_iter().map(read).collect()
}

/// Which rows there were. None in a file of an earlier version.
fn read_held_rows(bus: &Value) -> Option<HeldRows> {
    let gap = |gap: &Value| Some(gap.get(0)?.as_i64()?..=gap.get(1)?.as_i64()?);
    let gaps = bus.get("gaps")?.as_array()?.iter().map(gap).collect::<Option<_>>()?;
    Some(HeldRows { rows: bus.get("rows")?.as_u64()?, gaps })
}

fn save_head(file: &Path, verified: &Verification) -> Result<()> {
    let buses: Vec<Value> = verified
        .buses
        .iter()
        .map(|bus| {
            let (rows, gaps) = (bus.rows, gaps_json(bus));
            json!({"bus": bus.bus.to_string(), "head": head_json(bus), "rows": rows, "gaps": gaps})
        })
        .collect();
    let saved = json!({"time": SystemClock.now().to_string(), "buses": buses});
    let temporary = file.with_extension("part");
    fs::write(&temporary, format!("{saved}\n"))
        .and_then(|()| fs::rename(&temporary, file))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// What is printed beside the verification itself.
struct Report<'a> {
    repaired: Option<Repaired>,
    start: Option<SignedCheckpoint>,
    checkpoints: Option<AgainstCheckpoints>,
    is_archive: bool,
    names: BusNames,
    started: Instant,
    format: Format,
    settings: &'a Settings,
}

impl Report<'_> {
    fn print(&self, verified: &Verification) -> Result<()> {
        if self.format == Format::Json {
            output::line(self.to_json(verified).to_string())?;
            return Ok(());
        }
        let paint = Paint(self.settings.colour);
        let describe_repair = |repaired| describe_repair(repaired, verified.is_sound());
        for line in self.repaired.as_ref().map(describe_repair).unwrap_or_default() {
            output::line(line)?;
        }
        for flaw in &verified.flaws {
            output::line(format!("{}: {}", paint.bad("not sound"), sanitize(&flaw.to_string())))?;
        }
        let took = format_duration(self.started.elapsed());
        for report in &verified.buses {
            let bus = self.names.describe(report.bus);
            output::line(describe(report, &bus, &took, verified.flaws.is_empty(), paint))?;
        }
        if let Some(found) = &self.checkpoints {
            output::line(describe_checkpoints(found))?;
        }
        if let Some(SignedCheckpoint { checkpoint, .. }) = &self.start {
            let (seq, time) = (checkpoint.seq, local_time(checkpoint.time));
            output::line(format!(
                "not checked: rows 1 to {seq}, signed on {}, and the pages and indexes of the file; `hookbus verify` checks \
                 everything",
                time.format("%Y-%m-%d %H:%M")
            ))?;
        }
        Ok(())
    }

    fn to_json(&self, verified: &Verification) -> Value {
        let mut object = to_json(verified, self.repaired.as_ref(), self.is_archive, &self.names);
        let short = |signed: &SignedCheckpoint| {
            let it = &signed.checkpoint;
            json!({"seq": it.seq.as_i64(), "time": it.time.to_string(), "key": it.key.to_string()})
        };
        if let Some(start) = &self.start {
            object.insert("from".to_owned(), short(start));
        }
        if let Some(found) = &self.checkpoints {
            let found = json!({
                "fit": found.fit,
                "removed": found.removed,
                "other_buses": found.other_buses,
                "newest": found.newest.as_ref().map(short),
            });
            object.insert("checkpoints".to_owned(), found);
        }
        Value::Object(object)
    }
}

/// What came of the comparison with checkpoints.
fn describe_checkpoints(found: &AgainstCheckpoints) -> String {
    let number = |of: u64| count(usize::try_from(of).unwrap_or(usize::MAX), "checkpoint");
    let newest = found.newest.as_ref().map_or_else(String::new, |newest| {
        let time = local_time(newest.checkpoint.time).format("%Y-%m-%d %H:%M").to_string();
        format!(", the newest of row {}, {time}", newest.checkpoint.seq)
    });
    let removed = match found.removed {
        0 => String::new(),
        removed => format!("; {} about rows that were removed on purpose", number(removed)),
    };
    format!("{} as signed{newest}{removed}", number(found.fit))
}

fn describe_repair(repaired: &Repaired, is_sound: bool) -> Vec<String> {
    let Repaired { backup: Some(backup), indexes, restored, removed, rows } = repaired else {
        let nothing = if is_sound {
            "nothing to repair"
        } else {
            "nothing here can be repaired; nothing was changed"
        };
        return vec![nothing.to_owned()];
    };
    let mut lines = vec![format!("the log as it was is kept in {}", backup.display())];
    if *indexes {
        lines.push("repaired: the indexes were built again".to_owned());
    }
    if !removed.is_empty() {
        lines.push(format!("repaired: removed {}", sanitize(&removed.join(", "))));
    }
    if !restored.is_empty() {
        lines.push(format!("repaired: restored {}", restored.join(", ")));
    }
    if *rows > 0 {
        let rows = count(usize::try_from(*rows).unwrap_or(usize::MAX), "row");
        lines.push(format!("repaired: the derived columns of {rows} were computed again"));
    }
    lines
}

/// The line about the rows of one bus. In a file with other flaws the rows alone can be sound.
fn describe(
    report: &VerifyReport,
    bus: &str,
    took: &str,
    is_file_sound: bool,
    paint: Paint,
) -> String {
    let VerifyReport { rows, head, flaws, flaw_count, gaps, .. } = report;
    let (removed, redacted) = (describe_removed(report), describe_redacted(report));
    let gaps: Vec<String> = gaps
        .iter()
        .map(|gap| match (gap.start(), gap.end()) {
            (first, last) if first == last => format!("\n  row {first} is missing"),
            (first, last) => format!("\n  rows {first} to {last} are missing"),
        })
        .collect();
    if *flaw_count > 0 {
        let mut listed: Vec<String> =
            flaws.iter().map(|flaw| format!("\n  {}", sanitize(&flaw.to_string()))).collect();
        let more = flaw_count.saturating_sub(flaws.len() as u64);
        if more > 0 {
            listed.push(format!("\n  and {more} more"));
        }
        let word = paint.bad("not sound");
        return format!(
            "{word}: {}{removed}, bus {bus}{}{}",
            counted(*rows, "row"),
            listed.concat(),
            gaps.concat()
        );
    }
    let head = head.map_or_else(String::new, |(seq, hash)| {
        format!(", head {seq} {}", &hex::encode(hash)[..12])
    });
    let word = match (is_file_sound, gaps.is_empty()) {
        (true, true) => "sound",
        (true, false) => "sound, but incomplete",
        (false, true) => "the rows themselves are sound",
        (false, false) => "the rows themselves are sound, but incomplete",
    };
    format!(
        "{}: {}{removed}{redacted}{head} (bus {bus}, {took}){}",
        paint.good(word),
        counted(*rows, "row"),
        gaps.concat()
    )
}

/// What was removed on purpose: `, 40 payloads and 12 rows removed on purpose`.
fn describe_removed(report: &VerifyReport) -> String {
    let number = |of: u64, what| count(usize::try_from(of).unwrap_or(usize::MAX), what);
    let what = match (report.removed_payloads, report.removed_rows) {
        (0, 0) => return String::new(),
        (payloads, 0) => number(payloads, "payload"),
        (0, rows) => number(rows, "row"),
        (payloads, rows) => format!("{} and {}", number(payloads, "payload"), number(rows, "row")),
    };
    format!(", {what} removed on purpose")
}

/// What was redacted on purpose: `, 3 rows redacted on purpose`.
fn describe_redacted(report: &VerifyReport) -> String {
    let number = |of: u64| count(usize::try_from(of).unwrap_or(usize::MAX), "row");
    let unconfirmed = match report.unconfirmed {
        0 => String::new(),
        rows => format!(" (of {} the record is not here)", number(rows)),
    };
    match report.redacted_rows {
        0 => String::new(),
        rows => format!(", {} redacted on purpose{unconfirmed}", number(rows)),
    }
}

/// The log of one bus is one object; an archive has one for each bus under `buses`.
fn to_json(
    verified: &Verification,
    repaired: Option<&Repaired>,
    is_archive: bool,
    names: &BusNames,
) -> Map<String, Value> {
    let file_flaws = verified.flaws.iter();
    let mut object = match verified.buses.as_slice() {
        [own] if !is_archive => {
            let mut object = bus_json(own, names);
            let flaws = own.flaws.iter().chain(file_flaws).map(flaw_json).collect();
            object.insert("flaws".to_owned(), Value::Array(flaws));
            object.insert("sound".to_owned(), json!(verified.is_sound()));
            object
        }
        buses => Map::from_iter([
            ("sound".to_owned(), json!(verified.is_sound())),
            ("flaws".to_owned(), file_flaws.map(flaw_json).collect()),
            ("buses".to_owned(), buses.iter().map(|bus| bus_json(bus, names)).collect()),
        ]),
    };
    if let Some(repaired) = repaired {
        let repaired = json!({
            "backup": repaired.backup.as_ref().map(|file| file.to_string_lossy()),
            "indexes": repaired.indexes,
            "restored": repaired.restored,
            "removed": repaired.removed,
            "rows": repaired.rows,
        });
        object.insert("repaired".to_owned(), repaired);
    }
    object
}

fn bus_json(report: &VerifyReport, names: &BusNames) -> Map<String, Value> {
    let flaws: Vec<Value> = report.flaws.iter().map(flaw_json).collect();
    Map::from_iter([
        ("sound".to_owned(), json!(report.flaw_count == 0)),
        ("whole".to_owned(), json!(report.gaps.is_empty())),
        ("gaps".to_owned(), gaps_json(report)),
        ("bus".to_owned(), json!(report.bus.to_string())),
        ("bus_name".to_owned(), json!(names.name(report.bus))),
        ("rows".to_owned(), json!(report.rows)),
        (
            "removed".to_owned(),
            json!({"payloads": report.removed_payloads, "rows": report.removed_rows}),
        ),
        (
            "redacted".to_owned(),
            json!({"rows": report.redacted_rows, "unconfirmed": report.unconfirmed}),
        ),
        ("first".to_owned(), json!(report.first.map(Seq::as_i64))),
        ("head".to_owned(), head_json(report)),
        ("flaws".to_owned(), Value::Array(flaws)),
        ("flaw_count".to_owned(), json!(report.flaw_count)),
    ])
}

fn gaps_json(report: &VerifyReport) -> Value {
    report.gaps.iter().map(|gap| json!([gap.start(), gap.end()])).collect()
}

fn head_json(report: &VerifyReport) -> Value {
    report
        .head
        .map_or(Value::Null, |(seq, hash)| json!({"seq": seq.as_i64(), "hash": hex::encode(hash)}))
}

fn flaw_json(flaw: &Flaw) -> Value {
    json!({"kind": flaw.kind.as_str(), "seq": flaw.seq.map(Seq::as_i64), "what": flaw.what})
}
