//! A roll call of the plugins that a hooks file names: those that are loaded, and those that are wanted and lie
//! nowhere, for a typing error or because their directory has gone. Nothing can fail where nothing is found, so
//! somebody has to ask.

use std::path::PathBuf;

use super::Hooks;
use super::hook::{Action, Hook};
use super::host::{self, LoadedPlugin, Manifests};
use super::launch;
use super::surroundings::Surroundings;
use crate::event::Agent;

impl Hooks {
    /// The names under `plugins: enabled:` that none of the directories of these hooks has.
    pub fn absent_plugins(&self, place: &Surroundings) -> Vec<String> {
        let folders = self.hooks.iter().filter_map(|hook| self.plugin_folder(hook, place));
        host::absent(&folders.collect::<Vec<_>>(), &self.plugins)
    }

    /// The plugins that hear anything of `agent`, each once.
    pub fn plugins_for(&self, agent: Agent, place: &Surroundings) -> Vec<LoadedPlugin> {
        let known = Manifests::default();
        let hears =
            |hook: &&Hook| hook.on.concerns(agent) && hook.agent.is_none_or(|only| only == agent);
        let hooks = self.hooks.iter().filter(hears);
        let folders = hooks.filter_map(|hook| self.plugin_folder(hook, place));
        let mut plugins: Vec<LoadedPlugin> = Vec::new();
        for plugin in folders.flat_map(|folder| host::roll(&folder, &self.plugins, &known)) {
            if !plugins.contains(&plugin) {
                plugins.push(plugin);
            }
        }
        plugins
    }

    fn plugin_folder(&self, hook: &Hook, place: &Surroundings) -> Option<PathBuf> {
        let Action::Python(python) = &hook.action else { return None };
        Some(launch::folder(&python.folder, place, &self.base))
    }
}
