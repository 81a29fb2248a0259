//! Whether connections still work, for `hookbus hooks doctor`: the usual Hermes, and each one with a record.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bridge::{self, NAME};
use super::record::Record;
use super::shell_hooks::{self, ShellHook};
use super::shell_wire::{BusCall, bus_call, homes_called};
use super::{files, hermes, yaml};
use crate::settings::Settings;

/// The state of one Hermes.
#[derive(Debug)]
pub(crate) struct Health {
    /// Its home; if that is not known, the file of the record.
    pub(crate) home: PathBuf,
    /// Why its events do not reach the bus, and what to do. None: they do.
    pub(crate) wrong: Option<String>,
    /// Whether it calls the bus at all.
    pub(crate) calls: bool,
    /// If it allows every event while no daemon runs: the `connect` command that changes that.
    pub(crate) needs_a_daemon: Option<String>,
    /// How long an event of its gateway may take, if it is connected by the bridge.
    pub(crate) gateway_deadline: Option<Duration>,
}

impl Health {
    fn broken(home: PathBuf, wrong: String) -> Self {
        Self {
            home,
            wrong: Some(wrong),
            calls: false,
            needs_a_daemon: None,
            gateway_deadline: None,
        }
    }
}

/// The state of the usual Hermes, if it exists, and of each one that was connected from this home.
pub(crate) fn health(settings: &Settings) -> Vec<Health> {
    let hookbus = files::canonical(&settings.home);
    let usual = hermes::home(None, settings).ok();
    let usual_record = usual.as_ref().map(|home| Record::file(&hookbus, "hermes", home));
    let others = Record::files(&hookbus, "hermes").into_iter();
    let others = others.filter(|file| Some(file) != usual_record.as_ref());
    let usual =
        usual.iter().zip(&usual_record).map(|(home, file)| of_one(file, Some(home), &hookbus));
    usual.chain(others.map(|file| of_one(&file, None, &hookbus))).collect()
}

fn of_one(record_file: &Path, usual: Option<&PathBuf>, hookbus: &Path) -> Health {
    let record = match Record::load(record_file) {
        Ok(record) => record,
        Err(error) => {
            let about = usual.cloned().unwrap_or_else(|| record_file.to_owned());
            return Health::broken(about, format!("{error:#}"));
        }
    };
    let Some(home) = usual.cloned().or_else(|| hermes::home_in(&record)) else {
        let why = "it does not say where Hermes is; remove hookbus from that Hermes by hand, then delete this file";
        return Health::broken(record_file.to_owned(), why.to_owned());
    };
    let option = usual.map_or_else(|| option_for(&home), |_| String::new());
    let wrong = why_disconnected(&home, &option, &record, hookbus);
    let config = files::read(&home.join("config.yaml")).ok().flatten().unwrap_or_default();
    let is_enabled = hermes::is_enabled(&config);
    let calls = is_enabled || shell_wire(&config).is_some();
    let allows = bridge::folders(&home).iter().any(|folder| {
        bridge::needs_a_daemon(&bridge::read_settings(&folder.join(bridge::SETTINGS)))
    });
    let command = format!("hookbus connect hermes{option} --without-daemon hook");
    let needs_a_daemon = (is_enabled && allows).then_some(command);
    let gateway_deadline = bridge::gateway_deadline(&home).filter(|_| is_enabled);
    Health { home, wrong, calls, needs_a_daemon, gateway_deadline }
}

/// The command-line option for a home that is not the usual one.
fn option_for(home: &Path) -> String {
    let home = home.to_string_lossy();
    let word = shlex::try_quote(&home).unwrap_or_else(|_| home.clone());
    format!(" --hermes-home {word}")
}

/// Why a connection does not work, if so. `option` is the command-line option for this home.
fn why_disconnected(home: &Path, option: &str, record: &Record, hookbus: &Path) -> Option<String> {
    if !home.is_dir() {
        return Some(format!(
            "it no longer exists; `hookbus disconnect hermes{option}` removes the record about it"
        ));
    }
    let config_file = home.join("config.yaml");
    let config = files::read(&config_file).ok().flatten().unwrap_or_default();
    let connect = format!("run `hookbus connect hermes{option}`");
    let parsed = match yaml::read(&config) {
        Ok(parsed) => parsed,
        Err(error) => {
            let file = config_file.display();
            return Some(format!("{file}: {error}; fix it by hand, then {connect}"));
        }
    };
    match (hermes::is_enabled(&config), shell_wire(&config)) {
        // Connected by hand, through Hermes' own shell hooks.
        (false, Some(_)) => return not_pinned(&config, hookbus, &connect),
        (false, None) => return Some(format!("it is not connected to this bus; {connect}")),
        (true, Some((BusCall::WithOtherWork, hook))) => {
            return Some(format!(
                "`{}` on {} calls the bus as well, so that event arrives twice; take `hookbus hook hermes` out of it by hand",
                hook.command(),
                hook.event
            ));
        }
        (true, Some(_)) => {
            return Some(format!(
                "it is connected by the bridge and by shell hooks, so events arrive twice; {connect}"
            ));
        }
        (true, None) => {}
    }
    if hermes::listed_in(&parsed, "disabled").is_some() {
        return Some(format!(
            "`plugins: disabled:` in its config.yaml contains `{NAME}`; {connect}"
        ));
    }
    for (file, text) in bridge::code(home) {
        let file_name = file.display();
        match files::read(&file) {
            Ok(Some(now)) if now == *text => {}
            Ok(Some(_)) => {
                return Some(format!(
                    "{file_name} is from another version, or was edited; {connect}"
                ));
            }
            Ok(None) | Err(_) => return Some(format!("{file_name} is missing; {connect}")),
        }
    }
    let mut folders = bridge::folders(home).into_iter();
    let wrong = folders.find_map(|folder| unreachable(&folder.join(bridge::SETTINGS), hookbus));
    wrong.map(|wrong| format!("{wrong}; {connect}")).or_else(|| {
        let lost = format!("this home has no record of the connection; {connect}");
        record.changes.is_empty().then_some(lost)
    })
}

/// Why the shell hooks that call the bus may call another one, if so.
fn not_pinned(config: &str, hookbus: &Path, connect: &str) -> Option<String> {
    shell_hooks::in_text(config).into_iter().find_map(|hook| {
        let (command, event) = (hook.command(), &hook.event);
        homes_called(&hook.entry, "hermes").into_iter().find_map(|home| match home {
            Some(home) if files::canonical(&home) == hookbus => None,
            Some(home) => Some(format!(
                "`{command}` on {event} calls another home of hookbus, {}; {connect}",
                home.display()
            )),
            None => Some(format!(
                "`{command}` on {event} does not name its home, so a variable that a repository's .env file sets \
                 (HOOKBUS_HOME) can lead it to another one; {connect}, or add `--home {}` to it",
                hookbus.display()
            )),
        })
    })
}

/// Why a bridge with these settings does not reach this bus, if so.
fn unreachable(file: &Path, hookbus: &Path) -> Option<String> {
    let shown = file.display();
    if !file.is_file() {
        return Some(format!("{shown} is missing"));
    }
    let settings = bridge::read_settings(file);
    let path = |key: &str| settings.get(key)?.as_str().map(PathBuf::from);
    let (Some(program), Some(home)) = (path("hookbus"), path("home")) else {
        return Some(format!("{shown} does not say where hookbus is"));
    };
    let this = std::env::current_exe().map(|program| files::canonical(&program));
    let this = this.unwrap_or_default();
    if files::canonical(&program) != this {
        return Some(format!(
            "{shown} names the program {}, not {}",
            program.display(),
            this.display()
        ));
    }
    (files::canonical(&home) != hookbus)
        .then(|| format!("{shown} names another home of hookbus, {}", home.display()))
}

/// A shell hook in this configuration that calls the bus; one that has to be changed by hand first.
fn shell_wire(config: &str) -> Option<(BusCall, ShellHook)> {
    let hooks = shell_hooks::in_text(config).into_iter();
    let calls = hooks.map(|hook| (bus_call(&hook.entry, "hermes"), hook));
    calls.filter(|(call, _)| *call != BusCall::No).min_by_key(|(call, _)| *call == BusCall::Only)
}
