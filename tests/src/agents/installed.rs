//! Where the real agents are installed: in the target directory, by `tests/fetch-agents`, or in the directory
//! that the variable `HOOKBUS_TEST_AGENTS` names. A missing agent fails the test, because a skipped test would
//! look like a pass.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The `hermes` program.
pub fn hermes_program() -> PathBuf {
    installed("hermes", "venv/bin/hermes")
}

/// The Python that Hermes runs with.
pub fn hermes_python() -> PathBuf {
    installed("hermes", "venv/bin/python")
}

/// Packages that optional parts of Hermes need, for `PYTHONPATH`.
pub fn hermes_extras() -> PathBuf {
    installed("extras", "python")
}

/// The plugins that ship with Hermes.
pub fn hermes_plugins() -> PathBuf {
    let libraries = installed("hermes", "venv/lib");
    let python = std::fs::read_dir(libraries)
        .expect("a readable folder")
        .flatten()
        .map(|entry| entry.path());
    let mut folders = python.map(|python| python.join("site-packages/plugins"));
    folders.find(|folder| folder.is_dir()).expect("Hermes ships with plugins")
}

/// The script that `node` runs as Gemini CLI.
pub fn gemini_script() -> PathBuf {
    installed("gemini", "node_modules/@google/gemini-cli/bundle/gemini.js")
}

fn installed(agent: &str, program: &str) -> PathBuf {
    let home = match named_folder() {
        Some(folder) => folder.join(agent),
        None => complete(fetched_folder().join(agent)),
    };
    let program = home.join(program);
    assert!(program.exists(), "{} is missing; run tests/fetch-agents", program.display());
    program
}

/// `fetch-agents` writes the marker last, so an incomplete installation does not have it.
fn complete(home: PathBuf) -> PathBuf {
    let marker = home.join(".installed");
    assert!(marker.exists(), "{} is missing; run tests/fetch-agents", marker.display());
    home
}

fn named_folder() -> Option<PathBuf> {
    variable("HOOKBUS_TEST_AGENTS").map(PathBuf::from)
}

fn fetched_folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = variable("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
    workspace.join(target).join("agents") // an absolute target replaces the workspace
}

/// An environment variable of the test; an empty one counts as unset.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
