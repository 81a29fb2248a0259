//! `hookbus scan`: which secrets rows of the log still hold, recorded before redaction or with `redact: false`. With
//! `--redact` it replaces them on purpose.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::active::{ActiveRedaction, HooksSource};
use hookbus::dialect::redact_context;
use hookbus::event::{Seq, SystemClock};
use hookbus::log::{
    Elsewhere, Found as WithoutSecrets, LogPath, LogReader, OtherText, Query, ReadError,
    RedactRequest, RedactedRows, Row, redact_rows,
};
use hookbus::pipeline::redact_decision;
use hookbus::redact::{FoundSecret, KnownSecrets, Redacted, Redactor};
use serde_json::json;

use crate::args::{find_session, open_log};
use crate::cli::Exit;
use crate::output::{self, Paint, Progress, count, sanitize};
use crate::prompt::{self, PromptOn};
use crate::prune::user_at_host;
use crate::settings::{Format, Settings};

/// How many rows are named for each kind.
const NAMED: usize = 5;

/// The arguments of `hookbus scan`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only this session: its id, a unique prefix of it, its short form, or `last`
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Replace what is found by marks, on purpose, with a record of it in the chain
    #[arg(long)]
    redact: bool,
    /// With --redact: say what would be replaced, and replace nothing
    #[arg(long, requires = "redact")]
    dry_run: bool,
    /// With --redact: replace it without a question
    #[arg(long, short, requires = "redact")]
    yes: bool,
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
    let built_in = active.built_in().map(Arc::new);
    let Some(redactor) = &redactor.or(built_in) else {
        anyhow::bail!("the built-in detectors cannot be used; please report this");
    };
    let query = Query { session: session.clone(), ..Query::default() };
    let (rows, found) = scan(&log, &query, redactor)?;
    let is_clean = found.is_empty();
    if arguments.redact && !arguments.dry_run {
        if format == Format::Text && !is_clean {
            print(rows, &found, Paint(settings.colour))?;
        }
        let request = RedactRequest { session, by: user_at_host() };
        let ask = !arguments.yes && !is_clean;
        return redact(&request, redactor, ask, format, settings);
    }
    match format {
        Format::Json => output::line(to_json(rows, &found).to_string())?,
        Format::Text => print(rows, &found, Paint(settings.colour))?,
    }
    Ok(if is_clean { Exit::Success } else { Exit::Failure })
}

/// Replaces the secrets. Also if none were found: a run that was interrupted may have left something to do for the file.
fn redact(
    request: &RedactRequest,
    redactor: &Arc<Redactor>,
    ask: bool,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    if ask {
        if !prompt::is_interactive(PromptOn::Stderr) {
            bail!("nobody can be asked here; pass `--yes` to redact these rows, or `--dry-run`");
        }
        let question = "replace these secrets by marks? It cannot be undone.";
        if !prompt::yes_no(PromptOn::Stderr, question)? {
            output::to_stderr("nothing was redacted");
            return Ok(Exit::Failure);
        }
    }
    let head = open_log(settings)?.head()?.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::new(head.unsigned_abs(), "rows");
    let find = |bytes: &[u8]| {
        let Redacted { bytes, found } = redactor.redact(bytes);
        let Cow::Owned(bytes) = bytes else { return None };
        let kinds = found.iter().map(|secret| secret.kind.clone()).collect();
        Some(WithoutSecrets { bytes, kinds, elsewhere: elsewhere(found, redactor) })
    };
    let log = LogPath::in_home(&settings.home);
    let done = redact_rows(&log, request, &find, &SystemClock, |seq| {
        progress.update(seq.unsigned_abs());
    })?;
    drop(progress);
    report(&done, format)?;
    let is_clean = done.held.is_empty() && done.damaged == 0;
    Ok(if is_clean { Exit::Success } else { Exit::Failure })
}

/// Finds the secrets of a payload in what else the log holds about the event.
fn elsewhere(found: Vec<FoundSecret>, redactor: &Arc<Redactor>) -> Option<Elsewhere> {
    let (known, redactor) = (KnownSecrets::of(&found)?, Arc::clone(redactor));
    Some(Elsewhere::new(move |text| match text {
        OtherText::Column(text) => known.mark_of(text),
        OtherText::Context(text) => redact_context(text, &known),
        OtherText::Decision(text) => {
            let clean = redact_decision(text.as_bytes(), &redactor, &found, Some(&known))?;
            String::from_utf8(clean).ok()
        }
    }))
}

fn report(done: &RedactedRows, format: Format) -> Result<()> {
    let number = |of: u64, what| count(usize::try_from(of).unwrap_or(usize::MAX), what);
    if format == Format::Json {
        output::line(
            json!({
                "redacted": done.rows,
                "secrets": done.secrets,
                "damaged": done.damaged,
                "held": done.held,
                "bytes_before": done.bytes_before,
                "bytes_after": done.bytes_after,
            })
            .to_string(),
        )?;
        return Ok(());
    }
    output::line(match done.rows {
        0 => "nothing to redact".to_owned(),
        rows => format!(
            "redacted {} in {}; `hookbus log --kind log.redacted` tells which",
            number(done.secrets, "secret"),
            number(rows, "row")
        ),
    })?;
    for session in &done.held {
        let session = sanitize(session);
        output::line(format!(
            "session {session} is held and stays as it is; `hookbus hold --release {session}` allows it to be redacted"
        ))?;
    }
    if done.damaged > 0 {
        let rows = number(done.damaged, "row");
        output::line(format!("{rows} with secrets not as recorded; `hookbus verify` shows them"))?;
    }
    Ok(())
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
fn secrets_in(row: &Row, redactor: &Redactor) -> Vec<FoundSecret> {
    if ["hooks.loaded", "log.pruned", "log.redacted", "log.checkpoint"].contains(&row.kind.as_str())
    {
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
        "hookbus log --seq N --raw shows a row. Change these secrets where they were issued; `hookbus scan --redact` \
         replaces them here.",
    )?;
    Ok(())
}
