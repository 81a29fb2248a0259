//! `hookbus serve`: runs the daemon, in the foreground or (as hooks start it) in the background, and sets up where
//! it logs.

mod redacted_lines;
mod systemd;

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::active::{ActiveRedaction, HooksSource};
use hookbus::bus::Bus;
use hookbus::config::{DaemonMode, DaemonSettings, HooksFile, Redaction};
use hookbus::files::rotate_if_large;
use hookbus::log::LogPath;
use hookbus::redact::{RedactionSettings, Redactor};
use hookbus::server::{
    Daemon, DaemonOptions, Lifetime, ObserverProgram, RetentionProgram, ServeError,
};
use hookbus::sys::child_signal::make_children_waitable;
use hookbus::sys::descriptors::close_inherited;
use hookbus::sys::file_size_limit::survive_writes_beyond_limit;
use hookbus::sys::process::start_session;
use hookbus::sys::thread::STACK_SIZE;
use tracing_subscriber::EnvFilter;

use self::redacted_lines::RedactedLines;

use crate::cli::Exit;
use crate::settings::Settings;
use crate::status::describe_hung_daemon;

/// How often the daemon checks the size of hookbus.log.
const ROTATION_INTERVAL: Duration = Duration::from_secs(2);

/// How long a daemon in the background stays up without calls, if nothing else is set.
const BACKGROUND_IDLE: Duration = Duration::from_mins(15);

const EXAMPLES: &str = "\
Examples:
  hookbus serve                           Run until `hookbus stop` or Ctrl-C
  hookbus serve --idle 600                Exit after ten minutes without a call
  hookbus serve --nats nats://nats1:4222  Relay the log to this NATS server
  hookbus serve --install                 Let systemd keep a daemon running";

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
    /// Detaches from the terminal, logs to hookbus.log in the home and exits after the seconds without
    /// a call that hookbus.yaml sets (`daemon: {idle: 900}`).
    #[arg(long)]
    background: bool,
    #[command(flatten)]
    unit: systemd::UnitArguments,
}

pub(crate) fn run(arguments: &Arguments, settings: &Settings) -> Result<Exit> {
    if let Some(exit) = systemd::run(&arguments.unit, settings)? {
        return Ok(exit);
    }
    let home = &settings.home;
    let daemon = home_settings(settings);
    if daemon.mode == DaemonMode::Off {
        bail!(
            "{} says `daemon: off`, so no daemon serves this home; write `daemon: running` to start one by hand",
            home.join("hookbus.yaml").display()
        );
    }
    let idle = arguments.idle.map(Duration::try_from_secs_f64).transpose();
    let idle = idle.context("--idle takes a number of seconds; write `--idle 600`")?;
    let lifetime = match (idle, arguments.background) {
        (Some(after), _) => Lifetime::UntilIdle(after),
        (None, true) => {
            Lifetime::UntilIdle(settings.idle.or(daemon.idle).unwrap_or(BACKGROUND_IDLE))
        }
        (None, false) => Lifetime::UntilStopped,
    };
    survive_writes_beyond_limit();
    make_children_waitable();
    if arguments.background {
        // The hook that started us may have been given more descriptors than its own three.
        close_inherited();
        start_session();
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().thread_stack_size(STACK_SIZE).build()?;
    let served = runtime.block_on(async {
        let plans = DaemonOptions {
            lifetime,
            in_background: arguments.background,
            nats_urls: settings.nats_urls(arguments.nats.as_deref()),
            observers: observer_program(arguments, settings).filter(|_| !arguments.no_observers),
            retention: retention_program(arguments, settings),
        };
        let daemon = match Daemon::start(home, plans, || {
            Bus::for_daemon(home, &settings.spool_fallbacks)
                .with_default_home(settings.default_home.clone())
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
    });
    // A large event that is still being handled on another thread must not keep the process.
    runtime.shutdown_background();
    served
}

/// What the home's file says about the daemon.
fn home_settings(settings: &Settings) -> DaemonSettings {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    hooks.active().file.daemon.clone()
}

/// How the daemon starts an observer: this program with the verb `observe`.
fn observer_program(arguments: &Arguments, settings: &Settings) -> Option<ObserverProgram> {
    let program = std::env::current_exe().ok()?;
    let mut words: Vec<OsString> = Vec::new();
    if settings.is_pinned {
        words.extend(["--home".into(), settings.home.clone().into()]);
    }
    words.extend(["observe".into(), "--supervised".into()]);
    if let Some(nats) = &arguments.nats {
        words.extend(["--nats".into(), nats.into()]);
    }
    words.push("--".into());
    let log = arguments.background.then(|| log_file(settings));
    let env_file = settings.home.join("observers.env");
    Some(ObserverProgram { program, arguments: words, stderr_file: log, env_file })
}

/// How the daemon runs the rules of `retain:`: this program with the verb `prune`.
fn retention_program(arguments: &Arguments, settings: &Settings) -> Option<RetentionProgram> {
    let program = std::env::current_exe().ok()?;
    let mut words: Vec<OsString> = vec!["--home".into(), settings.home.clone().into()];
    words.extend(["prune".into(), "--yes".into(), "--scheduled".into()]);
    if let Some(nats) = &arguments.nats {
        words.extend(["--nats".into(), nats.into()]);
    }
    let stderr_file = arguments.background.then(|| log_file(settings));
    Some(RetentionProgram { program, arguments: words, stderr_file })
}

/// Sets up logging to stderr, for processes in the foreground.
pub(crate) fn log_to_stderr(settings: &Settings) {
    let lines = tracing_subscriber::fmt().with_env_filter(filter(settings)).with_ansi(false);
    let redactor = redactor(settings);
    lines.with_writer(move || RedactedLines::new(std::io::stderr(), Arc::clone(&redactor))).init();
}

/// Replaces secrets in what processes of this home log: with the user's own patterns as they are when the process starts, and
/// with all built-in detectors, also those that the user switched off, because the user does not expect secrets in the log of the daemon.
fn redactor(settings: &Settings) -> Arc<Option<Redactor>> {
    let active = ActiveRedaction::new(&settings.home);
    let own = own_redaction(&settings.home);
    let redactor = own.and_then(|own| Redactor::new(active.key(), &own).ok());
    Arc::new(redactor.or_else(|| active.built_in()))
}

/// What `redact:` in the hooks file of a home adds to the built-in detectors; none without a readable file.
fn own_redaction(home: &Path) -> Option<RedactionSettings> {
    let text = fs::read_to_string(home.join("hookbus.yaml")).ok()?;
    match HooksFile::parse(&text, home).ok()?.redaction {
        Redaction::On(own) => {
            Some(RedactionSettings { off: Vec::new(), allowed: Vec::new(), ..own })
        }
        Redaction::Off => None,
    }
}

fn filter(settings: &Settings) -> EnvFilter {
    // The NATS client logs every connection; `hookbus status` shows what matters of that.
    let level = settings.log_level.clone().or_else(|| home_settings(settings).log);
    let directives = format!("async_nats=error,{}", level.as_deref().unwrap_or("info"));
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
    let (file, redactor) = (Arc::new(file), redactor(settings));
    lines.with_writer(move || RedactedLines::new(Arc::clone(&file), Arc::clone(&redactor))).init();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_the_daemon_knows_own_patterns_and_heeds_no_exceptions() {
        let home = tempfile::tempdir().expect("a home");
        assert!(own_redaction(home.path()).is_none(), "without a file");
        let text = "redact: {patterns: [{name: badge, regex: 'itk-[0-9]{6}'}], off: [jwt], allow: [hunter2]}\n";
        fs::write(home.path().join("hookbus.yaml"), text).expect("a hooks file");
        let own = own_redaction(home.path()).expect("settings");
        assert_eq!(own.patterns.len(), 1);
        assert!(own.off.is_empty() && own.allowed.is_empty());
        fs::write(home.path().join("hookbus.yaml"), "redact: false\n").expect("a hooks file");
        assert!(own_redaction(home.path()).is_none(), "the built-in detectors stay");
    }
}
