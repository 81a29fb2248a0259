//! Plugins that Hermes loads and that the bus runs for it too: whatever they do is done twice. Which of the two is
//! meant only a person knows, so it is said and not mended.

use std::fs;
use std::path::{Path, PathBuf};

use hookbus::decide::{Hook, HookSummary, Hooks};
use hookbus::event::{Agent, Kind, is_event_of, kind_of};
use serde_json::Value;

use super::{bridge, files, hooks_move, yaml_edit};

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Twice {
    /// What it is called.
    pub(crate) plugin: String,
    /// What is wrong with that, ending with the way out.
    pub(crate) why: String,
}

/// Those of `hooks`, which stand in `file`, that the Hermes in `hermes` loads as well.
pub(crate) fn run_twice(hermes: &Path, hooks: &Hooks, file: &Path) -> Vec<Twice> {
    let config = files::read(&hermes.join("config.yaml")).ok().flatten().unwrap_or_default();
    let theirs = Lists::of(&yaml_edit::read(&config).unwrap_or_default());
    let written = yaml_edit::read(&hooks.content).unwrap_or_default();
    let ours = Lists::of(&written);
    let gateway = files::real(&hermes.join("hooks"));
    let mut all: Vec<Twice> = Vec::new();
    for hook in hooks.hooks.iter().filter(|hook| hook.is_plugin()).map(Hook::summary) {
        let Some(place) = hook.command.as_deref().map(|place| folder(place, file)) else {
            continue;
        };
        if !is_for_hermes(&hook, &written) {
            continue;
        }
        let loaded = found_at(&place).into_iter().filter(|it| it.is_loaded(&ours));
        for plugin in loaded {
            let why = match plugin.form {
                Form::Plugin if theirs.load(&plugin) => format!(
                    "Hermes loads it too (`plugins: enabled:` in {}), so what it does is done twice; take it out there, or out of {}",
                    hermes.join("config.yaml").display(),
                    file.display()
                ),
                Form::Gateway if files::real(&plugin.folder).parent() == Some(&gateway) => format!(
                    "a gateway of Hermes runs it too, so what it does is done twice; move it out of {}, or take it out of {}",
                    gateway.display(),
                    file.display()
                ),
                Form::Plugin | Form::Gateway => continue,
            };
            let one = Twice { plugin: plugin.key, why };
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

/// Where the bus looks for what an entry names.
fn folder(written: &str, file: &Path) -> PathBuf {
    let base = file.parent().unwrap_or(Path::new("/"));
    match (written.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => base.join(written),
    }
}

/// Whether any event of Hermes can be meant.
fn is_for_hermes(hook: &HookSummary, written: &Value) -> bool {
    let is_it = |(event, _, entry): &(String, usize, Value)| {
        *event == hook.event && entry["python"].as_str() == hook.command.as_deref()
    };
    let entries: Vec<_> =
        hooks_move::entries(written).into_iter().filter(|entry| is_it(entry)).collect();
    let is_theirs = |entry: &Value| entry["agent"].as_str().is_none_or(|agent| agent == "hermes");
    let key = hook.event.as_str();
    let has_it = key.contains('*')
        || Kind::parse(key).is_some()
        || is_event_of(Agent::Hermes, key)
        || kind_of(Agent::Hermes, key) != Kind::Other;
    has_it && (entries.is_empty() || entries.iter().any(|(_, _, entry)| is_theirs(entry)))
}

/// `plugins:` of a configuration, Hermes' or ours.
struct Lists {
    enabled: Vec<String>,
    disabled: Vec<String>,
}

impl Lists {
    fn of(file: &Value) -> Self {
        let list = |key: &str| {
            let names = file.get("plugins").and_then(|plugins| plugins.get(key)?.as_array());
            let names = names.into_iter().flatten().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        };
        Self { enabled: list("enabled"), disabled: list("disabled") }
    }

    fn load(&self, plugin: &Plugin) -> bool {
        plugin.is_among(&self.enabled) && !plugin.is_among(&self.disabled)
    }
}

enum Form {
    Plugin,
    Gateway,
}

struct Plugin {
    folder: PathBuf,
    /// What Hermes calls it: its manifest's name, or `category/directory`.
    key: String,
    name: String,
    form: Form,
    /// An entry names it and not a directory that it is in.
    alone: bool,
}

impl Plugin {
    fn is_among(&self, names: &[String]) -> bool {
        names.iter().any(|name| *name == self.key || *name == self.name)
    }

    /// Whether the bus loads it.
    fn is_loaded(&self, ours: &Lists) -> bool {
        let opted_in = match self.form {
            Form::Plugin => self.alone || self.is_among(&ours.enabled),
            Form::Gateway => true,
        };
        opted_in && !self.is_among(&ours.disabled)
    }

    fn read(folder: &Path, category: Option<&str>) -> Option<Self> {
        if folder.join(bridge::SETTINGS).is_file() {
            return None;
        }
        let manifests = ["plugin.yaml", "plugin.yml", "HOOK.yaml"];
        let manifest = manifests.into_iter().find(|name| folder.join(name).is_file())?;
        let text = files::read(&folder.join(manifest)).ok().flatten().unwrap_or_default();
        let directory = folder.file_name()?.to_string_lossy().into_owned();
        let said = yaml_edit::read(&text).unwrap_or_default();
        let name = said["name"].as_str().unwrap_or(&directory).to_owned();
        let key = category.map_or_else(|| name.clone(), |it| format!("{it}/{directory}"));
        let form = if manifest == "HOOK.yaml" { Form::Gateway } else { Form::Plugin };
        Some(Self { folder: folder.to_owned(), key, name, form, alone: false })
    }
}

/// What lies at a place: a plugin, or a directory of such, also in categories.
fn found_at(place: &Path) -> Vec<Plugin> {
    if let Some(plugin) = Plugin::read(place, None) {
        return vec![Plugin { alone: true, ..plugin }];
    }
    let in_one = |folder: PathBuf| {
        let Some(plugin) = Plugin::read(&folder, None) else {
            let category = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let inner = folders(&folder).into_iter();
            return inner.filter_map(|it| Plugin::read(&it, Some(&category))).collect();
        };
        vec![plugin]
    };
    folders(place).into_iter().flat_map(in_one).collect()
}

fn folders(place: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = found.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
