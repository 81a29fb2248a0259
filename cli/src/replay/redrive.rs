//! `hookbus replay --to-observers`: recorded events for observers, once more.

use std::time::Duration;

use anyhow::{Result, bail};
use hookbus::decide::HooksSource;
use hookbus::event::{BusId, Clock, EventId, Seq, SystemClock, Time};
use hookbus::log::{DamagedRow, LogPath, LogReader, Row, Selection};
use hookbus_subscribers::{Redelivery, ReplayPublisher};
use serde_json::{Value, json};

use super::options::{Arguments, Pace};
use super::scene::{locate, selection};
use crate::args::nats_settings;
use crate::cli::Exit;
use crate::observe::assignment;
use crate::output::{self, Progress, count};
use crate::prompt::{PromptOn, confirm, is_interactive};
use crate::settings::{Format, Settings};

pub(super) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    if !arguments.selects() {
        bail!("say what to re-drive: a session, `last`, a filter such as `--since 7d`, or `--all`");
    }
    let located = locate(arguments, settings)?;
    let log = LogReader::open(&located.log)?;
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

/// Gives the events to observers right here.
async fn deliver(
    log: &LogReader,
    selection: &Selection,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let mut observers = observers(arguments, settings)?;
    if arguments.dry_run {
        return tell(&observers, log, selection, format).await;
    }
    if !may_run(&observers, arguments)? {
        bail!("nothing was given to anybody");
    }
    let mut results: Vec<(u64, u64, Option<String>)> = vec![(0, 0, None); observers.len()];
    let mut walk = Walk::of(log, selection, arguments.pace)?;
    while let Some(row) = walk.next().await? {
        for (observer, (given, failed, error)) in observers.iter_mut().zip(&mut results) {
            match observer.deliver(walk.bus, &row).await {
                Ok(true) => *given += 1,
                Ok(false) => {}
                Err(why) => {
                    *failed += 1;
                    error.get_or_insert(format!("row {}: {why}", row.seq));
                }
            }
        }
    }
    drop(walk);
    let names = observers.iter().map(|observer| observer.observer().name());
    let all: Vec<Value> = names
        .zip(&results)
        .map(|(name, (given, failed, error))| {
            json!({"observer": name, "given": given, "failed": failed, "error": error})
        })
        .collect();
    match format {
        Format::Json => output::line(json!({"observers": all}).to_string())?,
        Format::Text => {
            for one in &all {
                let error = one["error"]
                    .as_str()
                    .map_or_else(String::new, |error| format!(" ({})", output::sanitize(error)));
                let name = one["observer"].as_str().unwrap_or_default();
                let given = count(usize::try_from(one["given"].as_u64().unwrap_or(0))?, "event");
                output::line(format!("{name:<24} {given}, {} failed{error}", one["failed"]))?;
            }
        }
    }
    let well = results.iter().all(|(_, failed, _)| *failed == 0);
    Ok(if well { Exit::Success } else { Exit::Failure })
}

fn observers(arguments: &Arguments, settings: &Settings) -> Result<Vec<Redelivery>> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let names: Vec<String> = if arguments.observer.is_empty() {
        let all = hooks.in_force().hooks.observers();
        all.iter().map(|observer| observer.name().to_owned()).collect()
    } else {
        arguments.observer.clone()
    };
    if names.is_empty() {
        bail!("{} has no observers; write a hook with `mode: observe`", hooks.file().display());
    }
    names.iter().map(|name| Ok(Redelivery::new(assignment(name, None, None, settings)?))).collect()
}

/// What would be given to whom.
async fn tell(
    observers: &[Redelivery],
    log: &LogReader,
    selection: &Selection,
    format: Format,
) -> Result<Exit> {
    let mut wanted = vec![0; observers.len()];
    let mut walk = Walk::of(log, selection, Pace(None))?;
    while let Some(row) = walk.next().await? {
        for (observer, times) in observers.iter().zip(&mut wanted) {
            *times += usize::from(observer.observer().wants(&row).is_some());
        }
    }
    drop(walk);
    let all = observers.iter().map(|observer| observer.observer().name()).zip(wanted);
    match format {
        Format::Json => {
            let all: Vec<Value> = all
                .map(|(name, times)| json!({"observer": name, "would_be_given": times}))
                .collect();
            output::line(json!({"observers": all}).to_string())?;
        }
        Format::Text => {
            for (name, times) in all {
                output::line(format!("{name:<24} would be given {}", count(times, "event")))?;
            }
        }
    }
    Ok(Exit::Success)
}

/// What observers do they do for real.
fn may_run(observers: &[Redelivery], arguments: &Arguments) -> Result<bool> {
    if arguments.yes {
        return Ok(true);
    }
    for observer in observers {
        let name = observer.observer().name();
        output::to_stderr(format!("would run for real, with HOOKBUS_REPLAY=1: {name}"));
    }
    if !is_interactive(PromptOn::Stderr) {
        bail!("these observers would run; add --yes (--observer NAME picks some of them)");
    }
    confirm(PromptOn::Stderr, "Give them these events?")
}

/// Publishes the events on subjects of their own.
async fn publish(
    log: &LogReader,
    selection: &Selection,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let Some(nats) = nats_settings(arguments.to_nats.as_deref(), settings) else {
        bail!(
            "no NATS server is configured; say --to-nats URL, or add `nats: {{ url: … }}` to {}",
            settings.home.join("hookbus.yaml").display()
        );
    };
    if arguments.dry_run {
        let mut walk = Walk::of(log, selection, Pace(None))?;
        let mut rows = 0;
        while walk.next().await?.is_some() {
            rows += 1;
        }
        drop(walk);
        output::line(match format {
            Format::Json => json!({"would_be_published": rows}).to_string(),
            Format::Text => format!("{} would be published", count(rows, "event")),
        })?;
        return Ok(Exit::Success);
    }
    let run = EventId::mint(SystemClock.now()).to_string();
    let run = run[run.len() - 12..].to_owned();
    let mut publisher = ReplayPublisher::start(&nats, &run).await?;
    let subjects = publisher.subjects();
    let mut walk = Walk::of(log, selection, arguments.pace)?;
    let mut published = 0;
    while let Some(row) = walk.next().await? {
        publisher.publish(walk.bus, &row).await?;
        published += 1;
    }
    drop(walk);
    publisher.finish().await?;
    output::line(match format {
        Format::Json => {
            json!({"run": run, "subjects": subjects, "published": published}).to_string()
        }
        Format::Text => format!(
            "{} published on {subjects}\n`hookbus observe <name> --replay {run}` gives them to an observer",
            count(published, "event")
        ),
    })?;
    Ok(Exit::Success)
}

/// The selected rows, decisions included, in recorded order and at the pace that was asked for.
struct Walk<'a> {
    log: &'a LogReader,
    selection: &'a Selection,
    bus: BusId,
    pace: Pace,
    page: std::vec::IntoIter<Result<Row, DamagedRow>>,
    last: Option<Seq>,
    before: Option<Time>,
    progress: Progress,
}

/// How many rows are read in one go.
const PAGE: usize = 500;

impl<'a> Walk<'a> {
    fn of(log: &'a LogReader, selection: &'a Selection, pace: Pace) -> Result<Self> {
        let extent = log.extent(selection)?;
        let whole = log.head()?.map_or(0, |(seq, _)| seq.as_i64().unsigned_abs());
        let before_it = Seq::from_i64(extent.start().saturating_sub(1));
        Ok(Self {
            log,
            selection,
            bus: log.bus()?,
            pace,
            page: Vec::new().into_iter(),
            last: Some(before_it),
            before: None,
            progress: Progress::new(whole, "rows"),
        })
    }

    async fn next(&mut self) -> Result<Option<Row>> {
        loop {
            let Some(row) = self.page.next() else {
                let page = self.log.after_damage(&self.selection.query, self.last, PAGE)?;
                if page.is_empty() {
                    return Ok(None);
                }
                self.page = page.into_iter();
                continue;
            };
            let row = match row {
                Ok(row) => row,
                Err(row) => {
                    self.last = Some(row.seq);
                    output::to_stderr(format!("{row}: left out"));
                    continue;
                }
            };
            self.last = Some(row.seq);
            self.progress.update(row.seq.as_i64().unsigned_abs());
            let sessions = &self.selection.sessions;
            if !sessions.is_empty() && !sessions.contains(&row.session) {
                continue;
            }
            self.wait_for(row.at).await;
            return Ok(Some(row));
        }
    }

    /// As long as it was then, or a part of it.
    async fn wait_for(&mut self, at: Time) {
        if let (Some(factor), Some(before)) = (self.pace.0, self.before) {
            let then = at.since(before).as_secs_f64() / factor;
            tokio::time::sleep(Duration::try_from_secs_f64(then).unwrap_or_default()).await;
        }
        self.before = Some(at);
    }
}
