//! `plugins:` in a hooks file: which plugins of a `python:` directory are loaded, in the words of
//! Hermes' own configuration.

/// The two lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginLists {
    /// Plugins of a directory of plugins that are loaded.
    pub enabled: Vec<String>,
    /// Plugins that are never loaded.
    pub disabled: Vec<String>,
}
