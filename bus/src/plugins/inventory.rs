//! Which plugins a hooks file loads, which it names but cannot find, and which of its entries load none.
//! A plugin that is not found never runs and so never fails: without this the user would not notice.

use std::path::{Path, PathBuf};

use super::discovery::{self, InstalledNames, LoadedPlugin, installed_names};
use super::manifest::ManifestCache;
use super::plugin_dir::required_variables;
use crate::caller::Caller;
use crate::config::{Action, Hook, HooksFile, PluginLists};
use crate::event::Agent;

/// An entry whose directory loads no plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyPluginEntry {
    /// The hook's name.
    pub hook: String,
    /// The event key that it is under.
    pub event: String,
    /// Its line in the file.
    pub line: usize,
    /// Why, ending with what to do.
    pub why: String,
}

/// Why no plugin of a directory is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NothingLoaded {
    /// The directory does not exist.
    NoFolder,
    /// There are no plugins in it.
    NoPlugins,
    /// None of these is enabled.
    NotEnabled(Vec<String>),
    /// These are all providers, which Hermes does not load for their hooks.
    Providers(Vec<String>),
    /// These are enabled and not found; the others in the directory are disabled.
    Missing(Vec<String>),
    /// All of these are disabled by name, and none is missing.
    Disabled(Vec<String>),
}

impl NothingLoaded {
    /// The reason, if nothing in `folder` is loaded.
    pub fn find(folder: &Path, lists: &PluginLists) -> Option<Self> {
        if !folder.is_dir() {
            return Some(Self::NoFolder);
        }
        if !required_variables(folder, lists).is_empty() {
            return None;
        }
        let InstalledNames { disabled, providers, others } = installed_names(folder, lists);
        Some(match (disabled.is_empty(), providers.is_empty(), others.is_empty()) {
            (_, _, false) => Self::NotEnabled(others),
            (_, false, true) => Self::Providers(providers),
            (false, true, true) => Self::Disabled(disabled),
            (true, true, true) => Self::NoPlugins,
        })
    }

    /// The reason as a sentence, with what to do.
    pub fn describe(&self, folder: &Path) -> String {
        let folder = folder.display();
        match self {
            Self::NoFolder => {
                format!("there is no directory {folder}; check the path under `python:`")
            }
            Self::NoPlugins => format!(
                "{folder} holds no plugin, neither a plugin.yaml nor a HOOK.yaml; put one there, or check the path under `python:`"
            ),
            Self::NotEnabled(names) => format!(
                "none of the plugins in {folder} ({}) is loaded; name it under `plugins: enabled:`",
                names.join(", ")
            ),
            Self::Providers(names) => format!(
                "{folder} holds only providers ({}; `kind: exclusive` or `model-provider`), which Hermes does not load for their hooks either; check the path under `python:`",
                names.join(", ")
            ),
            Self::Missing(names) => format!(
                "`plugins: enabled:` names plugins that are not in {folder} ({}); put them there, or check the name",
                names.join(", ")
            ),
            Self::Disabled(names) => format!(
                "all plugins in {folder} ({}) are named under `plugins: disabled:`",
                names.join(", ")
            ),
        }
    }
}

/// The names under `plugins: enabled:` that none of the file's directories has.
pub fn missing_plugins(file: &HooksFile, caller: &Caller) -> Vec<String> {
    let folders = file.hooks.iter().filter_map(|hook| plugin_folder(file, hook, caller));
    discovery::missing(&folders.collect::<Vec<_>>(), &file.plugins)
}

/// The plugins that are called about any event of `agent`, each once.
pub fn loaded_for(file: &HooksFile, agent: Agent, caller: &Caller) -> Vec<LoadedPlugin> {
    let cache = ManifestCache::default();
    let concerns =
        |hook: &&Hook| hook.on.concerns(agent) && hook.agent.is_none_or(|only| only == agent);
    let hooks = file.hooks.iter().filter(concerns);
    let mut plugins: Vec<LoadedPlugin> = Vec::new();
    for folder in hooks.filter_map(|hook| plugin_folder(file, hook, caller)) {
        for plugin in discovery::discover(&folder, &file.plugins, &cache).loaded {
            let plugin = LoadedPlugin::from(plugin);
            if !plugins.contains(&plugin) {
                plugins.push(plugin);
            }
        }
    }
    plugins
}

/// The entries whose directory loads no plugin, unless the user disabled all of it.
pub fn empty_entries(file: &HooksFile, caller: &Caller) -> Vec<EmptyPluginEntry> {
    let empty = file.hooks.iter().filter_map(|hook| {
        let folder = plugin_folder(file, hook, caller)?;
        let why = match nothing_loaded(file, &folder, caller)? {
            NothingLoaded::Disabled(_) => return None,
            why @ (NothingLoaded::NoFolder
            | NothingLoaded::NoPlugins
            | NothingLoaded::NotEnabled(_)
            | NothingLoaded::Providers(_)
            | NothingLoaded::Missing(_)) => why.describe(&folder),
        };
        let (hook, event, line) = (hook.name.clone(), hook.on.to_string(), hook.line);
        Some(EmptyPluginEntry { hook, event, line, why })
    });
    empty.collect()
}

/// Why no plugin in `folder` is loaded, if so.
pub(crate) fn nothing_loaded(
    file: &HooksFile,
    folder: &Path,
    caller: &Caller,
) -> Option<NothingLoaded> {
    let why = NothingLoaded::find(folder, &file.plugins)?;
    // A plugin that is enabled and missing may have been in here.
    let missing = missing_plugins(file, caller);
    let is_missing = matches!(why, NothingLoaded::Disabled(_)) && !missing.is_empty();
    Some(if is_missing { NothingLoaded::Missing(missing) } else { why })
}

fn plugin_folder(file: &HooksFile, hook: &Hook, caller: &Caller) -> Option<PathBuf> {
    let Action::Python(python) = &hook.action else { return None };
    Some(caller.resolve(&python.folder, &file.base))
}
