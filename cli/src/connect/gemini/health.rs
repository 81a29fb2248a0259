//! Whether Gemini's events reach the bus, for `hookbus hooks doctor`: by the settings of the user, of the project in the
//! current directory, and of each project that was connected from this home.

use std::path::{Path, PathBuf};

use hookbus::dialect::event_names;
use hookbus::event::Agent;
use serde_json::{Value, json};

use super::super::files;
use super::super::record::Record;
use super::super::shell_wire::homes_called;
use super::bus_hooks::{self, BusHook, Call};
use super::location::Location;
use super::settings_text;
use super::trust::is_trusted;
use super::wire::{Wire, is_executable};
use crate::settings::Settings;

/// The state of one `settings.json` that calls the bus, or should.
#[derive(Debug)]
pub(crate) struct GeminiHealth {
    /// The file.
    pub(crate) file: PathBuf,
    /// What is wrong, each with what to do. Empty: its events reach the bus.
    pub(crate) wrong: Vec<String>,
}

/// The state of every `settings.json` that calls the bus, or did.
pub(crate) fn health(settings: &Settings) -> Vec<GeminiHealth> {
    let hookbus = files::canonical(&settings.home);
    let user = Location::of_user(settings).ok();
    let (mut locations, mut checked) = (Vec::from_iter(user.clone()), Vec::new());
    locations.extend(Location::of_project(Path::new(".")).ok());
    let records: Vec<PathBuf> = Record::files(&hookbus, "gemini");
    for record_file in &records {
        match Record::load(record_file) {
            Ok(record) => {
                let files = record.changes.iter().map(|change| &change.path);
                locations.extend(files.map(|file| Location::of_file(file, user.as_ref())));
            }
            Err(error) => checked.push(GeminiHealth {
                file: record_file.clone(),
                wrong: vec![format!("{error:#}")],
            }),
        }
    }
    let mut seen: Vec<PathBuf> = Vec::new();
    for location in locations {
        if seen.contains(&location.file) {
            continue;
        }
        seen.push(location.file.clone());
        let has_record = records.contains(&Record::file(&hookbus, "gemini", &location.file));
        let check =
            Check { location: &location, user: user.as_ref(), hookbus: &hookbus, has_record };
        if let Some(wrong) = check.wrong() {
            checked.push(GeminiHealth { file: location.file, wrong });
        }
    }
    checked
}

/// The check of one file.
struct Check<'a> {
    location: &'a Location,
    user: Option<&'a Location>,
    hookbus: &'a Path,
    has_record: bool,
}

impl Check<'_> {
    /// What is wrong. None: this file has nothing to do with the bus.
    fn wrong(&self) -> Option<Vec<String>> {
        let option = self.location.option();
        let again = format!(
            "run `hookbus connect gemini{option}`, or `hookbus disconnect gemini{option}` if that is meant"
        );
        let text = match files::read(&self.location.file) {
            Ok(Some(text)) => text,
            Ok(None) => {
                return self.has_record.then(|| vec![format!("it no longer exists; {again}")]);
            }
            Err(error) => return self.has_record.then(|| vec![format!("{error:#}; {again}")]),
        };
        let settings = match settings_text::read(&text) {
            Ok(settings) => settings,
            Err(error) => return self.has_record.then(|| vec![format!("{error}")]),
        };
        let found = bus_hooks::find(&settings);
        if found.is_empty() {
            if self.has_record {
                return Some(vec![format!("none of its hooks calls the bus any more; {again}")]);
            }
            return self.switches_user_off(&settings).map(|why| vec![why]);
        }
        Some(self.wrong_with(&settings, &found))
    }

    /// A project can switch off the hooks that its user has for all projects.
    fn switches_user_off(&self, settings: &Value) -> Option<String> {
        let user = self.user.filter(|user| user.file != self.location.file)?;
        let calls = bus_hooks::find(&read(&user.file));
        let why = calls.iter().find_map(|hook| bus_hooks::switched_off(settings, &hook.name))?;
        Some(format!("{why}: it keeps Gemini from calling the bus in this project"))
    }

    fn wrong_with(&self, settings: &Value, found: &[BusHook]) -> Vec<String> {
        let connect = format!("run `hookbus connect gemini{}`", self.location.option());
        let mut wrong = Vec::new();
        wrong.extend(bus_hooks::switched_off(settings, &found[0].name));
        if let Some(project) = &self.location.project
            && self.user.is_some_and(|user| !is_trusted(project, &user.file))
        {
            wrong.push(format!(
                "Gemini does not trust {} and runs no hooks there; start Gemini there and trust it (`/permissions`)",
                project.display()
            ));
        }
        for hook in found.iter().filter(|hook| hook.call == Call::WithOtherWork) {
            wrong.push(format!(
                "`{}` on {} calls the bus in a script or together with other work, which this cannot check; take `hookbus hook gemini` out of it by hand, then {connect}",
                hook.command, hook.place.event
            ));
        }
        wrong.extend(unpinned(found, self.hookbus).map(|why| format!("{why}; {connect}")));
        wrong.extend(
            wires(found)
                .iter()
                .filter_map(|wire| self.unreachable(wire))
                .map(|why| format!("{why}; {connect}")),
        );
        wrong.extend(coverage(found).into_iter().map(|why| format!("{why}; {connect}")));
        wrong.extend(self.beside_the_user(found));
        wrong
    }

    /// Why a call does not reach this bus, if so.
    fn unreachable(&self, wire: &Wire) -> Option<String> {
        let program = wire.program.display();
        if !wire.program.exists() {
            return Some(format!("the program {program} that it names does not exist"));
        }
        if !is_executable(&wire.program) {
            return Some(format!("the program {program} that it names is not executable"));
        }
        let this = std::env::current_exe().map(|program| files::canonical(&program));
        let this = this.unwrap_or_default();
        if files::canonical(&wire.program) != this {
            return Some(format!("it names the program {program}, not {}", this.display()));
        }
        (files::canonical(&wire.home) != self.hookbus)
            .then(|| format!("it names another home of hookbus, {}", wire.home.display()))
    }

    /// Gemini reads the settings of the user and of the project, and runs the same hook once, different ones both.
    fn beside_the_user(&self, found: &[BusHook]) -> Option<String> {
        let user = self.user.filter(|user| user.file != self.location.file)?;
        let others = bus_hooks::find(&read(&user.file));
        let is_doubled = |hook: &BusHook| {
            let same_event = |other: &&BusHook| other.place.event == hook.place.event;
            others
                .iter()
                .filter(same_event)
                .any(|other| other.command != hook.command || other.name != hook.name)
        };
        found.iter().any(is_doubled).then(|| {
            format!(
                "{} calls the bus too, so events of this project arrive twice; run `hookbus disconnect gemini{}`, or `hookbus disconnect gemini`",
                user.file.display(),
                self.location.option()
            )
        })
    }
}

/// Why a call that the user has written may reach another bus, if so.
fn unpinned(found: &[BusHook], hookbus: &Path) -> Option<String> {
    let by_hand = found.iter().filter(|hook| !matches!(hook.call, Call::Wired(_)));
    by_hand.into_iter().find_map(|BusHook { command, place, .. }| {
        let homes = homes_called(&json!({"command": command}), "gemini").into_iter();
        homes.into_iter().find_map(|home| match home {
            Some(home) if files::canonical(&home) == hookbus => None,
            Some(home) => Some(format!(
                "`{command}` on {} calls another home of hookbus, {}",
                place.event,
                home.display()
            )),
            None => Some(format!(
                "`{command}` on {} does not name its home, so a variable that a repository's .env file sets \
                 (HOOKBUS_HOME) can lead it to another one",
                place.event
            )),
        })
    })
}

/// The different calls that `connect` wrote.
fn wires(found: &[BusHook]) -> Vec<Wire> {
    let mut wires: Vec<Wire> = Vec::new();
    for hook in found {
        match &hook.call {
            Call::Wired(wire) if !wires.contains(wire) => wires.push(wire.clone()),
            Call::Wired(_) | Call::ByHand | Call::WithOtherWork => {}
        }
    }
    wires
}

/// Events that do not arrive, arrive in part, or twice.
fn coverage(found: &[BusHook]) -> Vec<String> {
    let of_event = |event: &str| found.iter().filter(|hook| hook.place.event == event).count();
    let names = |is_so: &dyn Fn(usize) -> bool| {
        let events = event_names(Agent::Gemini).filter(|event| is_so(of_event(event)));
        events.collect::<Vec<_>>().join(", ")
    };
    let (missing, twice) = (names(&|count| count == 0), names(&|count| count > 1));
    let mut wrong = Vec::new();
    if !missing.is_empty() {
        wrong.push(format!("no hook calls the bus at {missing}"));
    }
    if !twice.is_empty() {
        wrong.push(format!("several hooks call the bus at {twice}, so these events arrive twice"));
    }
    for hook in found {
        let event = &hook.place.event;
        if let Some(matcher) = &hook.matcher {
            wrong.push(format!("the hook at {event} is only for `{matcher}`"));
        }
        if let (Call::Wired(wire), Some(timeout)) = (&hook.call, hook.timeout)
            && std::time::Duration::from_millis(timeout).as_secs_f64() <= wire.deadline
        {
            let deadline = wire.deadline;
            wrong.push(format!(
                "Gemini gives the hook at {event} {timeout} ms, and it may take {deadline} s"
            ));
        }
    }
    wrong
}

fn read(file: &Path) -> Value {
    let text = files::read(file).ok().flatten().unwrap_or_default();
    settings_text::read(&text).unwrap_or_default()
}
