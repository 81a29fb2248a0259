//! Plugins that a hooks file wants loaded and that lie nowhere: a name with a typing error in it, or a
//! directory that has gone. Nothing can fail where nothing is found, so somebody has to ask.

use std::path::PathBuf;

use super::Hooks;
use super::hook::Action;
use super::host;
use super::launch;
use super::surroundings::Surroundings;

impl Hooks {
    /// The names under `plugins: enabled:` that none of the directories of these hooks has.
    pub fn absent_plugins(&self, place: &Surroundings) -> Vec<String> {
        let folders = self.hooks.iter().filter_map(|hook| match &hook.action {
            Action::Python(python) => Some(launch::folder(&python.folder, place, &self.base)),
            Action::Command(_)
            | Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Broken(_)
            | Action::Unread { .. } => None,
        });
        let folders: Vec<PathBuf> = folders.collect();
        host::absent(&folders, &self.plugins)
    }
}
