//! `hookbus serve`: runs the daemon, in the foreground or (as hooks start it) in the background, and sets up where
//! it logs.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::bus::Bus;
use hookbus::files::rotate_if_large;
use hookbus::server::{Daemon, DaemonOptions, Lifetime, ObserverProgram, ServeError};
use hookbus::sys::descriptors::close_inherited;
use hookbus::sys::process::start_session;
use tracing_subscriber::EnvFilter;

use crate::cli::Exit;
use crate::settings::Settings;
use crate::status::describe_hung_daemon;

/// How often the daemon checks the size of hookbus.log.
const ROTATION_INTERVAL: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  hookbus serve                           Run until `hookbus stop` or Ctrl-C
  hookbus serve --idle 600                Exit after ten minutes without a call
  hookbus serve --nats nats://nats1:4222  Relay the log to this NATS server";

/// The arguments of `hookbus serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Exit after this many seconds without a call [default: never]
    #[arg(long, value_name = "SECONDS")]
    idle: Option<f64>,
    /// NATS servers, separated by commas [default: `HOOKBUS_NATS_URL`, else hookbus.yaml]
    #[arg(long, value_name = "URLS")]
    nats: Option<String>,
    /// Do not start observers (they run elsewhere, or by hand)
    #[arg(long)]
    no_observers: bool,
    /// Run as if started by a hook
    ///
    /// Detaches from the terminal, logs to hookbus.log in the home and exits after `HOOKBUS_IDLE`
    /// seconds (900) without a call.
    #[arg(long)]
    background: bool,
}

pub(crate) fn run(arguments: &Arguments, settings: &Settings) -> Result<Exit> {
    let idle = arguments.idle.map(Duration::try_from_secs_f64).transpose();
    let idle = idle.context("--idle takes a number of seconds; write `--idle 600`")?;
    let lifetime = match (idle, arguments.background) {
        (Some(after), _) => Lifetime::UntilIdle(after),
        (None, true) => Lifetime::UntilIdle(settings.idle),
        (None, false) => Lifetime::UntilStopped,
    };
    if arguments.background {
        // The hook that started us may have been given more descriptors than its own three.
        close_inherited();
        start_session();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let home = &settings.home;
    runtime.block_on(async {
        let plans = DaemonOptions {
            lifetime,
            nats_urls: settings.nats_urls(arguments.nats.as_deref()),
            observers: observer_program(arguments, settings).filter(|_| !arguments.no_observers),
        };
        let daemon = match Daemon::start(home, plans, || {
            Bus::for_daemon(home, &settings.spool_fallbacks)
        }) {
            Ok(daemon) => daemon,
            // Another hook started a daemon at the same time.
            Err(ServeError::Running(_)) if arguments.background => return Ok(Exit::Success),
            Err(ServeError::Running(home)) if let Some(hung) = describe_hung_daemon(settings) => {
                bail!("a daemon is {hung} (for {})", home.display())
            }
            Err(error) => return Err(error.into()),
        };
        start_logging(arguments, settings)?;
        let rotation = arguments.background.then(|| tokio::spawn(rotate_log(log_file(settings))));
        let served = daemon.serve().await.context("the daemon failed");
        if let Some(rotation) = rotation {
            rotation.abort();
        }
        served.map(|()| Exit::Success)
    })
}

/// How the daemon starts an observer: this program with the verb `observe`.
fn observer_program(arguments: &Arguments, settings: &Settings) -> Option<ObserverProgram> {
    let program = std::env::current_exe().ok()?;
    let mut words: Vec<OsString> = vec!["observe".into(), "--supervised".into()];
    if let Some(nats) = &arguments.nats {
        words.extend(["--nats".into(), nats.into()]);
    }
    words.push("--".into());
    let log = arguments.background.then(|| log_file(settings));
    Some(ObserverProgram { program, arguments: words, stderr_file: log })
}

/// Sets up logging to stderr, for processes in the foreground.
pub(crate) fn log_to_stderr(settings: &Settings) {
    let lines = tracing_subscriber::fmt().with_env_filter(filter(settings)).with_ansi(false);
    lines.with_writer(std::io::stderr).init();
}

fn filter(settings: &Settings) -> EnvFilter {
    // The NATS client logs every connection; `hookbus status` shows what matters of that.
    let directives = format!("async_nats=error,{}", settings.log_level);
    EnvFilter::try_new(directives).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Sets up logging: to hookbus.log in the background, to stderr in the foreground.
fn start_logging(arguments: &Arguments, settings: &Settings) -> Result<()> {
    if !arguments.background {
        log_to_stderr(settings);
        return Ok(());
    }
    let lines = tracing_subscriber::fmt().with_env_filter(filter(settings)).with_ansi(false);
    let path = log_file(settings);
    rotate_if_large(&path);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    lines.with_writer(Arc::new(file)).init();
    Ok(())
}

/// Where a daemon in the background and its observers log.
fn log_file(settings: &Settings) -> PathBuf {
    settings.home.join("hookbus.log")
}

/// Keeps hookbus.log from growing without limit: a daemon may run for months.
async fn rotate_log(log: PathBuf) {
    loop {
        let log = log.clone();
        // Rotation copies the file, which would block the calls of agents.
        if let Err(error) = tokio::task::spawn_blocking(move || rotate_if_large(&log)).await {
            tracing::debug!(%error, "log rotation failed");
        }
        tokio::time::sleep(ROTATION_INTERVAL).await;
    }
}
