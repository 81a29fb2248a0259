//! Whether a person has agreed to what a hook runs. Agreement is to an event, a command and everything that
//! [`evidence`] finds behind it: an edited script has to be agreed to again.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::Hooks;
use super::evidence::{self, Evidence, Exhibit};
use super::hook::{Action, Hook};
use super::host::Launch;
use super::launch;
use super::surroundings::Surroundings;
use crate::event::Time;

/// Whose entries run without having been agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those that the person wrote into their own file.
    #[default]
    Home,
    /// Nobody's.
    Nobody,
}

/// How a person stands to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// They agreed to it as it is.
    Given,
    /// They were never asked.
    Never,
    /// They agreed to something else under the same words.
    Lapsed,
}

/// An entry that runs something, as it is shown to whoever is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreeable {
    /// The key it stands under.
    pub event: String,
    /// The hook's name.
    pub hook: String,
    /// The command or the directory, as written.
    pub command: String,
    /// The words that are run; none where the command cannot be split.
    pub words: Vec<String>,
    /// What it says about how it is run: variables, the interpreter.
    pub settings: Vec<String>,
    /// The files behind it.
    pub files: Vec<Exhibit>,
    /// Whether the code that runs is among them, as far as can be told.
    pub made_out: bool,
    /// The hash of all that is agreed to; none where there is too much of it.
    pub hash: Option<String>,
    /// How the person stands to it.
    pub agreement: Agreement,
    /// Where in the file it stands.
    pub line: usize,
}

/// What was agreed to, kept in `consent.json` beside the hooks file.
#[derive(Debug, Default)]
pub struct Consents {
    file: PathBuf,
    known: Mutex<Option<(Stamp, Given)>>,
}

type Stamp = (u64, u64, i64, i64);

/// By event and command, the hash that was agreed to.
type Given = HashMap<(String, String), Option<String>>;

impl Consents {
    /// Those beside the hooks file in `base`.
    pub(super) fn beside(base: &Path) -> Self {
        Self { file: base.join("consent.json"), known: Mutex::new(None) }
    }

    /// How the person stands to `command` on `event` with this behind it.
    pub(super) fn to(&self, event: &str, command: &str, hash: Option<&str>) -> Agreement {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        if known.as_ref().is_none_or(|(then, _)| *then != stamp) {
            *known = Some((stamp, self.read()));
        }
        let given = known
            .as_ref()
            .and_then(|(_, given)| given.get(&(event.to_owned(), command.to_owned())));
        match (given, hash) {
            (None, _) | (_, None) => Agreement::Never,
            (Some(agreed), hash) if agreed.as_deref() == hash => Agreement::Given,
            (Some(_), Some(_)) => Agreement::Lapsed,
        }
    }

    /// Why `hook` must not run what stands behind it, if so.
    pub(super) fn objection(
        &self,
        hook: &Hook,
        command: &str,
        found: &Evidence,
    ) -> Option<(Agreement, String)> {
        let agreement = self.to(&hook.on.to_string(), command, found.hash.as_deref());
        let why = match agreement {
            Agreement::Given => return None,
            _ if found.hash.is_none() => {
                "it has too many files to be agreed to; name a smaller directory"
            }
            Agreement::Never => "nobody has agreed to it; look at it with `hookbus hooks approve`",
            Agreement::Lapsed => {
                "it has changed since it was agreed to; look at it with `hookbus hooks approve`"
            }
        };
        Some((agreement, why.to_owned()))
    }

    fn stamp(&self) -> Stamp {
        fs::metadata(&self.file)
            .map_or((0, 0, 0, 0), |file| (file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
    }

    fn rows(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        json["approvals"].as_array().cloned().unwrap_or_default()
    }

    fn read(&self) -> Given {
        let text = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
        let given =
            |row: &Value| Some(((text(row, "event")?, text(row, "command")?), text(row, "script")));
        self.rows().iter().filter_map(given).collect()
    }

    /// The file that holds them.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The file's text with agreement to `entry` in it, given at `at`.
    pub fn with(&self, entries: &[&Agreeable], at: Time) -> String {
        let mut rows = self.rows();
        for entry in entries {
            rows.retain(|row| {
                row["event"] != json!(entry.event) || row["command"] != json!(entry.command)
            });
            rows.push(json!({
                "event": entry.event, "command": entry.command, "script": entry.hash, "approved_at": at.to_string(),
            }));
        }
        format!("{:#}\n", json!({"approvals": rows}))
    }

    /// The file's text without any agreement to `command`, and how many there were.
    pub fn without(&self, command: &str) -> (String, usize) {
        let mut rows = self.rows();
        let before = rows.len();
        rows.retain(|row| row["command"] != json!(command));
        let gone = before - rows.len();
        (format!("{:#}\n", json!({"approvals": rows})), gone)
    }
}

impl Hooks {
    /// Everything in these hooks that runs something.
    pub fn agreeables(&self, place: &Surroundings) -> Vec<Agreeable> {
        self.hooks.iter().filter_map(|hook| self.agreeable(hook, place)).collect()
    }

    /// These hooks with nothing but `entry` in them.
    #[must_use]
    pub fn alone(&self, entry: &Agreeable) -> Self {
        let is_it = |hook: &&Hook| {
            let known = hook.summary();
            (&known.name, &known.event, known.line) == (&entry.hook, &entry.event, entry.line)
                && known.command.as_ref() == Some(&entry.command)
        };
        Self { hooks: self.hooks.iter().find(is_it).cloned().into_iter().collect(), ..self.clone() }
    }

    fn agreeable(&self, hook: &Hook, place: &Surroundings) -> Option<Agreeable> {
        let (command, plugins) = match &hook.action {
            Action::Command(command) => (command.text.clone(), None),
            Action::Python(python) => {
                let folder = launch::folder(&python.folder, place, &self.base);
                let interpreter = launch::with_home(&python.launch.interpreter, place);
                let launch = Launch { interpreter, ..python.launch };
                let hash = self.shelf.hash(&folder, &self.base, &self.plugins, &launch);
                (python.folder.clone(), Some(hash))
            }
            Action::Rule(_) | Action::Webhook(_) | Action::Archive(_) | Action::Broken(_) => {
                return None;
            }
        };
        let Evidence { words, settings, files, made_out, hash } =
            evidence::of(hook, plugins.as_deref(), place, &self.base)?;
        let event = hook.on.to_string();
        let agreement = self.consents.to(&event, &command, hash.as_deref());
        let (hook, line) = (hook.name.clone(), hook.line);
        Some(Agreeable {
            event,
            hook,
            command,
            words,
            settings,
            files,
            made_out,
            hash,
            agreement,
            line,
        })
    }

    /// Why `hook` must not run this, if so. `plugins` is the host's word on what it would load.
    pub(super) fn objection(
        &self,
        hook: &Hook,
        command: &str,
        plugins: Option<&str>,
        place: &Surroundings,
    ) -> Option<(Agreement, String)> {
        if self.trust == Trust::Home {
            return None;
        }
        let found = evidence::of(hook, plugins, place, &self.base)?;
        self.consents.objection(hook, command, &found)
    }
}
