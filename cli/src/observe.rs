//! `hookbus observe`: runs one observer in the foreground.

use std::io;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hookbus::active::HooksSource;
use hookbus::config::{NatsSettings, ObserverSource, StartAt, did_you_mean};
use hookbus::event::SystemClock;
use hookbus::log::LogPath;
use hookbus_subscribers::{
    Assignment, ObserveSummary, Observer, ReadFrom, StopSignal, observe, observe_replay,
};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::Exit;
use crate::output::{self, count};
use crate::serve::log_to_stderr;
use crate::settings::{Format, Settings};

/// `hookbus observe`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The name of the observer in hookbus.yaml (a hook with `mode: observe`).
    name: String,
    /// Read this machine's log, or the stream of all buses (default: NATS if it is configured).
    #[arg(long)]
    source: Option<SourceChoice>,
    /// Where a new observer starts: when it was added to hookbus.yaml, or at the first event there is.
    #[arg(long)]
    from: Option<StartChoice>,
    /// Exit once every event that is there has been handled.
    #[arg(long)]
    drain: bool,
    /// Read what `hookbus replay --to-observers --publish` published as this run, and exit.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["source", "from", "drain"])]
    replay: Option<String>,
    /// NATS servers to use instead of those in hookbus.yaml (also `HOOKBUS_NATS_URL`).
    #[arg(long, value_name = "URL,URL…")]
    nats: Option<String>,
    /// Set by the daemon: exit at the end of stdin, and print no summary.
    #[arg(long, hide = true)]
    supervised: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SourceChoice {
    Log,
    Nats,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StartChoice {
    Now,
    Start,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let source = arguments.source.map(|source| match source {
        SourceChoice::Log => ObserverSource::Log,
        SourceChoice::Nats => ObserverSource::Nats,
    });
    let mut assignment = assignment(&arguments.name, source, arguments.nats.as_deref(), settings)?;
    assignment.start = arguments.from.map(|from| match from {
        StartChoice::Now => StartAt::Now,
        StartChoice::Start => StartAt::First,
    });
    assignment.exit_when_drained = arguments.drain;
    log_to_stderr(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let summary = runtime.block_on(async {
        let stop = stop_signal(arguments.supervised)?;
        match &arguments.replay {
            Some(run) => Ok::<_, anyhow::Error>(observe_replay(assignment, run, stop).await?),
            None => Ok(observe(assignment, stop).await),
        }
    })?;
    let ObserveSummary { handled, failed, refused, held_elsewhere, error } = summary;
    match format {
        Format::Json => {
            output::line(
                json!({"handled": handled, "set_aside": failed, "refused": refused}).to_string(),
            )?;
        }
        Format::Text if arguments.supervised => {}
        Format::Text => output::line(format!(
            "{} handled, {failed} failed{}{}",
            count(usize::try_from(handled).unwrap_or(usize::MAX), "event"),
            if refused > 0 { format!(", {refused} refused") } else { String::new() },
            if failed + refused > 0 && arguments.replay.is_none() {
                "; `hookbus dead list` shows them"
            } else {
                ""
            },
        ))?,
    }
    if let Some(error) = error {
        return Err(error.into());
    }
    if held_elsewhere {
        output::to_stderr("another worker of this observer is running and handles the rest");
        return Ok(Exit::Failure);
    }
    Ok(Exit::Success)
}

/// The observer `name`, with everything that its workers need.
pub(crate) fn assignment(
    name: &str,
    source: Option<ObserverSource>,
    nats: Option<&str>,
    settings: &Settings,
) -> Result<Assignment> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let active = hooks.active();
    let Some(observer) = Observer::find(&active, name) else {
        bail!("{}", no_such_observer(name, &hooks));
    };
    let urls = settings.nats_urls(nats);
    let nats = NatsSettings::with_servers(active.file.nats.clone(), urls.as_deref());
    let read_from = match (source.or(observer.settings().source), nats) {
        (Some(ObserverSource::Log), _) | (None, None) => ReadFrom::Log,
        (Some(ObserverSource::Nats) | None, Some(nats)) => ReadFrom::Nats(Box::new(nats)),
        (Some(ObserverSource::Nats), None) => {
            bail!(
                "no NATS server is configured; add `nats: {{ url: … }}` to {}, or pass --nats URL",
                hooks.file().display()
            )
        }
    };
    let mut env = settings.environment();
    if settings.is_pinned {
        // A command that calls hookbus itself (`hookbus boot`) finds the same home.
        env.push(("HOOKBUS_HOME".into(), settings.home.clone().into()));
    }
    Ok(Assignment {
        observer: Arc::new(observer),
        read_from,
        home: settings.home.clone(),
        env: env.into(),
        clock: Arc::new(SystemClock),
        start: None,
        exit_when_drained: false,
    })
}

fn no_such_observer(name: &str, hooks: &HooksSource) -> String {
    let active = hooks.active();
    let names = active.file.observer_names();
    let file = hooks.file().display();
    if let Some(problem) = active.status.problem() {
        return format!(
            "{file}: {problem}; fix it first (`hookbus hooks list` shows all problems)"
        );
    }
    if names.is_empty() {
        return format!("{file} has no observers; add a hook with `mode: observe`");
    }
    let near = did_you_mean(name, names.iter().copied());
    let hint = near.map_or_else(
        || format!("it has {}", names.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    format!("{file} has no observer `{name}`; {hint}")
}

/// Becomes true on SIGTERM, on SIGINT and, for a supervised observer, when the daemon closes its stdin.
fn stop_signal(supervised: bool) -> Result<StopSignal> {
    let (sender, stop) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate()).context("cannot handle SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot handle SIGINT")?;
    let sender = Arc::new(sender);
    if supervised {
        let sender = Arc::clone(&sender);
        // Reading stdin cannot be cancelled, so it has a thread that is never joined.
        std::thread::spawn(move || {
            // An error counts as the end of stdin.
            drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
            sender.send_replace(true);
        });
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        sender.send_replace(true);
    });
    Ok(stop)
}
