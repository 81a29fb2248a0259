//! `hookbus serve`: runs the daemon, in the foreground or (as hooks start it) in the background, and sets up where
//! it logs.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::bus::Bus;
use hookbus::files::rotate_if_large;
use hookbus::server::{Daemon, ObserverProgram, Plans, ServeError, Stay};
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
    let stay = match (idle, arguments.background) {
        (Some(after), _) => Stay::UntilIdle(after),
        (None, true) => Stay::UntilIdle(settings.idle),
        (None, false) => Stay::ForGood,
    };
    if arguments.background {
        close_inherited_files();
        // A session of its own: closing the agent's terminal must not end the daemon.
        if let Err(error) = rustix::process::setsid() {
            tracing::debug!(%error, "already a session leader");
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let home = &settings.home;
    runtime.block_on(async {
        let plans = Plans {
            stay,
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
    Some(ObserverProgram { program, arguments: words, complaints: log })
}

/// Closes all descriptors but stdin, stdout and stderr. The hook that started us may have been given more, and the
/// process at the other end of a pipe would wait for the daemon to close it.
fn close_inherited_files() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let open: Vec<i32> =
        open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        if let Err(error) = nix::unistd::close(descriptor) {
            tracing::trace!(%error, descriptor, "already closed: it was the directory listing itself");
        }
    }
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
