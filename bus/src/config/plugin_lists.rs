//! `plugins:` in a hooks file: which plugins of a `python:` directory are loaded, with the keys of Hermes' own
//! configuration.

/// The two lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginLists {
    /// Plugins that are loaded from a directory of several.
    pub enabled: Vec<String>,
    /// Plugins that are never loaded.
    pub disabled: Vec<String>,
}
