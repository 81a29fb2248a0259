//! The bridge itself: which files it has in the home of Hermes, and what its settings say.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::files;

/// The name of the plugin and of the gateway hook.
pub(super) const NAME: &str = "hookbus";

const PLUGIN: [(&str, &str); 3] = [
    ("plugin.yaml", include_str!("../../bridge/hermes/plugin.yaml")),
    ("__init__.py", include_str!("../../bridge/hermes/__init__.py")),
    ("client.py", include_str!("../../bridge/hermes/client.py")),
];

const GATEWAY: [(&str, &str); 3] = [
    ("HOOK.yaml", include_str!("../../bridge/hermes/HOOK.yaml")),
    ("handler.py", include_str!("../../bridge/hermes/handler.py")),
    ("client.py", include_str!("../../bridge/hermes/client.py")),
];

/// Where its settings are, beside its code.
pub(super) const SETTINGS: &str = "bridge.json";

/// What a person says about it; none: as it was.
#[derive(Debug, Default, Clone)]
pub(super) struct Said {
    pub(super) deadline: Option<f64>,
    pub(super) gateway_deadline: Option<f64>,
    pub(super) without_daemon: Option<String>,
}

/// Its two directories in the home of Hermes.
pub(super) fn folders(hermes: &Path) -> [PathBuf; 2] {
    ["plugins", "hooks"].map(|folder| hermes.join(folder).join(NAME))
}

/// The code in them: each file, and what is in it.
pub(super) fn code(hermes: &Path) -> Vec<(PathBuf, &'static str)> {
    let [plugin, gateway] = folders(hermes);
    let files = [(plugin, PLUGIN), (gateway, GATEWAY)].into_iter();
    files.flat_map(|(folder, files)| files.map(|(name, text)| (folder.join(name), text))).collect()
}

/// What is in a file of settings; nothing where it cannot be read.
pub(super) fn settings_in(file: &Path) -> Value {
    let text = files::read(file).ok().flatten();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The settings to be written to `file`, with what is said there where nothing new is.
pub(super) fn settings(file: &Path, said: &Said, program: &Path, hookbus: &Path) -> Result<String> {
    let known = settings_in(file);
    let number = |said: Option<f64>, key: &str, usual: f64| {
        json!(said.or_else(|| known.get(key)?.as_f64()).unwrap_or(usual))
    };
    let without = said.without_daemon.clone();
    let without = without.or_else(|| known.get("without_daemon")?.as_str().map(str::to_owned));
    let settings = json!({
        "hookbus": program.to_string_lossy(),
        "version": env!("CARGO_PKG_VERSION"),
        "home": hookbus.to_string_lossy(),
        "deadline": number(said.deadline, "deadline", 55.0),
        "gateway_deadline": number(said.gateway_deadline, "gateway_deadline", 2.0),
        "without_daemon": without.unwrap_or_else(|| "hook".to_owned()),
    });
    Ok(serde_json::to_string_pretty(&settings)? + "\n")
}

/// Whether a bridge with these settings lets everything pass when no daemon is up.
pub(super) fn needs_a_daemon(settings: &Value) -> bool {
    settings["without_daemon"] == "allow"
}

/// The home of Hermes that a file of the plugin is in, if it is one.
pub(super) fn home_of(file: &Path) -> Option<PathBuf> {
    let plugin = Path::new("plugins").join(NAME).join(PLUGIN[0].0);
    let home = file.ancestors().nth(plugin.iter().count());
    home.filter(|_| file.ends_with(&plugin)).map(Path::to_owned)
}
