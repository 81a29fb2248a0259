//! The bridge: which files it has in the home of Hermes, and its settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
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

/// The name of the settings file, beside the code.
pub(super) const SETTINGS: &str = "bridge.json";

/// Settings from the command line; none: as at the last `connect`.
#[derive(Debug, Default, Clone)]
pub(super) struct BridgeOptions {
    pub(super) deadline: Option<f64>,
    pub(super) gateway_deadline: Option<f64>,
    pub(super) without_daemon: Option<String>,
    pub(super) on_failure: Option<String>,
}

/// Its two directories in the home of Hermes.
pub(super) fn folders(hermes: &Path) -> [PathBuf; 2] {
    ["plugins", "hooks"].map(|folder| hermes.join(folder).join(NAME))
}

/// Its code: each file with its text.
pub(super) fn code(hermes: &Path) -> Vec<(PathBuf, &'static str)> {
    let [plugin, gateway] = folders(hermes);
    let files = [(plugin, PLUGIN), (gateway, GATEWAY)].into_iter();
    files.flat_map(|(folder, files)| files.map(|(name, text)| (folder.join(name), text))).collect()
}

/// The settings in a file; `Null` if it cannot be read.
pub(super) fn read_settings(file: &Path) -> Value {
    let text = files::read(file).ok().flatten();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The text of the settings file. What `options` leaves open stays as it is in `file`.
pub(super) fn settings(
    file: &Path,
    options: &BridgeOptions,
    program: &Path,
    hookbus: &Path,
) -> Result<String> {
    let known = read_settings(file);
    let number = |option: Option<f64>, key: &str, default: f64| {
        json!(option.or_else(|| known.get(key)?.as_f64()).unwrap_or(default))
    };
    let word = |option: &Option<String>, key: &str, default: &str| {
        let known = || known.get(key)?.as_str().map(str::to_owned);
        option.clone().or_else(known).unwrap_or_else(|| default.to_owned())
    };
    let settings = json!({
        "hookbus": program.to_string_lossy(),
        "version": env!("CARGO_PKG_VERSION"),
        "home": hookbus.to_string_lossy(),
        "deadline": number(options.deadline, "deadline", 55.0),
        "gateway_deadline": number(options.gateway_deadline, "gateway_deadline", 2.0),
        "without_daemon": word(&options.without_daemon, "without_daemon", "hook"),
        "on_failure": word(&options.on_failure, "on_failure", "allow"),
    });
    if needs_a_daemon(&settings) && settings["on_failure"] == "block" {
        bail!(
            "`--on-failure block` and `--without-daemon allow` contradict each other: the second lets every event pass \
             while no daemon runs; pass `--without-daemon hook` as well"
        );
    }
    Ok(serde_json::to_string_pretty(&settings)? + "\n")
}

/// How long the bridge in this Hermes waits at an event that all chats of a gateway wait for.
pub(super) fn gateway_deadline(hermes: &Path) -> Option<Duration> {
    let [_, gateway] = folders(hermes);
    let seconds = read_settings(&gateway.join(SETTINGS)).get("gateway_deadline")?.as_f64()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Whether a bridge with these settings allows every event while no daemon runs.
pub(super) fn needs_a_daemon(settings: &Value) -> bool {
    settings["without_daemon"] == "allow"
}

/// The home of Hermes, if `file` is the manifest of the plugin.
pub(super) fn home_of(file: &Path) -> Option<PathBuf> {
    let manifest = Path::new("plugins").join(NAME).join(PLUGIN[0].0);
    let home = file.ancestors().nth(manifest.iter().count());
    home.filter(|_| file.ends_with(&manifest)).map(Path::to_owned)
}
