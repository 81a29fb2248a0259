//! `hookbus serve`: the daemon.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::bus::Bus;
use hookbus::decide::make_room;
use hookbus::server::{Daemon, ObserverProgram, Plans, ServeError, Stay};
use tracing_subscriber::EnvFilter;

use crate::cli::Exit;
use crate::settings::Settings;
use crate::status::describe_hung_daemon;

/// How often the daemon looks whether its own log file has become too large.
const LOOK_AFTER_LOG: Duration = Duration::from_secs(2);

/// `hookbus serve`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Leave when nobody has called for this many seconds (default: stay).
    #[arg(long, value_name = "SECONDS")]
    idle: Option<f64>,
    /// The NATS servers, in place of those in hookbus.yaml (also `HOOKBUS_NATS_URL`).
    #[arg(long, value_name = "URL,URL…")]
    nats: Option<String>,
    /// Start no observers; they are run elsewhere, or by hand.
    #[arg(long)]
    no_observers: bool,
    /// As a hook starts it: write to `HOOKBUS_HOME`/hookbus.log, leave after `HOOKBUS_IDLE` seconds (900).
    #[arg(long)]
    background: bool,
}

pub(crate) fn run(arguments: &Arguments, settings: &Settings) -> Result<Exit> {
    let idle = arguments.idle.map(Duration::try_from_secs_f64).transpose();
    let idle = idle.context("--idle is a number of seconds; write `--idle 600`")?;
    let stay = match (idle, arguments.background) {
        (Some(after), _) => Stay::UntilIdle(after),
        (None, true) => Stay::UntilIdle(settings.idle),
        (None, false) => Stay::ForGood,
    };
    if arguments.background {
        let_go_of_inherited_files();
        // Out of the agent's session, so that closing its terminal does not end us.
        if let Err(error) = rustix::process::setsid() {
            tracing::debug!(%error, "already apart");
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
        let daemon = match Daemon::start(home, plans, || Bus::for_daemon(home, &settings.shared)) {
            Ok(daemon) => daemon,
            // The hook that started us was not the only one.
            Err(ServeError::Running(_)) if arguments.background => return Ok(Exit::Success),
            Err(ServeError::Running(home)) if let Some(hung) = describe_hung_daemon(settings) => {
                bail!("a daemon is {hung} (for {})", home.display())
            }
            Err(error) => return Err(error.into()),
        };
        write_down(arguments, settings)?;
        let room = arguments.background.then(|| tokio::spawn(keep_room(own_log(settings))));
        let served = daemon.serve().await.context("the daemon cannot go on");
        if let Some(room) = room {
            room.abort();
        }
        served.map(|()| Exit::Success)
    })
}

/// Each observer is this program with another verb.
fn observer_program(arguments: &Arguments, settings: &Settings) -> Option<ObserverProgram> {
    let program = std::env::current_exe().ok()?;
    let mut words: Vec<OsString> = vec!["observe".into(), "--supervised".into()];
    if let Some(nats) = &arguments.nats {
        words.extend(["--nats".into(), nats.into()]);
    }
    words.push("--".into());
    let complaints = arguments.background.then(|| own_log(settings));
    Some(ObserverProgram { program, arguments: words, complaints })
}

/// A hook may have been given more than three streams; whoever reads the other end of one would
/// wait for our end instead of the hook's.
fn let_go_of_inherited_files() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let open: Vec<i32> =
        open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        if let Err(error) = nix::unistd::close(descriptor) {
            tracing::trace!(%error, descriptor, "closed already: the listing itself had it");
        }
    }
}

/// What a process that runs on has to say, to stderr.
pub(crate) fn log_to_stderr(settings: &Settings) {
    let lines = tracing_subscriber::fmt().with_env_filter(filter(settings)).with_ansi(false);
    lines.with_writer(std::io::stderr).init();
}

fn filter(settings: &Settings) -> EnvFilter {
    // The client library tells of every connection; what matters of that is in `hookbus status`.
    let wanted = format!("async_nats=error,{}", settings.verbosity);
    EnvFilter::try_new(wanted).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// In the background to a file, in the foreground to stderr.
fn write_down(arguments: &Arguments, settings: &Settings) -> Result<()> {
    if !arguments.background {
        log_to_stderr(settings);
        return Ok(());
    }
    let lines = tracing_subscriber::fmt().with_env_filter(filter(settings)).with_ansi(false);
    let path = own_log(settings);
    make_room(&path);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    lines.with_writer(Arc::new(file)).init();
    Ok(())
}

/// Where a daemon in the background and its observers write.
fn own_log(settings: &Settings) -> PathBuf {
    settings.home.join("hookbus.log")
}

/// A daemon stays for months.
async fn keep_room(log: PathBuf) {
    loop {
        let log = log.clone();
        // Copying it would keep agents waiting.
        if let Err(error) = tokio::task::spawn_blocking(move || make_room(&log)).await {
            tracing::debug!(%error, "not looked after this time");
        }
        tokio::time::sleep(LOOK_AFTER_LOG).await;
    }
}
