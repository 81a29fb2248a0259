//! Writes Hermes plugin and gateway hook directories for a test, and makes events for them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::home::Home;

/// Writes a plugin beside the home; returns its directory.
pub fn plugin(home: &Home, path: &str, code: &str) -> PathBuf {
    let folder = home.work().join("plugins").join(path);
    let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
    write(&folder, "plugin.yaml", &format!("name: {name}\nversion: 1.0\n"));
    write(&folder, "__init__.py", code);
    folder
}

/// Writes a gateway hook; returns its directory.
pub fn gateway_hook(home: &Home, name: &str, events: &str, code: &str) -> PathBuf {
    let folder = home.work().join("hooks").join(name);
    write(&folder, "HOOK.yaml", &format!("name: {name}\nevents: {events}\n"));
    write(&folder, "handler.py", code);
    folder
}

/// Writes a file, and the directory it is in.
pub fn write(folder: &Path, name: &str, content: &str) {
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join(name), content).expect("a file");
}

/// An event of Hermes, as its bridge sends it.
pub fn call(name: &str, extra: &Value) -> Value {
    json!({"hook_event_name": name, "tool_name": null, "tool_input": null, "session_id": "s", "cwd": "/", "extra": extra})
}

/// A tool event of Hermes.
pub fn tool(name: &str, tool: &str, input: &Value, extra: &Value) -> Value {
    json!({"hook_event_name": name, "tool_name": tool, "tool_input": input, "session_id": "s", "cwd": "/", "extra": extra})
}
