//! Plugins that Hermes loads and that the bus runs for it too: whatever they do is done twice. Which of the two is
//! meant only a person knows, so it is said and not mended.

use std::path::Path;

use hookbus::decide::{Hooks, LoadedPlugin, Surroundings};
use hookbus::event::Agent;
use serde_json::Value;

use super::{files, yaml_edit};

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Twice {
    /// What it is called.
    pub(crate) plugin: String,
    /// What is wrong with that, ending with the way out.
    pub(crate) why: String,
}

/// Those of `hooks`, which stand in `file`, that the Hermes in `hermes` loads as well.
pub(crate) fn run_twice(
    hermes: &Path,
    hooks: &Hooks,
    file: &Path,
    place: &Surroundings,
) -> Vec<Twice> {
    let config_file = hermes.join("config.yaml");
    let config = files::read(&config_file).ok().flatten().unwrap_or_default();
    let config = yaml_edit::read(&config).unwrap_or_default();
    let gateway = files::real(&hermes.join("hooks"));
    let twice = hooks.plugins_for(Agent::Hermes, place).into_iter().filter_map(|plugin| {
        let why = if plugin.is_of_gateway {
            (files::real(&plugin.folder).parent() == Some(&gateway)).then(|| format!(
                "a gateway of Hermes runs it too, so what it does is done twice; move it out of {}, or take it out of {}",
                gateway.display(),
                file.display()
            ))
        } else {
            is_loaded_by(&config, &plugin).then(|| format!(
                "Hermes loads it too (`plugins: enabled:` in {}), so what it does is done twice; take it out there, or out of {}",
                config_file.display(),
                file.display()
            ))
        };
        Some(Twice { plugin: plugin.key, why: why? })
    });
    twice.collect()
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
