//! What connecting Hermes means: the bridge in its plugins, the gateway bridge in its hooks, one word in
//! its `config.yaml`, and one wire only.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hookbus::event::Time;
use serde_json::{Value, json};

use super::files::{self, Change, Record};
use super::meaning::{self, Deeds, place_in};
use super::undo::undo;
use super::yaml_edit::{self, CannotEdit, Step, add_to_list};
use super::{consent, hooks_move};
use crate::settings::Settings;

/// The name of the plugin and of the gateway hook.
pub(super) const NAME: &str = "hookbus";

const PLUGIN: [(&str, &str); 3] = [
    ("plugin.yaml", include_str!("../../bridge/hermes/plugin.yaml")),
    ("__init__.py", include_str!("../../bridge/hermes/__init__.py")),
    ("client.py", include_str!("../../bridge/hermes/client.py")),
];

const GATEWAY: [(&str, &str); 3] = [
    ("HOOK.yaml", include_str!("../../bridge/hermes/HOOK.yaml")),
    ("handler.py", include_str!("../../bridge/hermes/handler.py")),
    ("client.py", include_str!("../../bridge/hermes/client.py")),
];

/// What becomes of the hooks in Hermes' own configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TheirHooks {
    /// They stay where they are.
    Keep,
    /// They go to `hookbus.yaml`, those that Hermes has consent for.
    Move,
}

/// What is wanted of a connection.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) hermes: PathBuf,
    pub(super) hookbus: PathBuf,
    pub(super) program: PathBuf,
    /// None: as it was, and they stay in Hermes if nothing was.
    pub(super) hooks: Option<TheirHooks>,
    pub(super) bridge: BridgeSettings,
    /// When it is wanted.
    pub(super) at: Time,
}

/// What the bridge is told; none: as it was.
#[derive(Debug, Default, Clone)]
pub(super) struct BridgeSettings {
    pub(super) deadline: Option<f64>,
    pub(super) gateway_deadline: Option<f64>,
    pub(super) without_daemon: Option<String>,
}

/// All of a connection, thought through and not done yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) record: Record,
    /// What has to be written, with what is there now.
    pub(super) to_write: Vec<(Change, Option<String>)>,
    pub(super) remarks: Vec<String>,
}

/// Thinks a connection through.
pub(super) fn plan(wanted: &Wanted, known: &Record) -> Result<Plan> {
    let mut plan = Plan {
        record: Record { changes: Vec::new(), made: known.made.clone() },
        to_write: Vec::new(),
        remarks: Vec::new(),
    };
    let config = wanted.hermes.join("config.yaml");
    let hooks_file = wanted.hookbus.join("hookbus.yaml");
    let Back { config: config_before, hooks: hooks_before } =
        without_us(&config, &hooks_file, known, &mut plan.remarks)?;
    let text = config_before.clone().unwrap_or_default();
    let trouble = |path: &Path| format!("{} stays as it is", path.display());

    let mut edited = one_wire_only(&text).with_context(|| trouble(&config))?;
    // Hooks that were moved before stay moved.
    let moves = known.of(&hooks_file).map_or(TheirHooks::Keep, |_| TheirHooks::Move);
    if wanted.hooks.unwrap_or(moves) == TheirHooks::Move {
        let consent = files::read(&wanted.hermes.join("shell-hooks-allowlist.json"))?;
        let (left, moved) = hooks_move::take_out(&edited, consent.as_deref(), &mut plan.remarks)
            .with_context(|| trouble(&config))?;
        edited = left;
        if !moved.is_empty() {
            let target = hooks_before.clone().unwrap_or_default();
            let after =
                hooks_move::put_in(&target, &moved).with_context(|| trouble(&hooks_file))?;
            let path = consent::file(&wanted.hookbus);
            let brought = consent::bring_along(
                &after,
                &moved,
                &wanted.hookbus,
                known.of(&path),
                wanted.at,
                &mut plan.remarks,
            )?;
            plan.add(hooks_file, hooks_before, after)?;
            if let Some(Change { path, before, after }) = brought {
                plan.add(path, before, after)?;
            }
        }
    }
    edited = add_to_list(&edited, "plugins", "enabled", NAME).with_context(|| trouble(&config))?;
    plan.add(config, config_before, edited)?;
    for (folder, texts) in [("plugins", PLUGIN), ("hooks", GATEWAY)] {
        let folder = wanted.hermes.join(folder).join(NAME);
        let settings = bridge_settings(&folder.join("bridge.json"), wanted)?;
        let texts = texts.into_iter().map(|(name, text)| (name, text.to_owned()));
        for (name, text) in texts.chain([("bridge.json", settings)]) {
            let path = folder.join(name);
            let before = known
                .of(&path)
                .map_or_else(|| files::read(&path), |known| Ok(known.before.clone()))?;
            plan.add(path, before, text)?;
        }
    }
    Ok(plan)
}

impl Plan {
    fn add(&mut self, path: PathBuf, before: Option<String>, after: String) -> Result<()> {
        let now = files::read(&path)?;
        let change = Change { path, before, after };
        if now.as_ref() != Some(&change.after) {
            self.to_write.push((change.clone(), now));
        }
        self.record.changes.push(change);
        Ok(())
    }
}

/// The two files that are not ours alone, without us; none where there is no file.
pub(super) struct Back {
    pub(super) config: Option<String>,
    pub(super) hooks: Option<String>,
}

/// Both files with an earlier connection's edits taken back, and what others changed kept.
pub(super) fn without_us(
    config: &Path,
    hooks_file: &Path,
    known: &Record,
    remarks: &mut Vec<String>,
) -> Result<Back> {
    let (ours, theirs) = (known.of(config), known.of(hooks_file));
    let mut left = meaning::deeds(ours)?;
    let mut moved = meaning::deeds(theirs)?;
    if let Some(change) = theirs {
        let now = files::read(hooks_file)?;
        if now.as_ref() != Some(&change.after) {
            let now = yaml_edit::read(now.as_deref().unwrap_or("")).with_context(|| {
                format!("{} cannot be read; mend it first", hooks_file.display())
            })?;
            meaning::follow_edits(&mut left, &mut moved, &now, remarks);
        }
    }
    if !moved.put.is_empty() && files::read(config)?.is_none() {
        remarks.push(format!(
            "{} is gone; the hooks that came from it stay in hookbus.yaml",
            config.display()
        ));
        moved.put.clear();
    }
    Ok(Back {
        config: taken_back(config, ours, &left)?,
        hooks: taken_back(hooks_file, theirs, &moved)?,
    })
}

/// What `path` holds without our edits: by its lines, and where those tell too little by its meaning.
fn taken_back(path: &Path, change: Option<&Change>, deeds: &Deeds) -> Result<Option<String>> {
    let now = files::read(path)?;
    let (Some(change), Some(now)) = (change, &now) else { return Ok(now) };
    let before = change.before.as_deref().unwrap_or("");
    if *now == change.after && *deeds == meaning::deeds(Some(change))? {
        return Ok(change.before.clone());
    }
    let by_lines = undo(before, &change.after, now);
    let text = if deeds.is_taken_back(&by_lines, now) {
        by_lines
    } else {
        deeds.take_back(now).with_context(|| by_hand(path, now, deeds))?
    };
    // A file that we made and nobody else wrote to was not there.
    Ok(Some(text).filter(|text| !(text.trim().is_empty() && change.before.is_none())))
}

/// What a person has to do where we cannot.
fn by_hand(path: &Path, now: &str, deeds: &Deeds) -> String {
    let now = yaml_edit::read(now).unwrap_or_default();
    let back = meaning::written(&deeds.missing(&now));
    let back = if back.is_empty() { back } else { format!(", put this back:\n{back}") };
    format!(
        "nothing has changed: our edits cannot be taken out of {}. Take `{NAME}` out by hand{back}, then run this again",
        path.display()
    )
}

/// Whether this Hermes loads our bridge.
pub(super) fn is_enabled(text: &str) -> bool {
    yaml_edit::read(text).is_ok_and(|config| place_in(&config, "enabled").is_some())
}

/// Without our own shell hooks, which would fire a second time, and without a ban on the bridge.
fn one_wire_only(text: &str) -> Result<String, CannotEdit> {
    let config = yaml_edit::read(text)?;
    let mut paths = Vec::new();
    for (event, index, entry) in hooks_move::entries(&config) {
        if is_ours(&entry) {
            let hooks = Step::Key("hooks".to_owned());
            paths.push(vec![hooks, Step::Key(event), Step::Item(index)]);
        }
    }
    paths.extend(place_in(&config, "disabled"));
    yaml_edit::remove(text, &paths)
}

/// Whether an entry of Hermes' hooks is `hookbus hook hermes`.
fn is_ours(entry: &Value) -> bool {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = command.split_whitespace().collect();
    let program = |word: &&str| Path::new(word).file_name().is_some_and(|name| name == NAME);
    let place = words.iter().position(program);
    place.is_some_and(|place| words.get(place + 1..place + 3) == Some(&["hook", "hermes"]))
}

fn bridge_settings(file: &Path, wanted: &Wanted) -> Result<String> {
    let known: Value =
        files::read(file)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let BridgeSettings { deadline, gateway_deadline, without_daemon } = wanted.bridge.clone();
    let number = |said: Option<f64>, key: &str, usual: f64| {
        json!(said.or_else(|| known.get(key)?.as_f64()).unwrap_or(usual))
    };
    let without =
        without_daemon.or_else(|| known.get("without_daemon")?.as_str().map(str::to_owned));
    let settings = json!({
        "hookbus": wanted.program.to_string_lossy(),
        "version": env!("CARGO_PKG_VERSION"),
        "home": wanted.hookbus.to_string_lossy(),
        "deadline": number(deadline, "deadline", 55.0),
        "gateway_deadline": number(gateway_deadline, "gateway_deadline", 2.0),
        "without_daemon": without.unwrap_or_else(|| "hook".to_owned()),
    });
    Ok(serde_json::to_string_pretty(&settings)? + "\n")
}

/// The home that a record is about.
pub(super) fn home_in(known: &Record) -> Option<PathBuf> {
    let plugin = Path::new("plugins").join(NAME).join(PLUGIN[0].0);
    let ours = known.changes.iter().find(|change| change.path.ends_with(&plugin))?;
    ours.path.ancestors().nth(plugin.iter().count()).map(Path::to_owned)
}

/// What keeps a connection from working, if anything. `option` is how this home is named on the command line.
pub(super) fn trouble(home: &Path, option: &str, known: &Record, hookbus: &Path) -> Option<String> {
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
    let events: Vec<_> =
        yaml_edit::read(config).map(|config| hooks_move::entries(&config)).unwrap_or_default();
    let by_shell = events.iter().any(|(_, _, entry)| is_ours(entry));
    match (is_enabled(config), by_shell) {
        (false, true) => return None, // wired by hand, over Hermes' own hooks
        (false, false) => return Some(format!("it is not wired to this bus; {again}")),
        (true, true) => {
            return Some(format!("it is wired twice, and every event comes twice; {again}"));
        }
        (true, false) => {}
    }
    let banned = yaml_edit::read(config).is_ok_and(|file| place_in(&file, "disabled").is_some());
    if banned {
        return Some(format!("`plugins: disabled:` in its config.yaml names `{NAME}`; {again}"));
    }
    let texts = PLUGIN
        .iter()
        .map(|file| ("plugins", file))
        .chain(GATEWAY.iter().map(|file| ("hooks", file)));
    for (folder, (name, text)) in texts {
        let file = home.join(folder).join(NAME).join(name);
        match files::read(&file) {
            Ok(Some(there)) if there == *text => {}
            Ok(Some(_)) => {
                return Some(format!("{} is of another version; {again}", file.display()));
            }
            Ok(None) | Err(_) => return Some(format!("{} is missing; {again}", file.display())),
        }
    }
    let folders = ["plugins", "hooks"].map(|folder| home.join(folder).join(NAME));
    let wrong = folders.iter().find_map(|folder| unreachable(&folder.join("bridge.json"), hookbus));
    wrong.map(|wrong| format!("{wrong}; {again}")).or_else(|| {
        let elsewhere = "it is connected to another home of hookbus; check HOOKBUS_HOME";
        known.changes.is_empty().then(|| elsewhere.to_owned())
    })
}

/// Why a bridge with these settings does not reach this bus, if so.
fn unreachable(file: &Path, hookbus: &Path) -> Option<String> {
    let shown = file.display();
    let Ok(Some(text)) = files::read(file) else { return Some(format!("{shown} is missing")) };
    let settings: Value = serde_json::from_str(&text).unwrap_or_default();
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

/// The home of the Hermes that is meant.
pub(super) fn home(said: Option<PathBuf>, settings: &Settings) -> Result<PathBuf> {
    let home = place(said, settings)?;
    if !home.is_dir() {
        bail!("there is no Hermes in {}; start it once, or say --hermes-home DIR", home.display());
    }
    Ok(home)
}

/// The same whether or not it is there.
pub(super) fn place(said: Option<PathBuf>, settings: &Settings) -> Result<PathBuf> {
    let home = said.or_else(|| settings.hermes.clone());
    let home = std::path::absolute(home.context("say where Hermes lives: --hermes-home DIR")?)?;
    Ok(files::real(&home))
}
