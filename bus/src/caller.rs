//! What a client sends along with an event: its working directory, environment, process id and wire.
//! Hooks run with these, never with the daemon's.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::event::Wire;

/// The client that sent an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its process id; the agent is one of the processes above it.
    pub pid: Option<u32>,
    /// How the event came from the agent.
    pub wire: Wire,
}

impl Caller {
    /// A variable of the client's environment.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// Sets a variable, in place of any value it had.
    pub fn set_var(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let name = name.into();
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.into()));
    }

    /// `word` with a leading `~` replaced by the client's home directory, as in Hermes; nothing else is
    /// expanded.
    pub fn expand_home(&self, word: impl AsRef<OsStr>) -> OsString {
        let word = word.as_ref();
        match (word.as_bytes().strip_prefix(b"~"), self.var("HOME")) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with(b"/") => {
                let mut expanded = home.to_owned();
                expanded.push(OsStr::from_bytes(rest));
                expanded
            }
            _ => word.to_owned(),
        }
    }

    /// A path in a hooks file: `~` is the client's home directory, a relative path starts at `base`.
    pub fn resolve(&self, path: impl AsRef<OsStr>, base: &Path) -> PathBuf {
        base.join(self.expand_home(path))
    }
}
