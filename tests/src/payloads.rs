//! Recorded payloads of the real agents, in `payloads/<agent>/<event>.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Every recorded payload: agent, file name, bytes.
pub fn all() -> Vec<(String, String, Vec<u8>)> {
    let mut found = Vec::new();
    for agent in ["hermes", "gemini", "claude", "codex"] {
        let mut files: Vec<PathBuf> = fs::read_dir(folder().join(agent))
            .expect("the payloads")
            .map(|entry| entry.expect("a readable folder").path())
            .collect();
        files.sort();
        for file in files {
            let name = file.file_name().expect("a file").to_string_lossy().into_owned();
            found.push((agent.to_owned(), name, fs::read(&file).expect("a readable file")));
        }
    }
    found
}

/// One recorded payload, as JSON that a test can change.
pub fn one(agent: &str, name: &str) -> Value {
    let bytes = fs::read(folder().join(agent).join(format!("{name}.json"))).expect("a payload");
    serde_json::from_slice(&bytes).expect("payloads are JSON")
}

/// A tool call of Hermes' shell.
pub fn hermes_shell(command: &str) -> Value {
    let mut payload = one("hermes", "pre_tool_call");
    payload["tool_input"] = json!({"command": command});
    payload
}

/// A tool call of Gemini's shell.
pub fn gemini_shell(command: &str) -> Value {
    let mut payload = one("gemini", "BeforeTool.shell");
    payload["tool_input"] = json!({"command": command, "description": "a test"});
    payload
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("payloads")
}
