//! Which agents are installed on this machine, and how each is connected.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::connect::ConnectedAgent;
use crate::output::{pad, sanitize};
use crate::settings::Settings;

/// An agent that hookbus knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundAgent {
    /// Its name, which is also its program.
    pub(crate) name: &'static str,
    /// How `hookbus connect` calls it; none if it is connected by hand.
    pub(crate) connected_as: Option<ConnectedAgent>,
    /// Its program on the `PATH`.
    program: Option<PathBuf>,
    /// Its directory with settings.
    settings: Option<PathBuf>,
}

/// The agents of which there is a program or a directory with settings.
pub(crate) fn installed(settings: &Settings) -> Vec<FoundAgent> {
    let home = std::env::home_dir();
    let in_home = |folder: &str| home.as_ref().map(|home| home.join(folder));
    let gemini = settings.gemini.as_ref().map(|home| home.join(".gemini"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let agents = [
        ("hermes", Some(ConnectedAgent::Hermes), settings.hermes.clone()),
        ("gemini", Some(ConnectedAgent::Gemini), gemini),
        ("claude", None, in_home(".claude")),
        ("codex", None, in_home(".codex")),
    ];
    let found = agents.into_iter().map(|(name, connected_as, folder)| FoundAgent {
        name,
        connected_as,
        program: find_program(name, &path),
        settings: folder.filter(|folder| folder.is_dir()),
    });
    found.filter(|agent| agent.program.is_some() || agent.settings.is_some()).collect()
}

fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    let can_run = |file: &Path| {
        let metadata = file.metadata();
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|file| can_run(file))
}

impl FoundAgent {
    /// What connects it.
    pub(crate) fn how_to_connect(&self) -> String {
        match self.connected_as {
            Some(_) => format!("hookbus connect {}", self.name),
            None => format!("by hand, recorded only: cli/docs/{}.md", self.name),
        }
    }

    /// One line: where it was found, and how it is connected.
    pub(crate) fn describe(&self) -> String {
        let place = self.program.as_ref().or(self.settings.as_ref());
        let place = place.map(|place| sanitize(&place.display().to_string())).unwrap_or_default();
        format!("{} {place}  ({})", pad(self.name, 7), self.how_to_connect())
    }

    pub(crate) fn to_json(&self) -> Value {
        let text =
            |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        json!({
            "agent": self.name,
            "program": text(&self.program),
            "settings": text(&self.settings),
            "connect": self.connected_as.map(|_| self.how_to_connect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_is_found_on_the_path_if_it_can_run() {
        let folder = tempfile::tempdir().expect("a directory");
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        for (folder, mode) in [(&first, 0o644), (&second, 0o755)] {
            fs::create_dir(folder).expect("a directory");
            fs::write(folder.join("gemini"), "").expect("a file");
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(folder.join("gemini"), permissions).expect("a mode");
        }
        let path = std::env::join_paths([&first, &second]).expect("a path");
        assert_eq!(find_program("gemini", &path), Some(second.join("gemini")));
        assert_eq!(find_program("hermes", &path), None);
        assert_eq!(find_program("gemini", OsStr::new("relative")), None);
    }
}
