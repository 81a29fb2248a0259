//! The environment variables, read once at the start.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Whether `hookbus hook` uses a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseDaemon {
    /// Uses a running daemon, and starts one if there is none.
    Auto,
    /// Uses a running daemon, but does not start one.
    Running,
    /// Never uses a daemon.
    Off,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text, for people.
    Text,
    /// JSON, for programs.
    Json,
}

/// The settings from the environment.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// `HOOKBUS_HOME`: the directory of hookbus.yaml, the log and everything else.
    pub(crate) home: PathBuf,
    /// Directories to spool events in when the home is not writable, in order.
    pub(crate) spool_fallbacks: Vec<PathBuf>,
    /// `HOOKBUS_DAEMON`.
    pub(crate) daemon: UseDaemon,
    /// An unknown value of `HOOKBUS_DAEMON`; `auto` is used in its place.
    pub(crate) unknown_daemon_mode: Option<String>,
    /// `HOOKBUS_IDLE`: how long a daemon that a hook started stays up without calls.
    pub(crate) idle: Duration,
    /// `HOOKBUS_NATS_URL`: NATS servers, in place of those in hookbus.yaml.
    pub(crate) nats: Option<String>,
    /// `HERMES_HOME`, by default `~/.hermes`.
    pub(crate) hermes: Option<PathBuf>,
    /// `HOOKBUS_ACCEPT_HOOKS`: approve hooks without asking.
    pub(crate) accept_hooks: bool,
    /// Whether to colour text.
    pub(crate) colour: bool,
    /// `HOOKBUS_LOG`: the log level of the daemon and the observers.
    pub(crate) log_level: String,
}

impl Settings {
    pub(crate) fn from_env() -> Self {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let temporary = std::env::temp_dir();
        let spools = var("XDG_RUNTIME_DIR").map(PathBuf::from).into_iter().chain([temporary]);
        // `home_dir` falls back to the password file if `HOME` is not set.
        let home = var("HOOKBUS_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::home_dir().map(|home| home.join(".hookbus")));
        Self {
            home: absolute(home.unwrap_or_else(|| PathBuf::from("/nonexistent/.hookbus"))),
            spool_fallbacks: spools.collect(),
            daemon: match var("HOOKBUS_DAEMON").as_ref().and_then(|value| value.to_str()) {
                Some("off") => UseDaemon::Off,
                Some("running") => UseDaemon::Running,
                Some(_) | None => UseDaemon::Auto,
            },
            unknown_daemon_mode: var("HOOKBUS_DAEMON")
                .map(|value| value.to_string_lossy().into_owned())
                .filter(|value| !["auto", "running", "off"].contains(&value.as_str())),
            idle: seconds(var("HOOKBUS_IDLE")).unwrap_or(Duration::from_mins(15)),
            nats: var("HOOKBUS_NATS_URL").and_then(|value| value.into_string().ok()),
            hermes: var("HERMES_HOME")
                .map(PathBuf::from)
                .or_else(|| std::env::home_dir().map(|home| home.join(".hermes"))),
            accept_hooks: var("HOOKBUS_ACCEPT_HOOKS").is_some_and(|word| {
                ["1", "true", "yes", "on"].iter().any(|yes| word.eq_ignore_ascii_case(yes))
            }),
            colour: var("NO_COLOR").is_none() && std::io::stdout().is_terminal(),
            log_level: var("HOOKBUS_LOG")
                .and_then(|value| value.into_string().ok())
                .unwrap_or_else(|| "info".to_owned()),
        }
    }

    /// The NATS servers from the command line, else from the environment.
    pub(crate) fn nats_urls(&self, argument: Option<&str>) -> Option<Vec<String>> {
        let urls = argument.or(self.nats.as_deref())?;
        Some(urls.split(',').map(|url| url.trim().to_owned()).collect())
    }
}

/// The home as an absolute path without symlinks: a daemon that we start runs in another directory, and approvals are
/// stored by path, so the home must always have the same one.
fn absolute(path: PathBuf) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path)
}

fn seconds(value: Option<OsString>) -> Option<Duration> {
    Duration::try_from_secs_f64(value?.to_str()?.parse().ok()?).ok()
}
