//! What connecting Hermes means: the bridge in its plugins, the gateway bridge in its hooks, one word in
//! its `config.yaml`, and one wire only.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hookbus::decide::Hooks;
use hookbus::event::Time;

use super::bridge::{self, NAME};
use super::edited::Kept;
use super::files::{self, Change, Record};
use super::meaning::{self, Deeds, place_in};
use super::shell_wire::{Calls, calls};
use super::twice::{Twice, run_twice};
use super::undo::undo;
use super::yaml_edit::{self, CannotEdit, Step, add_to_list};
use super::{bridge_plan, consent, hooks_move};
use crate::hooks::here;
use crate::settings::Settings;

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
    pub(super) bridge: bridge::Said,
    /// When it is wanted.
    pub(super) at: Time,
}

/// All of a connection, thought through and not done yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) record: Record,
    /// What has to be written, with what is there now.
    pub(super) to_write: Vec<(Change, Option<String>)>,
    /// What others wrote into files of the bridge.
    pub(super) kept: Vec<Kept>,
    pub(super) remarks: Vec<String>,
}

/// Thinks a connection through.
pub(super) fn plan(wanted: &Wanted, known: &Record) -> Result<Plan> {
    let mut plan = Plan {
        record: Record { changes: Vec::new(), made: known.made.clone() },
        to_write: Vec::new(),
        kept: Vec::new(),
        remarks: Vec::new(),
    };
    let config = wanted.hermes.join("config.yaml");
    let hooks_file = wanted.hookbus.join("hookbus.yaml");
    let Back { config: config_before, hooks: hooks_before } =
        without_us(&config, &hooks_file, known, &mut plan.remarks)?;
    let trouble = |path: &Path| format!("{} stays as it is", path.display());
    let left = bridge_plan::left_behind(wanted, known)?;
    let without = left.as_ref().map(|left| left.out_of(config_before.clone())).transpose();
    let without = without.with_context(|| trouble(&config))?.flatten();
    let config_before = without.or(config_before);
    let text = config_before.clone().unwrap_or_default();

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
    bridge_plan::add_to(&mut plan, wanted, known, left.as_ref())?;
    plan.remarks.extend(done_twice(wanted)?);
    Ok(plan)
}

/// What Hermes and the bus would both run, in the words of a remark.
fn done_twice(wanted: &Wanted) -> Result<Vec<String>> {
    let file = wanted.hookbus.join("hookbus.yaml");
    let text = files::read(&file)?.unwrap_or_default();
    let Ok(hooks) = Hooks::parse(&text, &wanted.hookbus) else { return Ok(Vec::new()) };
    let twice = run_twice(&wanted.hermes, &hooks, &file, &here()).into_iter();
    Ok(twice.map(|Twice { plugin, why }| format!("the plugin `{plugin}`: {why}")).collect())
}

impl Plan {
    pub(super) fn add(
        &mut self,
        path: PathBuf,
        before: Option<String>,
        after: String,
    ) -> Result<()> {
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
    let Ok(now) = yaml_edit::read(now) else {
        let file = path.display();
        return format!("nothing has changed: mend {file} by hand, then run this again");
    };
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
        match calls(&entry) {
            Calls::Nothing => {}
            Calls::Only => {
                let hooks = Step::Key("hooks".to_owned());
                paths.push(vec![hooks, Step::Key(event), Step::Item(index)]);
            }
            Calls::AndMore => {
                let command = entry["command"].as_str().unwrap_or_default().to_owned();
                return Err(CannotEdit::CallsUsToo { event, command });
            }
        }
    }
    paths.extend(place_in(&config, "disabled"));
    yaml_edit::remove(text, &paths)
}

/// The home that a record is about.
pub(super) fn home_in(known: &Record) -> Option<PathBuf> {
    known.changes.iter().find_map(|change| bridge::home_of(&change.path))
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
