//! The environment, read once.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Whether a hook uses a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseDaemon {
    /// One that is up; starts one otherwise.
    Auto,
    /// One that is up; starts none.
    Running,
    /// None.
    Off,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What the environment says.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Where everything lives.
    pub(crate) home: PathBuf,
    /// Where events go when even the home cannot take them, in order.
    pub(crate) shared: Vec<PathBuf>,
    /// `HOOKBUS_DAEMON`.
    pub(crate) daemon: UseDaemon,
    /// A `HOOKBUS_DAEMON` that we do not know, and took for `auto`.
    pub(crate) odd_daemon: Option<String>,
    /// How long a daemon that a hook started stays without calls.
    pub(crate) idle: Duration,
    /// `HOOKBUS_NATS_URL`: the servers, in place of those in the hooks file.
    pub(crate) nats: Option<String>,
    /// `HERMES_HOME`, or where Hermes lives without it.
    pub(crate) hermes: Option<PathBuf>,
    /// `HOOKBUS_ACCEPT_HOOKS`: agree to hooks without being asked.
    pub(crate) accept_hooks: bool,
    /// Whether text may be coloured.
    pub(crate) colour: bool,
    /// `HOOKBUS_LOG`: what the daemon writes down about itself.
    pub(crate) verbosity: String,
}

impl Settings {
    pub(crate) fn from_env() -> Self {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let temporary = std::env::temp_dir();
        let shared = var("XDG_RUNTIME_DIR").map(PathBuf::from).into_iter().chain([temporary]);
        // Without `HOME` the user's entry in the password file still knows.
        let home = var("HOOKBUS_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::home_dir().map(|home| home.join(".hookbus")));
        Self {
            home: absolute(home.unwrap_or_else(|| PathBuf::from("/nonexistent/.hookbus"))),
            shared: shared.collect(),
            daemon: match var("HOOKBUS_DAEMON").as_ref().and_then(|value| value.to_str()) {
                Some("off") => UseDaemon::Off,
                Some("running") => UseDaemon::Running,
                Some(_) | None => UseDaemon::Auto,
            },
            odd_daemon: var("HOOKBUS_DAEMON")
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
            verbosity: var("HOOKBUS_LOG")
                .and_then(|value| value.into_string().ok())
                .unwrap_or_else(|| "info".to_owned()),
        }
    }
}

impl Settings {
    /// The NATS servers that the command line or the environment names.
    pub(crate) fn nats_urls(&self, said: Option<&str>) -> Option<Vec<String>> {
        let urls = said.or(self.nats.as_deref())?;
        Some(urls.split(',').map(|url| url.trim().to_owned()).collect())
    }
}

/// A daemon that we start must find the same home from another directory. And it has one name only: what a person
/// agreed to by a link to it, whoever comes by its real name has to find.
fn absolute(path: PathBuf) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path)
}

fn seconds(value: Option<OsString>) -> Option<Duration> {
    Duration::try_from_secs_f64(value?.to_str()?.parse().ok()?).ok()
}
