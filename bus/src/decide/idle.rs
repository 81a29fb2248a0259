//! Entries that name a directory in which nothing is loaded: a path with a typing error in it, a directory that is
//! empty, or one of plugins of which none is switched on.

use std::path::Path;

use super::Hooks;
use super::hook::Action;
use super::host::{self, Lists, Names};
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

/// Why nothing of a directory is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoneLoaded {
    /// It is not there.
    NoFolder,
    /// There are no plugins in it.
    NoneThere,
    /// There are these, and none was asked for.
    NotEnabled(Vec<String>),
    /// These are there, and Hermes does not load them for their hooks.
    Providers(Vec<String>),
    /// These were asked for and lie nowhere; what lies here is switched off by name.
    Missing(Vec<String>),
    /// These are switched off by name, and nobody is missed.
    SwitchedOff(Vec<String>),
}

impl NoneLoaded {
    /// The reason, if nothing in `folder` is loaded.
    pub(super) fn find(folder: &Path, lists: &Lists) -> Option<Self> {
        if !folder.is_dir() {
            return Some(Self::NoFolder);
        }
        if !host::needs(folder, lists).is_empty() {
            return None;
        }
        let Names { off, providers, other } = host::lying(folder, lists);
        Some(match (off.is_empty(), providers.is_empty(), other.is_empty()) {
            (_, _, false) => Self::NotEnabled(other),
            (_, false, true) => Self::Providers(providers),
            (false, true, true) => Self::SwitchedOff(off),
            (true, true, true) => Self::NoneThere,
        })
    }

    /// The same in words, with what to do.
    pub(super) fn said_of(&self, folder: &Path) -> String {
        let folder = folder.display();
        match self {
            Self::NoFolder => {
                format!("there is no directory {folder}; check the path under `python:`")
            }
            Self::NoneThere => format!(
                "{folder} holds no plugin, neither a plugin.yaml nor a HOOK.yaml; put one there, or check the path under `python:`"
            ),
            Self::NotEnabled(names) => format!(
                "of what lies in {folder} ({}) nothing is loaded; name it under `plugins: enabled:`",
                names.join(", ")
            ),
            Self::Providers(names) => format!(
                "what lies in {folder} ({}) is a provider (`kind: exclusive` or `model-provider`), which is no plugin with hooks in Hermes either; check the path under `python:`",
                names.join(", ")
            ),
            Self::Missing(names) => format!(
                "`plugins: enabled:` names what {folder} does not hold ({}); put it there, or check the name",
                names.join(", ")
            ),
            Self::SwitchedOff(names) => format!(
                "all that lies in {folder} ({}) is switched off under `plugins: disabled:`",
                names.join(", ")
            ),
        }
    }
}

impl Hooks {
    /// The entries whose directory has no plugin that is loaded, unless somebody wants it so.
    pub fn idle_plugins(&self, place: &Surroundings) -> Vec<Idle> {
        let idle = self.hooks.iter().filter_map(|hook| {
            let Action::Python(python) = &hook.action else { return None };
            let folder = launch::folder(&python.folder, place, &self.base);
            let why = match self.none_loaded(&folder, place)? {
                NoneLoaded::SwitchedOff(_) => return None,
                why @ (NoneLoaded::NoFolder
                | NoneLoaded::NoneThere
                | NoneLoaded::NotEnabled(_)
                | NoneLoaded::Providers(_)
                | NoneLoaded::Missing(_)) => why.said_of(&folder),
            };
            let (hook, event, line) = (hook.name.clone(), hook.on.to_string(), hook.line);
            Some(Idle { hook, event, line, why })
        });
        idle.collect()
    }

    /// Why nothing of `folder` is loaded, if so.
    pub(super) fn none_loaded(&self, folder: &Path, place: &Surroundings) -> Option<NoneLoaded> {
        let why = NoneLoaded::find(folder, &self.plugins)?;
        // One that was enabled and is gone may have been in here.
        let absent = self.absent_plugins(place);
        let is_missed = matches!(why, NoneLoaded::SwitchedOff(_)) && !absent.is_empty();
        Some(if is_missed { NoneLoaded::Missing(absent) } else { why })
    }
}
