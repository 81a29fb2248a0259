//! Finding plugins on disk, as Hermes does: a directory with a manifest, or a directory of such directories,
//! with at most one level of categories in between. The hooks file's `plugins:` decides which are loaded.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifest::{Manifest, ManifestCache, folder_name};
use crate::config::PluginLists;

/// The files that make a directory a plugin.
pub(super) const MANIFESTS: [&str; 3] = ["plugin.yaml", "plugin.yml", "HOOK.yaml"];

/// The two forms of a plugin directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PluginForm {
    /// `plugin.yaml` and `register(ctx)`.
    Plugin,
    /// `HOOK.yaml` and `handler.py`.
    Gateway,
}

impl PluginForm {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Gateway => "gateway",
        }
    }

    /// The form of the plugin whose manifest `file` is; none if it is not a manifest.
    pub(crate) fn of_manifest(file: &Path) -> Option<Self> {
        let name = file.file_name().unwrap_or_default();
        MANIFESTS.into_iter().find(|known| name == *known).map(Self::of)
    }

    fn of(manifest: &str) -> Self {
        if manifest == "HOOK.yaml" { Self::Gateway } else { Self::Plugin }
    }
}

/// A plugin on disk.
#[derive(Debug)]
pub(super) struct InstalledPlugin {
    pub(super) folder: PathBuf,
    /// Hermes' name for it: its manifest's name, or `category/directory`.
    pub(super) key: String,
    pub(super) form: PluginForm,
    /// The name of its manifest file.
    pub(super) file: &'static str,
    pub(super) manifest: Arc<Manifest>,
}

impl InstalledPlugin {
    fn is_provider(&self) -> bool {
        self.form == PluginForm::Plugin && self.manifest.is_provider()
    }

    fn is_named_in(&self, list: &[String]) -> bool {
        let name = self.manifest.name();
        list.iter().any(|entry| *entry == self.key || Some(entry.as_str()) == name)
    }
}

/// The plugins at a path, in the order of their names.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) loaded: Vec<InstalledPlugin>,
    /// Installed, but not enabled, disabled, or a provider.
    pub(super) others: Vec<InstalledPlugin>,
}

/// The plugins at `path`, and which of them are loaded.
pub(super) fn discover(path: &Path, lists: &PluginLists, cache: &ManifestCache) -> Discovered {
    let (all, is_single) = installed(path, cache);
    // A plugin whose own directory is configured, and every gateway hook, need not be enabled.
    let is_enabled = |plugin: &InstalledPlugin| {
        is_single || plugin.form == PluginForm::Gateway || plugin.is_named_in(&lists.enabled)
    };
    let is_loaded = |plugin: &InstalledPlugin| {
        is_enabled(plugin) && !plugin.is_named_in(&lists.disabled) && !plugin.is_provider()
    };
    let (mut loaded, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_loaded);
    // Last, because it reads the disk for each.
    loaded.retain(|plugin| !is_bridge(&plugin.folder));
    Discovered { loaded, others }
}

/// The directories of the plugins at `path` that are loaded.
pub(crate) fn loaded_dirs(path: &Path, lists: &PluginLists, cache: &ManifestCache) -> Vec<PathBuf> {
    discover(path, lists, cache).loaded.into_iter().map(|plugin| plugin.folder).collect()
}

/// A plugin that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedPlugin {
    /// Its directory.
    pub folder: PathBuf,
    /// Hermes' name for it: its manifest's name, or `category/directory`.
    pub key: String,
    /// The name in its manifest, if there is one.
    pub name: Option<String>,
    /// Whether it is a gateway hook.
    pub is_gateway_hook: bool,
}

impl From<InstalledPlugin> for LoadedPlugin {
    fn from(plugin: InstalledPlugin) -> Self {
        Self {
            name: plugin.manifest.name().map(str::to_owned),
            is_gateway_hook: plugin.form == PluginForm::Gateway,
            folder: plugin.folder,
            key: plugin.key,
        }
    }
}

/// The names of the plugins at a path, by why they are not loaded.
#[derive(Debug, Default)]
pub(super) struct InstalledNames {
    /// Named under `plugins: disabled:`.
    pub(super) disabled: Vec<String>,
    /// Providers, which Hermes loads for something else than hooks.
    pub(super) providers: Vec<String>,
    /// The rest.
    pub(super) others: Vec<String>,
}

/// The names of the plugins at `path`.
pub(super) fn installed_names(path: &Path, lists: &PluginLists) -> InstalledNames {
    let mut names = InstalledNames::default();
    let all = installed(path, &ManifestCache::default()).0.into_iter();
    for plugin in all.filter(|plugin| !is_bridge(&plugin.folder)) {
        let list = if plugin.is_named_in(&lists.disabled) {
            &mut names.disabled
        } else if plugin.is_provider() {
            &mut names.providers
        } else {
            &mut names.others
        };
        list.push(plugin.key);
    }
    names
}

/// The names under `enabled:` that no plugin at any of `paths` has.
pub(super) fn missing(paths: &[PathBuf], lists: &PluginLists) -> Vec<String> {
    let cache = ManifestCache::default();
    let found = paths.iter().flat_map(|path| {
        let Discovered { loaded, others } = discover(path, lists, &cache);
        loaded.into_iter().chain(others.into_iter().filter(InstalledPlugin::is_provider))
    });
    let found: Vec<InstalledPlugin> = found.collect();
    let is_found = |name: &String| {
        let list = std::slice::from_ref(name);
        lists.disabled.contains(name) || found.iter().any(|plugin| plugin.is_named_in(list))
    };
    lists.enabled.iter().filter(|name| !is_found(name)).cloned().collect()
}

/// Whether a directory is our own bridge to Hermes, which would send every event back to the bus.
pub fn is_bridge(folder: &Path) -> bool {
    folder.join("bridge.json").is_file() && folder.join("client.py").is_file()
}

/// All plugins at `path`, and whether `path` is itself one.
fn installed(path: &Path, cache: &ManifestCache) -> (Vec<InstalledPlugin>, bool) {
    if let Some(single) = read(path, None, cache).filter(|plugin| !is_bridge(&plugin.folder)) {
        return (vec![single], true);
    }
    let mut all = Vec::new();
    for folder in visible_folders(path) {
        match read(&folder, None, cache) {
            Some(plugin) => all.push(plugin),
            None => {
                let category = folder_name(&folder);
                let inner = visible_folders(&folder).into_iter();
                all.extend(inner.filter_map(|inner| read(&inner, Some(&category), cache)));
            }
        }
    }
    (last_of_each_name(all), false)
}

/// Of several plugins with one name the last counts, in the position of the first, as in Hermes. All
/// gateway hooks count.
fn last_of_each_name(all: Vec<InstalledPlugin>) -> Vec<InstalledPlugin> {
    let mut unique: Vec<InstalledPlugin> = Vec::with_capacity(all.len());
    let mut positions: HashMap<String, usize> = HashMap::new();
    for plugin in all {
        match (plugin.form, positions.get(&plugin.key)) {
            (PluginForm::Plugin, Some(position)) => unique[*position] = plugin,
            (PluginForm::Plugin, None) => {
                positions.insert(plugin.key.clone(), unique.len());
                unique.push(plugin);
            }
            (PluginForm::Gateway, _) => unique.push(plugin),
        }
    }
    unique
}

fn read(folder: &Path, category: Option<&str>, cache: &ManifestCache) -> Option<InstalledPlugin> {
    let manifest = |file: &'static str| Some((file, cache.read(folder, file)?));
    let (file, manifest) = MANIFESTS.into_iter().find_map(manifest)?;
    let key = match (category, manifest.name()) {
        (Some(category), _) => format!("{category}/{}", folder_name(folder)),
        (None, Some(name)) => name.to_owned(),
        (None, None) => folder_name(folder),
    };
    let (folder, form) = (folder.to_owned(), PluginForm::of(file));
    Some(InstalledPlugin { folder, key, form, file, manifest })
}

/// The directories in `path` that do not begin with `.` or `_`, sorted.
fn visible_folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| !is_hidden(&entry.file_name()) && is_folder(entry));
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn is_hidden(name: &OsStr) -> bool {
    matches!(name.as_bytes().first(), Some(b'.' | b'_'))
}

fn is_folder(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
        Ok(kind) => kind.is_dir(),
        Err(_) => false,
    }
}
