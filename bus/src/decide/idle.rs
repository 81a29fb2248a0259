//! Entries that name a directory in which nothing is loaded: a path with a typing error in it, a directory that is
//! empty, or one of plugins of which none is switched on.

use std::path::Path;

use super::Hooks;
use super::hook::Action;
use super::host::{self, Lists};
use super::launch;
use super::surroundings::Surroundings;

/// An entry that nothing can come of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// The hook's name.
    pub hook: String,
    /// The key it stands under.
    pub event: String,
    /// Where in the file it stands.
    pub line: usize,
    /// Why, ending with the way out.
    pub why: String,
}

impl Hooks {
    /// The entries whose directory has no plugin that is loaded.
    pub fn idle_plugins(&self, place: &Surroundings) -> Vec<Idle> {
        let idle = self.hooks.iter().filter_map(|hook| {
            let Action::Python(python) = &hook.action else { return None };
            let why =
                nothing_in(&launch::folder(&python.folder, place, &self.base), &self.plugins)?;
            let (hook, event, line) = (hook.name.clone(), hook.on.to_string(), hook.line);
            Some(Idle { hook, event, line, why })
        });
        idle.collect()
    }
}

fn nothing_in(folder: &Path, lists: &Lists) -> Option<String> {
    let shown = folder.display();
    if !folder.is_dir() {
        return Some(format!("there is no directory {shown}; check the path under `python:`"));
    }
    if !host::needs(folder, lists).is_empty() {
        return None;
    }
    let lying = host::lying(folder);
    let lying = match lying.as_slice() {
        [] => {
            return Some(format!(
                "{shown} holds no plugin, neither a plugin.yaml nor a HOOK.yaml; put one there, or check the path under `python:`"
            ));
        }
        [..] => lying.join(", "),
    };
    Some(format!(
        "of what lies in {shown} ({lying}) nothing is loaded; name it under `plugins: enabled:` (and not under `disabled:`)"
    ))
}
