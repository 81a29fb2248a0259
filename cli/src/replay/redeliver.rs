//! `hookbus replay --to-observers`: delivers recorded events to observers again, here or through NATS.

use std::time::Duration;

use anyhow::{Result, bail};
use hookbus::active::HooksSource;
use hookbus::event::{BusId, Clock, EventId, Seq, SystemClock, Time};
use hookbus::log::{DamagedRow, LogPath, LogReader, Row, Selection};
use hookbus_subscribers::{Observer, Redelivery, ReplayPublisher};
use serde_json::{Value, json};

use super::input::{InputLog, selection};
use super::options::{Arguments, Pace};
use crate::args::nats_settings;
use crate::cli::Exit;
use crate::observe::assignment;
use crate::output::{self, Progress, count, pad};
use crate::prompt::{PromptOn, is_interactive, yes_no};
use crate::settings::{Format, Settings};

pub(super) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    if !arguments.selects() {
        bail!("say what to deliver: a session, `last`, a filter such as `--since 7d`, or `--all`");
    }
    let input = InputLog::locate(arguments, settings)?;
    let log = LogReader::open(&input.path)?;
    let selection = selection(arguments, &log)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if arguments.publish {
            publish(&log, &selection, arguments, format, settings).await
        } else {
            deliver(&log, &selection, arguments, format, settings).await
        }
    })
}

/// Delivers the events to observers in this process.
async fn deliver(
    log: &LogReader,
    selection: &Selection,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let mut observers = observers(arguments, settings)?;
    if arguments.dry_run {
        return dry_run(&observers, log, selection, format).await;
    }
    if !confirm(&observers, arguments)? {
        bail!("no event was delivered");
    }
    let mut results: Vec<Delivered> = vec![Delivered::default(); observers.len()];
    let mut rows = SelectedRows::new(log, selection, arguments.pace)?;
    while let Some(row) = rows.next().await? {
        for (observer, result) in observers.iter_mut().zip(&mut results) {
            match observer.deliver(rows.bus, &row).await {
                Ok(true) => result.events += 1,
                Ok(false) => {}
                Err(error) => {
                    result.failed += 1;
                    result.error.get_or_insert(format!("row {}: {error}", row.seq));
                }
            }
        }
    }
    drop(rows);
    let names = observers.iter().map(|observer| observer.observer().name());
    print_results(names.zip(&results), format)?;
    let is_complete = results.iter().all(|result| result.failed == 0);
    Ok(if is_complete { Exit::Success } else { Exit::Failure })
}

/// What one observer received.
#[derive(Debug, Clone, Default)]
struct Delivered {
    events: usize,
    failed: usize,
    /// The first error.
    error: Option<String>,
}

fn print_results<'a>(
    results: impl Iterator<Item = (&'a str, &'a Delivered)>,
    format: Format,
) -> Result<()> {
    match format {
        Format::Json => {
            let results: Vec<Value> = results
                .map(|(name, Delivered { events, failed, error })| {
                    json!({"observer": name, "given": events, "failed": failed, "error": error})
                })
                .collect();
            output::line(json!({"observers": results}).to_string())?;
        }
        Format::Text => {
            for (name, Delivered { events, failed, error }) in results {
                let error = error.as_ref().map(|error| format!(" ({})", output::sanitize(error)));
                let error = error.unwrap_or_default();
                let events = count(*events, "event");
                let label = format!("{} ", pad(&output::sanitize(name), 24));
                output::labelled(&label, &format!("{events}, {failed} failed{error}"))?;
            }
        }
    }
    Ok(())
}

fn observers(arguments: &Arguments, settings: &Settings) -> Result<Vec<Redelivery>> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let names: Vec<String> = if arguments.observer.is_empty() {
        let all = Observer::all(&hooks.active());
        all.iter().map(|observer| observer.name().to_owned()).collect()
    } else {
        arguments.observer.clone()
    };
    if names.is_empty() {
        bail!("{} has no observers; add a hook with `mode: observe`", hooks.file().display());
    }
    names.iter().map(|name| Ok(Redelivery::new(assignment(name, None, None, settings)?))).collect()
}

/// Counts the events that each observer would receive.
async fn dry_run(
    observers: &[Redelivery],
    log: &LogReader,
    selection: &Selection,
    format: Format,
) -> Result<Exit> {
    let mut counts = vec![0; observers.len()];
    let mut rows = SelectedRows::new(log, selection, Pace(None))?;
    while let Some(row) = rows.next().await? {
        for (observer, events) in observers.iter().zip(&mut counts) {
            *events += usize::from(observer.observer().matching_entry(&row).is_some());
        }
    }
    drop(rows);
    let counts = observers.iter().map(|observer| observer.observer().name()).zip(counts);
    match format {
        Format::Json => {
            let counts: Vec<Value> = counts
                .map(|(name, events)| json!({"observer": name, "would_be_given": events}))
                .collect();
            output::line(json!({"observers": counts}).to_string())?;
        }
        Format::Text => {
            for (name, events) in counts {
                let label = format!("{} ", pad(&output::sanitize(name), 24));
                let what = format!("would receive {}", count(events, "event"));
                output::labelled(&label, &what)?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Asks the user first, because observers have real effects.
fn confirm(observers: &[Redelivery], arguments: &Arguments) -> Result<bool> {
    if arguments.yes {
        return Ok(true);
    }
    for observer in observers {
        let name = observer.observer().name();
        output::to_stderr(format!("would run, with HOOKBUS_REPLAY=1: {name}"));
    }
    if !is_interactive(PromptOn::Stderr) {
        bail!(
            "these observers would run; add --yes to run them (--observer NAME selects some of them)"
        );
    }
    yes_no(PromptOn::Stderr, "Deliver the events to them?")
}

/// Publishes the events on replay subjects.
async fn publish(
    log: &LogReader,
    selection: &Selection,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let Some(nats) = nats_settings(arguments.to_nats.as_deref(), settings) else {
        bail!(
            "no NATS server is configured; name one with --to-nats URL, or add `nats: {{ url: … }}` to {}",
            settings.home.join("hookbus.yaml").display()
        );
    };
    if arguments.dry_run {
        let mut rows = SelectedRows::new(log, selection, Pace(None))?;
        let mut events = 0;
        while rows.next().await?.is_some() {
            events += 1;
        }
        drop(rows);
        output::line(match format {
            Format::Json => json!({"would_be_published": events}).to_string(),
            Format::Text => format!("{} would be published", count(events, "event")),
        })?;
        return Ok(Exit::Success);
    }
    let run = EventId::mint(SystemClock.now()).to_string();
    let run = run[run.len() - 12..].to_owned();
    let mut publisher = ReplayPublisher::start(&nats, &run).await?;
    let subjects = publisher.subjects();
    let mut rows = SelectedRows::new(log, selection, arguments.pace)?;
    let mut published = 0;
    while let Some(row) = rows.next().await? {
        publisher.publish(rows.bus, &row).await?;
        published += 1;
    }
    drop(rows);
    publisher.finish().await?;
    output::line(match format {
        Format::Json => {
            json!({"run": run, "subjects": subjects, "published": published}).to_string()
        }
        Format::Text => format!(
            "{} published on {subjects}\ndeliver them with `hookbus observe <name> --replay {run}`",
            count(published, "event")
        ),
    })?;
    Ok(Exit::Success)
}

/// Rows that are read at a time.
const PAGE: usize = 500;

/// The selected rows with their decisions, in log order and at the given pace.
struct SelectedRows<'a> {
    log: &'a LogReader,
    selection: &'a Selection,
    bus: BusId,
    pace: Pace,
    page: std::vec::IntoIter<Result<Row, DamagedRow>>,
    /// Position of the last row that was read.
    last: Option<Seq>,
    /// Time of the last row that was returned.
    previous: Option<Time>,
    progress: Progress,
}

impl<'a> SelectedRows<'a> {
    fn new(log: &'a LogReader, selection: &'a Selection, pace: Pace) -> Result<Self> {
        let range = log.replay().selected_range(selection)?;
        let total = log.head()?.map_or(0, |(seq, _)| seq.as_i64().unsigned_abs());
        let before_first = Seq::from_i64(range.start().saturating_sub(1));
        Ok(Self {
            log,
            selection,
            bus: log.bus()?,
            pace,
            page: Vec::new().into_iter(),
            last: Some(before_first),
            previous: None,
            progress: Progress::new(total, "rows"),
        })
    }

    async fn next(&mut self) -> Result<Option<Row>> {
        loop {
            let Some(row) = self.page.next() else {
                let page = self.log.after_with_damage(&self.selection.query, self.last, PAGE)?;
                if page.is_empty() {
                    return Ok(None);
                }
                self.page = page.into_iter();
                continue;
            };
            let row = match row {
                Ok(row) => row,
                Err(damaged) => {
                    self.last = Some(damaged.seq);
                    output::to_stderr(format!("{damaged}: skipped"));
                    continue;
                }
            };
            self.last = Some(row.seq);
            self.progress.update(row.seq.as_i64().unsigned_abs());
            let sessions = &self.selection.sessions;
            if !sessions.is_empty() && !sessions.contains(&row.session) {
                continue;
            }
            self.wait_until_due(row.at).await;
            return Ok(Some(row));
        }
    }

    /// Waits as long as between the recorded events, divided by the factor of the pace.
    async fn wait_until_due(&mut self, at: Time) {
        if let (Some(factor), Some(previous)) = (self.pace.0, self.previous) {
            let delay = at.since(previous).as_secs_f64() / factor;
            tokio::time::sleep(Duration::try_from_secs_f64(delay).unwrap_or_default()).await;
        }
        self.previous = Some(at);
    }
}
