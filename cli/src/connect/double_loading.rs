//! Plugins that both Hermes and the bus run, so that everything they do happens twice. Only the user knows which of the
//! two is wanted, so this is reported and not fixed.

use std::path::Path;

use hookbus::caller::Caller;
use hookbus::config::HooksFile;
use hookbus::event::Agent;
use hookbus::plugins::{LoadedPlugin, loaded_for};
use serde_json::Value;

use super::{files, yaml};

/// A plugin that both of them run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DoubleLoaded {
    /// Its name.
    pub(crate) plugin: String,
    /// Why that is wrong, and what to do.
    pub(crate) why: String,
}

/// The plugins of `hooks`, which are configured in `file`, that the Hermes in `hermes` loads as well.
pub(crate) fn double_loaded(
    hermes: &Path,
    hooks: &HooksFile,
    file: &Path,
    caller: &Caller,
) -> Vec<DoubleLoaded> {
    let config_file = hermes.join("config.yaml");
    let config = files::read(&config_file).ok().flatten().unwrap_or_default();
    let config = yaml::read(&config).unwrap_or_default();
    let gateway = files::canonical(&hermes.join("hooks"));
    let double = loaded_for(hooks, Agent::Hermes, caller).into_iter().filter_map(|plugin| {
        let why = if plugin.is_gateway_hook {
            let is_loaded = files::canonical(&plugin.folder).parent() == Some(&gateway);
            is_loaded.then(|| format!(
                "a gateway of Hermes runs it too, so everything it does happens twice; move it out of {}, or remove it from {}",
                gateway.display(),
                file.display()
            ))
        } else {
            is_loaded_by(&config, &plugin).then(|| format!(
                "Hermes loads it too (`plugins: enabled:` in {}), so everything it does happens twice; remove it there, or from {}",
                config_file.display(),
                file.display()
            ))
        };
        Some(DoubleLoaded { plugin: plugin.key, why: why? })
    });
    double.collect()
}

/// Whether a Hermes with this configuration loads a plugin of that name.
fn is_loaded_by(config: &Value, plugin: &LoadedPlugin) -> bool {
    let is_listed = |list: &str| {
        let names = config.get("plugins").and_then(|plugins| plugins.get(list)?.as_array());
        let mut names = names.into_iter().flatten().filter_map(Value::as_str);
        names.any(|name| name == plugin.key || Some(name) == plugin.name.as_deref())
    };
    is_listed("enabled") && !is_listed("disabled")
}
