//! The shell hooks under `hooks:` in a YAML file, as Hermes and `hookbus.yaml` both have them.

use serde_json::Value;

use super::yaml::{self, ItemPath, YamlError};

/// A shell hook and the event that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellHook {
    pub(super) event: String,
    pub(super) entry: Value,
}

impl ShellHook {
    pub(super) fn command(&self) -> &str {
        self.entry["command"].as_str().unwrap_or_default()
    }

    /// Whether both run the same command on the same event.
    pub(super) fn runs_the_same(&self, other: &Self) -> bool {
        self.event == other.event && self.entry["command"] == other.entry["command"]
    }
}

/// The hooks in a file, each with its place.
pub(super) fn located(file: &Value) -> Vec<(ItemPath, ShellHook)> {
    let events = file.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let hooks = events.flat_map(|(event, list)| {
        let entries = list.as_array().into_iter().flatten().enumerate();
        entries.map(move |(index, entry)| {
            let path = ItemPath { section: "hooks", list: event.clone(), index };
            (path, ShellHook { event: event.clone(), entry: entry.clone() })
        })
    });
    hooks.collect()
}

/// The hooks in a YAML text; none if it cannot be parsed.
pub(super) fn in_text(text: &str) -> Vec<ShellHook> {
    let file = yaml::read(text).unwrap_or_default();
    located(&file).into_iter().map(|(_, hook)| hook).collect()
}

/// Those of `hooks` that are not in `others`. A hook that is there twice has to be in both twice.
pub(super) fn missing(hooks: &[ShellHook], others: &[ShellHook]) -> Vec<ShellHook> {
    let mut others = others.to_vec();
    let mut missing = Vec::new();
    for hook in hooks {
        match others.iter().position(|other| other == hook) {
            Some(index) => drop(others.swap_remove(index)),
            None => missing.push(hook.clone()),
        }
    }
    missing
}

/// The hooks as the text of a `hooks:` section.
pub(super) fn to_yaml(hooks: &[ShellHook]) -> Result<String, YamlError> {
    let add = |text: String, ShellHook { event, entry }: &ShellHook| {
        yaml::append(&text, "hooks", event, entry)
    };
    hooks.iter().try_fold(String::new(), add)
}
