//! A parsed hooks file: pure data, without processes, approvals or file handles. `parse.rs` reads it from text;
//! `active/` puts it in force.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

use super::approval::Trust;
use super::daemon::DaemonSettings;
use super::event_key::EventKey;
use super::hook::Hook;
use super::last_good;
use super::nats::NatsSettings;
use super::parse;
use super::plugin_lists::PluginLists;
use super::problem::{Problem, Reach};
use super::recording::Recording;
use super::redaction::Redaction;
use super::retention::Retention;
use crate::event::OnFailure;
use crate::files::sha256;
use crate::log::Durability;

/// How often in a row an agent may be told to continue, if the file sets no limit.
const MAX_CONTINUATIONS: u32 = 8;

/// The text that was read last, and what it means.
static LAST: Mutex<Option<(String, HooksFile)>> = Mutex::new(None);

/// A hooks file: the user's own or a project's.
#[derive(Debug, Clone)]
pub struct HooksFile {
    /// Its path, if it is a project's and not the user's own.
    pub project: Option<PathBuf>,
    /// The directory that relative commands under a kind start from.
    pub base: PathBuf,
    /// SHA-256 of the content, in hex.
    pub hash: String,
    /// The text without its `nats:` part: the log records the hooks, and must not hold credentials.
    pub content: String,
    /// The settings beside the hooks as the log records them: without secrets.
    pub settings: Map<String, Value>,
    /// The readable name of the bus; none for `user@host`.
    pub name: Option<String>,
    /// The hooks, in the order of the file.
    pub hooks: Vec<Hook>,
    /// The packs that it uses: names and texts.
    pub packs: Vec<(String, String)>,
    /// What is wrong with the file, by line.
    pub problems: Vec<Problem>,
    /// Where to publish.
    pub nats: Option<NatsSettings>,
    /// Whether clients start a daemon, and how it behaves.
    pub daemon: DaemonSettings,
    /// What happens when the bus itself cannot do its work.
    pub on_failure: OnFailure,
    /// What an acknowledged append survives.
    pub durability: Durability,
    /// How often in a row an agent may be told to continue.
    pub max_continuations: u32,
    /// Which entries run without an approval.
    pub trust: Trust,
    /// Whether `hooks approve` approves without asking.
    pub auto_accept: bool,
    /// Whether decision hooks whose entry names no mode are in shadow mode.
    pub shadow: bool,
    /// Which plugins of a directory are loaded.
    pub plugins: PluginLists,
    /// Which secrets are replaced before an event is recorded.
    pub redaction: Redaction,
    /// What is removed from the log by age and size.
    pub retention: Retention,
    /// What is recorded of which events.
    pub recording: Recording,
}

/// Whether the user approved an entry of a project, given its key and its text.
pub type IsApproved<'a> = &'a dyn Fn(&EventKey, &str) -> bool;

impl HooksFile {
    /// The user's own file in `base`, without any hooks.
    pub fn empty(base: &Path) -> Self {
        Self {
            project: None,
            base: base.to_owned(),
            hash: sha256(b""),
            content: String::new(),
            settings: Map::new(),
            name: None,
            hooks: Vec::new(),
            packs: Vec::new(),
            problems: Vec::new(),
            nats: None,
            daemon: DaemonSettings::default(),
            on_failure: OnFailure::Allow,
            durability: Durability::default(),
            max_continuations: MAX_CONTINUATIONS,
            trust: Trust::Nobody,
            auto_accept: false,
            shadow: false,
            plugins: PluginLists::default(),
            redaction: Redaction::default(),
            retention: Retention::default(),
            recording: Recording::default(),
        }
    }

    /// The project's `file`, without any hooks.
    pub(crate) fn empty_project(file: &Path) -> Self {
        let base = file.parent().unwrap_or(Path::new("/"));
        Self { project: Some(file.to_owned()), ..Self::empty(base) }
    }

    /// Reads the text of the user's own file in `base`. Fails only if nothing in it can be used. The last result is
    /// remembered: a client without a daemon reads the same text twice, and packs make that slow.
    pub fn parse(text: &str, base: &Path) -> Result<Self, Problem> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, file)) = &*last
            && known == text
            && file.base == base
        {
            return Ok(file.clone());
        }
        let file = parse::parse(text, Self::empty(base), &|_, _| true)?;
        *last = Some((text.to_owned(), file.clone()));
        Ok(file)
    }

    /// Reads the text of a project's `file`. Of an entry that is not approved only the key and the
    /// filters are read.
    pub fn parse_project(
        text: &str,
        file: &Path,
        is_approved: IsApproved<'_>,
    ) -> Result<Self, Problem> {
        parse::parse(text, Self::empty_project(file), is_approved)
    }

    /// This file, which was read from `text`, with everything that is broken in it as it was in `earlier`, the
    /// version that was in force before it.
    #[must_use]
    pub fn with_last_good(self, text: &str, earlier: &Self, is_approved: IsApproved<'_>) -> Self {
        last_good::with_last_good(text, self, earlier, is_approved)
    }

    /// Whether anything in it is broken.
    pub fn has_mistakes(&self) -> bool {
        self.problems.iter().any(|problem| problem.reach == Reach::Entry)
    }

    /// The names of the observers, each once, in the order of the file.
    pub fn observer_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for hook in self.hooks.iter().filter(|hook| hook.is_observer()) {
            if !names.contains(&hook.name.as_str()) {
                names.push(hook.name.as_str());
            }
        }
        names
    }
}

/// Two files are equal if their text, directory, project and NATS settings are.
impl PartialEq for HooksFile {
    fn eq(&self, other: &Self) -> bool {
        (&self.project, &self.base, &self.hash, &self.nats)
            == (&other.project, &other.base, &other.hash, &other.nats)
    }
}
