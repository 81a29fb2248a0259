//! `hookbus observe`: one observer, in the foreground.

use std::io;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hookbus::decide::{HooksSource, Observer, Source, Start, did_you_mean};
use hookbus::event::SystemClock;
use hookbus::log::LogPath;
use hookbus::relay::NatsSettings;
use hookbus_subscribers::{Assignment, Reading, Stop, Tally, observe, observe_replay};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::Ending;
use crate::output::{self, count};
use crate::serve::write_down_here;
use crate::settings::{Format, Settings};

/// `hookbus observe`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The observer's name in hookbus.yaml (a hook with `mode: observe`).
    name: String,
    /// Where it reads: this machine's log, or the stream of all buses (default: NATS if there is one).
    #[arg(long)]
    source: Option<WhereToRead>,
    /// Where it starts if it is new: with what comes now, or with the first event there is.
    #[arg(long)]
    from: Option<WhereToStart>,
    /// Leave when nothing is left to do.
    #[arg(long)]
    drain: bool,
    /// Read what `hookbus replay --to-observers --publish` published as this run, and leave.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["source", "from", "drain"])]
    replay: Option<String>,
    /// The NATS servers, in place of those in hookbus.yaml (also `HOOKBUS_NATS_URL`).
    #[arg(long, value_name = "URL,URL…")]
    nats: Option<String>,
    /// As the daemon starts it: leave at the end of stdin.
    #[arg(long, hide = true)]
    supervised: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WhereToRead {
    Log,
    Nats,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WhereToStart {
    Now,
    Start,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Ending> {
    let source = arguments.source.map(|source| match source {
        WhereToRead::Log => Source::Log,
        WhereToRead::Nats => Source::Nats,
    });
    let mut assignment = assignment(&arguments.name, source, arguments.nats.as_deref(), settings)?;
    assignment.start = arguments.from.map(|from| match from {
        WhereToStart::Now => Start::Now,
        WhereToStart::Start => Start::First,
    });
    assignment.leaves_when_done = arguments.drain;
    write_down_here(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Tally { handled, set_aside, elsewhere, trouble } = runtime.block_on(async {
        let stop = stop_when_told(arguments.supervised)?;
        match &arguments.replay {
            Some(run) => Ok::<_, anyhow::Error>(observe_replay(assignment, run, stop).await?),
            None => Ok(observe(assignment, stop).await),
        }
    })?;
    match format {
        Format::Json => {
            output::line(json!({"handled": handled, "set_aside": set_aside}).to_string())?;
        }
        Format::Text if arguments.supervised => {}
        Format::Text => output::line(format!(
            "{} handled, {set_aside} set aside{}",
            count(usize::try_from(handled).unwrap_or(usize::MAX), "event"),
            if set_aside > 0 { "; `hookbus dead list` shows them" } else { "" },
        ))?,
    }
    if let Some(trouble) = trouble {
        bail!("{trouble}");
    }
    if elsewhere {
        output::aside("another worker is at work on this observer, and has the rest");
        return Ok(Ending::No);
    }
    Ok(Ending::Yes)
}

/// Everything that the observer `name` needs to work.
pub(crate) fn assignment(
    name: &str,
    source: Option<Source>,
    nats: Option<&str>,
    settings: &Settings,
) -> Result<Assignment> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let in_force = hooks.in_force();
    let Some(observer) = in_force.hooks.observer(name) else {
        bail!("{}", nobody(name, &hooks));
    };
    let urls = settings.nats_urls(nats);
    let nats = NatsSettings::chosen(in_force.hooks.nats.clone(), urls.as_deref());
    let reading = match (source.or(observer.terms().source), nats) {
        (Some(Source::Log), _) | (None, None) => Reading::Log,
        (Some(Source::Nats) | None, Some(nats)) => Reading::Nats(Box::new(nats)),
        (Some(Source::Nats), None) => {
            bail!(
                "no NATS server is configured; add `nats: {{ url: … }}` to {}, or say --nats URL",
                hooks.file().display()
            )
        }
    };
    Ok(Assignment {
        observer: Arc::new(observer),
        reading,
        home: settings.home.clone(),
        env: std::env::vars_os().collect(),
        clock: Arc::new(SystemClock),
        start: None,
        leaves_when_done: false,
    })
}

fn nobody(name: &str, hooks: &HooksSource) -> String {
    let observers = hooks.in_force().hooks.observers();
    let names: Vec<&str> = observers.iter().map(Observer::name).collect();
    let file = hooks.file().display();
    if let Some(problem) = hooks.in_force().standing.problem() {
        return format!("{file}: {problem}; mend it first (`hookbus hooks list`)");
    }
    if names.is_empty() {
        return format!("{file} has no observers; write a hook with `mode: observe`");
    }
    let near = did_you_mean(name, names.iter().copied());
    let hint = near.map_or_else(
        || format!("it has {}", names.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    format!("{file} has no observer `{name}`; {hint}")
}

/// SIGTERM, SIGINT, and the end of stdin where a daemon holds the other end.
fn stop_when_told(supervised: bool) -> Result<Stop> {
    let (tell, stop) = watch::channel(false);
    let mut terminated = signal(SignalKind::terminate()).context("no signals")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("no signals")?;
    let tell = Arc::new(tell);
    if supervised {
        let tell = Arc::clone(&tell);
        // In a thread of its own, which nobody waits for: reading stdin cannot be broken off.
        std::thread::spawn(move || {
            // An error is an end as well.
            drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
            tell.send_replace(true);
        });
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        tell.send_replace(true);
    });
    Ok(stop)
}
