//! Whether what was connected still is: each Hermes with a record, and the usual one.

use std::path::{Path, PathBuf};

use super::bridge::{self, NAME};
use super::files::{self, Record};
use super::hooks_move::entries;
use super::meaning::place_in;
use super::shell_wire::{Calls, calls};
use super::{hermes, yaml_edit};
use crate::settings::Settings;

/// How one Hermes is.
#[derive(Debug)]
pub(crate) struct Health {
    /// Its home; where that is not known, the record about it.
    pub(crate) home: PathBuf,
    /// What keeps its events from the bus, if anything.
    pub(crate) wrong: Option<String>,
    /// Whether it calls the bus at all.
    pub(crate) calls: bool,
    /// Whether it lets everything pass while no daemon is up; then how `connect` is told otherwise.
    pub(crate) needs_a_daemon: Option<String>,
}

impl Health {
    fn broken(home: PathBuf, wrong: String) -> Self {
        Self { home, wrong: Some(wrong), calls: false, needs_a_daemon: None }
    }
}

/// How the usual Hermes is, if it is there, and each that was connected from this home.
pub(crate) fn health(settings: &Settings) -> Vec<Health> {
    let hookbus = files::real(&settings.home);
    let usual = hermes::home(None, settings).ok();
    let own = usual.as_ref().map(|home| Record::file(&hookbus, "hermes", home));
    let others = Record::files(&hookbus, "hermes").into_iter();
    let others = others.filter(|file| Some(file) != own.as_ref());
    let usual = usual.iter().zip(&own).map(|(home, file)| of_one(file, Some(home), &hookbus));
    usual.chain(others.map(|file| of_one(&file, None, &hookbus))).collect()
}

fn of_one(file: &Path, usual: Option<&PathBuf>, hookbus: &Path) -> Health {
    let known = match Record::load(file) {
        Ok(known) => known,
        Err(broken) => {
            let about = usual.cloned().unwrap_or_else(|| file.to_owned());
            return Health::broken(about, format!("{broken:#}"));
        }
    };
    let Some(home) = usual.cloned().or_else(|| hermes::home_in(&known)) else {
        let why = "it does not say where Hermes is; take hookbus out by hand and delete it";
        return Health::broken(file.to_owned(), why.to_owned());
    };
    let option = usual.map_or_else(|| option_for(&home), |_| String::new());
    let wrong = trouble(&home, &option, &known, hookbus);
    let config = files::read(&home.join("config.yaml")).ok().flatten().unwrap_or_default();
    let is_enabled = hermes::is_enabled(&config);
    let calls = is_enabled || shell_wire(&config).is_some();
    let lets_pass = bridge::folders(&home)
        .iter()
        .any(|folder| bridge::needs_a_daemon(&bridge::settings_in(&folder.join(bridge::SETTINGS))));
    let otherwise = format!("hookbus connect hermes{option} --without-daemon hook");
    let needs_a_daemon = (is_enabled && lets_pass).then_some(otherwise);
    Health { home, wrong, calls, needs_a_daemon }
}

/// How a home that is not the usual one is named on the command line.
fn option_for(home: &Path) -> String {
    let home = home.to_string_lossy();
    let word = shlex::try_quote(&home).unwrap_or_else(|_| home.clone());
    format!(" --hermes-home {word}")
}

/// What keeps a connection from working, if anything. `option` is how this home is named on the command line.
fn trouble(home: &Path, option: &str, known: &Record, hookbus: &Path) -> Option<String> {
    if !home.is_dir() {
        return Some(format!("it is gone; `hookbus disconnect hermes{option}` forgets it"));
    }
    let config = &files::read(&home.join("config.yaml")).ok().flatten().unwrap_or_default();
    let again = format!("`hookbus connect hermes{option}` mends that");
    if let Err(error) = yaml_edit::read(config) {
        let file = home.join("config.yaml");
        return Some(format!(
            "{} is not YAML ({error}); mend it by hand, then run `hookbus connect hermes{option}`",
            file.display()
        ));
    }
    match (hermes::is_enabled(config), shell_wire(config)) {
        (false, Some(_)) => return None, // wired by hand, over Hermes' own hooks
        (false, None) => return Some(format!("it is not wired to this bus; {again}")),
        (true, Some(ShellWire { calls: Calls::AndMore, event, command })) => {
            return Some(format!(
                "`{command}` on {event} calls the bus as well, so that event comes twice; take `hookbus hook hermes` out of it by hand"
            ));
        }
        (true, Some(_)) => {
            return Some(format!("it is wired twice, and every event comes twice; {again}"));
        }
        (true, None) => {}
    }
    let banned = yaml_edit::read(config).is_ok_and(|file| place_in(&file, "disabled").is_some());
    if banned {
        return Some(format!("`plugins: disabled:` in its config.yaml names `{NAME}`; {again}"));
    }
    for (file, text) in bridge::code(home) {
        match files::read(&file) {
            Ok(Some(there)) if there == *text => {}
            Ok(Some(_)) => {
                return Some(format!(
                    "{} is of another version, or was edited; {again}",
                    file.display()
                ));
            }
            Ok(None) | Err(_) => return Some(format!("{} is missing; {again}", file.display())),
        }
    }
    let mut folders = bridge::folders(home).into_iter();
    let wrong = folders.find_map(|folder| unreachable(&folder.join(bridge::SETTINGS), hookbus));
    wrong.map(|wrong| format!("{wrong}; {again}")).or_else(|| {
        let lost = format!("what it had before is not known in this home any more; {again}");
        known.changes.is_empty().then_some(lost)
    })
}

/// Why a bridge with these settings does not reach this bus, if so.
fn unreachable(file: &Path, hookbus: &Path) -> Option<String> {
    let shown = file.display();
    if !file.is_file() {
        return Some(format!("{shown} is missing"));
    }
    let settings = bridge::settings_in(file);
    let path = |key: &str| settings.get(key)?.as_str().map(PathBuf::from);
    let (Some(program), Some(home)) = (path("hookbus"), path("home")) else {
        return Some(format!("{shown} does not say where hookbus is"));
    };
    let us = std::env::current_exe().map(|program| files::real(&program)).unwrap_or_default();
    if files::real(&program) != us {
        return Some(format!(
            "{shown} names the program {}, not {}",
            program.display(),
            us.display()
        ));
    }
    (files::real(&home) != hookbus)
        .then(|| format!("{shown} names another home of hookbus, {}", home.display()))
}

/// A shell hook of Hermes that calls the bus.
struct ShellWire {
    calls: Calls,
    event: String,
    command: String,
}

/// The one that stands in this configuration, if any; the hardest to part with first.
fn shell_wire(config: &str) -> Option<ShellWire> {
    let config = yaml_edit::read(config).ok()?;
    let wires = entries(&config).into_iter().map(|(event, _, entry)| {
        let command = entry["command"].as_str().unwrap_or_default().to_owned();
        ShellWire { calls: calls(&entry), event, command }
    });
    let mut wires: Vec<ShellWire> = wires.filter(|it| it.calls != Calls::Nothing).collect();
    wires.sort_by_key(|it| it.calls == Calls::Only);
    wires.into_iter().next()
}
