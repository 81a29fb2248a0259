//! Which plugins lie at a place, as Hermes finds them: a directory with a manifest, or a directory of such, by name; a
//! category is one level in between. Which of them are loaded is up to the hooks file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifests::{Manifest, Manifests, directory};

/// `plugins:` in the hooks file, in the words of Hermes' own configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::decide) struct Lists {
    /// Those in a directory of plugins that are loaded.
    pub(in crate::decide) enabled: Vec<String>,
    /// Those that never are.
    pub(in crate::decide) disabled: Vec<String>,
}

/// What makes a directory a plugin.
pub(in crate::decide) const MANIFESTS: [&str; 3] = ["plugin.yaml", "plugin.yml", "HOOK.yaml"];

/// Which of the two forms a directory has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decide) enum Form {
    /// `plugin.yaml` and `register(ctx)`.
    Plugin,
    /// `HOOK.yaml` and `handler.py`.
    Gateway,
}

impl Form {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Gateway => "gateway",
        }
    }

    /// Whether a file is the manifest of one.
    pub(in crate::decide) fn is_said_by(self, file: &Path) -> bool {
        let name = file.file_name().unwrap_or_default();
        MANIFESTS.into_iter().any(|known| name == known && Self::of(known) == self)
    }

    fn of(manifest: &str) -> Self {
        if manifest == "HOOK.yaml" { Self::Gateway } else { Self::Plugin }
    }
}

/// A plugin that lies there.
#[derive(Debug)]
pub(super) struct Lying {
    pub(super) folder: PathBuf,
    /// What Hermes calls it: its manifest's name, or `category/directory`.
    pub(super) key: String,
    pub(super) form: Form,
    /// The manifest's own name.
    pub(super) file: &'static str,
    pub(super) manifest: Arc<Manifest>,
}

impl Lying {
    fn is_a_provider(&self) -> bool {
        self.form == Form::Plugin && self.manifest.is_of_a_provider()
    }

    fn is_named_in(&self, list: &[String]) -> bool {
        let name = self.manifest.name();
        list.iter().any(|entry| *entry == self.key || Some(entry.as_str()) == name)
    }
}

/// All plugins of a place, each in the order of their names.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) loaded: Vec<Lying>,
    /// Those that nobody asked for.
    pub(super) resting: Vec<Lying>,
}

/// What is at `place`, and what of it is loaded.
pub(super) fn sort(place: &Path, lists: &Lists, known: &Manifests) -> Sorted {
    let (all, is_alone) = all(place, known);
    let opted_in =
        |it: &Lying| is_alone || it.form == Form::Gateway || it.is_named_in(&lists.enabled);
    let is_meant =
        |it: &Lying| opted_in(it) && !it.is_named_in(&lists.disabled) && !it.is_a_provider();
    let (mut loaded, resting): (Vec<Lying>, Vec<Lying>) = all.into_iter().partition(is_meant);
    // Looked at last, as it costs a look at the disk for each.
    loaded.retain(|it| !is_bridge(&it.folder));
    Sorted { loaded, resting }
}

/// What of a directory is loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::decide) struct Loaded {
    /// The directories of the plugins that are.
    pub(in crate::decide) folders: Vec<PathBuf>,
    /// The plugins that nobody asked for.
    pub(in crate::decide) resting: Vec<Resting>,
}

/// A plugin that lies there and is not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::decide) struct Resting {
    pub(in crate::decide) folder: PathBuf,
    /// The file that says what it is called, and so whether it is loaded.
    pub(in crate::decide) manifest: PathBuf,
}

/// What at `place` is loaded.
pub(in crate::decide) fn loaded(place: &Path, lists: &Lists, known: &Manifests) -> Loaded {
    let Sorted { loaded, resting } = sort(place, lists, known);
    let resting = resting.into_iter().map(|Lying { folder, file, .. }| {
        let manifest = folder.join(file);
        Resting { folder, manifest }
    });
    let folders = loaded.into_iter().map(|it| it.folder).collect();
    Loaded { folders, resting: resting.collect() }
}

/// A plugin that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedPlugin {
    /// Where it lies.
    pub folder: PathBuf,
    /// What Hermes calls it: its manifest's name, or `category/directory`.
    pub key: String,
    /// The name in its manifest, if there is one.
    pub name: Option<String>,
    /// Whether it is a hook of the gateway.
    pub is_of_gateway: bool,
}

/// Each plugin at `place` that is loaded.
pub(in crate::decide) fn roll(place: &Path, lists: &Lists, known: &Manifests) -> Vec<LoadedPlugin> {
    let named = |it: Lying| LoadedPlugin {
        name: it.manifest.name().map(str::to_owned),
        is_of_gateway: it.form == Form::Gateway,
        folder: it.folder,
        key: it.key,
    };
    sort(place, lists, known).loaded.into_iter().map(named).collect()
}

/// What lies at a place, by name.
#[derive(Debug, Default)]
pub(in crate::decide) struct Names {
    /// What is switched off.
    pub(in crate::decide) off: Vec<String>,
    /// What is no plugin with hooks.
    pub(in crate::decide) providers: Vec<String>,
    /// The rest.
    pub(in crate::decide) other: Vec<String>,
}

/// What lies at `place`.
pub(in crate::decide) fn lying(place: &Path, lists: &Lists) -> Names {
    let mut names = Names::default();
    let all = all(place, &Manifests::default()).0.into_iter();
    for it in all.filter(|it| !is_bridge(&it.folder)) {
        let list = if it.is_named_in(&lists.disabled) {
            &mut names.off
        } else if it.is_a_provider() {
            &mut names.providers
        } else {
            &mut names.other
        };
        list.push(it.key);
    }
    names
}

/// Those to be loaded that none of `places` has.
pub(in crate::decide) fn absent(places: &[PathBuf], lists: &Lists) -> Vec<String> {
    let known = Manifests::default();
    let there = places.iter().flat_map(|place| {
        let Sorted { loaded, resting } = sort(place, lists, &known);
        loaded.into_iter().chain(resting.into_iter().filter(Lying::is_a_provider))
    });
    let there: Vec<Lying> = there.collect();
    let is_there = |name: &String| {
        let list = std::slice::from_ref(name);
        lists.disabled.contains(name) || there.iter().any(|it| it.is_named_in(list))
    };
    lists.enabled.iter().filter(|name| !is_there(name)).cloned().collect()
}

/// Whether our own bridge is in there, which would carry every event back to where it came from.
pub fn is_bridge(folder: &Path) -> bool {
    folder.join("bridge.json").is_file() && folder.join("client.py").is_file()
}

/// All that lie at `place`, and whether that is itself one.
fn all(place: &Path, known: &Manifests) -> (Vec<Lying>, bool) {
    if let Some(alone) = read(place, None, known).filter(|it| !is_bridge(&it.folder)) {
        return (vec![alone], true);
    }
    let mut all = Vec::new();
    for folder in folders(place) {
        match read(&folder, None, known) {
            Some(one) => all.push(one),
            None => {
                let category = directory(&folder);
                let inner = folders(&folder).into_iter();
                all.extend(inner.filter_map(|inner| read(&inner, Some(&category), known)));
            }
        }
    }
    (winners(all), false)
}

/// Of several plugins that have one name the last one counts, in the place of the first. Hooks of the gateway are
/// all heard.
fn winners(all: Vec<Lying>) -> Vec<Lying> {
    let mut winners: Vec<Lying> = Vec::with_capacity(all.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for it in all {
        let known = match it.form {
            Form::Plugin => places.insert(it.key.clone(), winners.len()),
            Form::Gateway => None,
        };
        match known {
            Some(place) => {
                places.insert(it.key.clone(), place);
                winners[place] = it;
            }
            None => winners.push(it),
        }
    }
    winners
}

fn read(folder: &Path, category: Option<&str>, known: &Manifests) -> Option<Lying> {
    let manifest = |file: &'static str| Some((file, known.read(folder, file)?));
    let (file, manifest) = MANIFESTS.into_iter().find_map(manifest)?;
    let key = match (category, manifest.name()) {
        (Some(category), _) => format!("{category}/{}", directory(folder)),
        (None, Some(name)) => name.to_owned(),
        (None, None) => directory(folder),
    };
    Some(Lying { folder: folder.to_owned(), key, form: Form::of(file), file, manifest })
}

fn folders(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| !is_hidden(&entry.file_name()) && is_folder(entry));
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// Whether nothing of that name is looked into.
pub(in crate::decide) fn is_hidden(name: &OsStr) -> bool {
    matches!(name.as_bytes().first(), Some(b'.' | b'_'))
}

fn is_folder(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
        Ok(kind) => kind.is_dir(),
        Err(_) => false,
    }
}
