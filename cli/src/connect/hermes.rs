//! Where Hermes lives, and what its `config.yaml` says about the bridge.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::bridge::{self, NAME};
use super::files;
use super::record::{FileChange, Record};
use super::yaml::{self, ItemPath, YamlError};
use crate::settings::Settings;

/// The home directory of Hermes, which has to exist.
pub(super) fn home(option: Option<PathBuf>, settings: &Settings) -> Result<PathBuf> {
    let home = home_path(option, settings)?;
    if !home.is_dir() {
        bail!("there is no Hermes in {}; start it once, or pass --hermes-home DIR", home.display());
    }
    Ok(home)
}

/// The same, whether or not it exists.
pub(super) fn home_path(option: Option<PathBuf>, settings: &Settings) -> Result<PathBuf> {
    let home = option.or_else(|| settings.hermes.clone());
    let home = home.context("cannot tell where Hermes lives; pass --hermes-home DIR")?;
    Ok(files::canonical(&std::path::absolute(home)?))
}

/// The home that a record is about.
pub(super) fn home_in(record: &Record) -> Option<PathBuf> {
    record.changes.iter().find_map(|change| bridge::home_of(&change.path))
}

/// Where `plugins: <list>:` of a configuration names the bridge.
pub(super) fn listed_in(config: &Value, list: &str) -> Option<ItemPath> {
    let names = config.get("plugins")?.get(list)?.as_array()?;
    let index = names.iter().position(|name| name == NAME)?;
    Some(ItemPath { section: "plugins", list: list.to_owned(), index })
}

/// Whether a Hermes with this configuration loads the bridge.
pub(super) fn is_enabled(config: &str) -> bool {
    yaml::read(config).is_ok_and(|config| listed_in(&config, "enabled").is_some())
}

/// Whether the usual Hermes loads the bridge.
pub(crate) fn is_bridged(settings: &Settings) -> bool {
    let config = home(None, settings).ok().map(|home| home.join("config.yaml"));
    let text = config.and_then(|file| files::read(&file).ok().flatten());
    text.is_some_and(|text| is_enabled(&text))
}

/// The configuration without us: the text from before `connect` if nothing has changed since, otherwise the present text
/// without the bridge's name, unless the user had put it there.
pub(super) fn restored_config(change: &FileChange, now: &str) -> Result<Option<String>, YamlError> {
    if now == change.after {
        return Ok(change.before.clone());
    }
    if is_enabled(change.before.as_deref().unwrap_or_default()) {
        return Ok(Some(now.to_owned()));
    }
    without_name(now).map(Some)
}

/// The configuration without the bridge's name under `plugins: enabled:`.
pub(super) fn without_name(config: &str) -> Result<String, YamlError> {
    let path = listed_in(&yaml::read(config)?, "enabled");
    yaml::remove(config, &path.into_iter().collect::<Vec<_>>())
}
