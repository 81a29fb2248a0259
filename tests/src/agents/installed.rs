//! Where the real agents are. `tests/fetch-agents` puts them into the target directory; the variable
//! `HOOKBUS_TEST_AGENTS` names another place. A missing agent fails the test: a skipped test would say
//! nothing while looking like a pass.

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
    let mut places = python.map(|python| python.join("site-packages/plugins"));
    places.find(|place| place.is_dir()).expect("Hermes ships with plugins")
}

/// The script that `node` runs as Gemini CLI.
pub fn gemini_script() -> PathBuf {
    installed("gemini", "node_modules/@google/gemini-cli/bundle/gemini.js")
}

fn installed(agent: &str, program: &str) -> PathBuf {
    let home = match named_place() {
        Some(place) => place.join(agent),
        None => finished(fetched_place().join(agent)),
    };
    let program = home.join(program);
    assert!(program.exists(), "{} is not there; run tests/fetch-agents", program.display());
    program
}

/// The marker is written last, so a half-installed agent does not have it.
fn finished(home: PathBuf) -> PathBuf {
    let marker = home.join(".installed");
    assert!(marker.exists(), "{} is not there; run tests/fetch-agents", marker.display());
    home
}

fn named_place() -> Option<PathBuf> {
    variable("HOOKBUS_TEST_AGENTS").map(PathBuf::from)
}

fn fetched_place() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = variable("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
    workspace.join(target).join("agents") // an absolute target replaces the workspace
}

/// A variable of the test's own environment; set but empty counts as unset.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
