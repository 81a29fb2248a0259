//! The settings of one run: from `--home` and the home's own file, or from the environment variables.
//!
//! Agents load the `.env` file of a repository into their environment. So a run whose home comes from `--home` is pinned:
//! no variable that begins with `HOOKBUS_` counts for it, nor one that says where the user's directories are.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use hookbus::config::DaemonMode;
use hookbus::sys::process::effective_uid;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text, for people.
    Text,
    /// JSON, for programs.
    Json,
}

/// The settings of one run.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// `--home` or `HOOKBUS_HOME`: the directory of hookbus.yaml, the log and everything else.
    pub(crate) home: PathBuf,
    /// Whether the home comes from `--home`.
    pub(crate) is_pinned: bool,
    /// The default home by the environment, which is no project. None if pinned.
    pub(crate) default_home: Option<PathBuf>,
    /// Directories to spool events in when the home is not writable, in order.
    pub(crate) spool_fallbacks: Vec<PathBuf>,
    /// `HOOKBUS_DAEMON`. The home's file can say that no daemon is started, too.
    pub(crate) daemon: DaemonMode,
    /// An unknown value of `HOOKBUS_DAEMON`; `auto` is used in its place.
    pub(crate) unknown_daemon_mode: Option<String>,
    /// `HOOKBUS_IDLE`: how long a daemon in the background stays up without calls; none: as the home's file says.
    pub(crate) idle: Option<Duration>,
    /// `HOOKBUS_NATS_URL`: NATS servers, in place of those in hookbus.yaml.
    pub(crate) nats: Option<String>,
    /// `HERMES_HOME`, by default `~/.hermes`.
    pub(crate) hermes: Option<PathBuf>,
    /// `GEMINI_CLI_HOME`, by default the home directory: where Gemini CLI has its `.gemini`.
    pub(crate) gemini: Option<PathBuf>,
    /// Whether to colour text.
    pub(crate) colour: bool,
    /// The window that text is fitted to.
    pub(crate) window: Window,
    /// Whether a program can draw on the whole terminal and read its keys.
    pub(crate) has_screen: bool,
    /// `PAGER`: what shows a long text at a terminal.
    pub(crate) pager: String,
    /// `HOOKBUS_LOG`: the log level of the daemon and the observers; none: as the home's file says.
    pub(crate) log_level: Option<String>,
}

impl Settings {
    /// The settings of a run with `--home`, or of one without.
    pub(crate) fn load(home: Option<PathBuf>) -> Self {
        home.map_or_else(Self::from_env, Self::pinned)
    }

    /// The settings of a run that names its home. Everything else is in the home's file.
    fn pinned(home: PathBuf) -> Self {
        let runtime = PathBuf::from(format!("/run/user/{}", effective_uid()));
        Self {
            home: absolute(home),
            is_pinned: true,
            default_home: None,
            spool_fallbacks: vec![runtime, PathBuf::from("/tmp")],
            daemon: DaemonMode::Auto,
            unknown_daemon_mode: None,
            idle: None,
            nats: None,
            hermes: hermes(),
            gemini: gemini(),
            colour: colour(),
            window: Window::of_stdout(),
            has_screen: has_screen(),
            pager: pager(),
            log_level: None,
        }
    }

    fn from_env() -> Self {
        let temporary = std::env::temp_dir();
        let spools = var("XDG_RUNTIME_DIR").map(PathBuf::from).into_iter().chain([temporary]);
        // `home_dir` falls back to the password file if `HOME` is not set.
        let default_home = std::env::home_dir().map(|home| home.join(".hookbus"));
        let home = var("HOOKBUS_HOME").map(PathBuf::from).or_else(|| default_home.clone());
        let daemon = var("HOOKBUS_DAEMON").map(|value| value.to_string_lossy().into_owned());
        let mode = daemon.as_deref().and_then(DaemonMode::parse);
        Self {
            home: absolute(home.unwrap_or_else(|| PathBuf::from("/nonexistent/.hookbus"))),
            is_pinned: false,
            default_home,
            spool_fallbacks: spools.collect(),
            daemon: mode.unwrap_or(DaemonMode::Auto),
            unknown_daemon_mode: daemon.filter(|_| mode.is_none()),
            idle: seconds(var("HOOKBUS_IDLE")),
            nats: var("HOOKBUS_NATS_URL").and_then(|value| value.into_string().ok()),
            hermes: hermes(),
            gemini: gemini(),
            colour: colour(),
            window: Window::of_stdout(),
            has_screen: has_screen(),
            pager: pager(),
            log_level: var("HOOKBUS_LOG").and_then(|value| value.into_string().ok()),
        }
    }

    /// The same for another home, which is then pinned.
    pub(crate) fn for_home(&self, home: PathBuf) -> Self {
        Self { colour: self.colour, ..Self::pinned(home) }
    }

    /// A command of hookbus as the user has to type it for this home.
    pub(crate) fn command(&self, text: &str) -> String {
        let home = self.home.to_string_lossy();
        match shlex::try_quote(&home) {
            Ok(home) if self.is_pinned => {
                text.replacen("hookbus ", &format!("hookbus --home {home} "), 1)
            }
            Ok(_) | Err(_) => text.to_owned(),
        }
    }

    /// The NATS servers from the command line, else from the environment.
    pub(crate) fn nats_urls(&self, argument: Option<&str>) -> Option<Vec<String>> {
        let urls = argument.or(self.nats.as_deref())?;
        Some(urls.split(',').map(|url| url.trim().to_owned()).collect())
    }

    /// The environment that hooks and observers get: this process' own. In a pinned run without the variables of
    /// hookbus, which are those of an agent.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(b"HOOKBUS_");
        std::env::vars_os().filter(|(name, _)| !(self.is_pinned && is_ours(name))).collect()
    }
}

fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn hermes() -> Option<PathBuf> {
    let named = var("HERMES_HOME").map(PathBuf::from);
    named.or_else(|| std::env::home_dir().map(|home| home.join(".hermes")))
}

fn gemini() -> Option<PathBuf> {
    var("GEMINI_CLI_HOME").map(PathBuf::from).or_else(std::env::home_dir)
}

fn colour() -> bool {
    let is_forced = || var("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    var("NO_COLOR").is_none() && (is_forced() || std::io::stdout().is_terminal())
}

fn has_screen() -> bool {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    is_terminal && var("TERM").is_some_and(|term| term != "dumb")
}

fn pager() -> String {
    let named = var("PAGER").and_then(|pager| pager.into_string().ok());
    named.unwrap_or_else(|| "less".to_owned())
}

/// The window that text is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Its width: that of the terminal, else `COLUMNS`, else enough for most lines.
    pub(crate) columns: usize,
    /// Its height; none if stdout is no terminal.
    pub(crate) lines: Option<usize>,
    /// Whether the width is known: of a terminal, or by `COLUMNS`.
    pub(crate) is_fitted: bool,
}

impl Window {
    /// What is left of it behind an indentation.
    pub(crate) const fn inside(self, indent: usize) -> Self {
        Self { columns: self.columns.saturating_sub(indent), ..self }
    }

    fn of_stdout() -> Self {
        let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        match terminal {
            Some((columns, lines)) => {
                let (columns, lines) = (usize::from(columns.0).max(40), usize::from(lines.0));
                Self { columns, lines: Some(lines), is_fitted: true }
            }
            None => {
                let named = var("COLUMNS").and_then(|it| it.to_str()?.parse::<usize>().ok());
                let columns = named.unwrap_or(120).clamp(40, 1000);
                Self { columns, lines: None, is_fitted: named.is_some() }
            }
        }
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
