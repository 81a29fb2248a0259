//! Whether a person has agreed to what a hook runs. Agreement is to an event, a command and everything that
//! [`evidence`] finds behind it: an edited script has to be agreed to again. Of a project's file every entry
//! has to be agreed to, in the place where the project is.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::evidence::{self, Evidence, Exhibit};
use super::hook::{Action, Hook};
use super::host::Launch;
use super::launch;
use super::surroundings::Surroundings;
use super::{EventKey, Hooks};
use crate::event::Time;

/// Whose entries run without having been agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those that the person wrote into their own file.
    Home,
    /// Nobody's.
    #[default]
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
    /// The project's file it stands in, if it is not the person's own.
    pub project: Option<PathBuf>,
    /// The key it stands under.
    pub event: String,
    /// The hook's name.
    pub hook: String,
    /// The command or the directory, as written; what else it is, and its name.
    pub command: String,
    /// Whether anything outside of the bus runs for it.
    pub runs_something: bool,
    /// The words that are run; none where the command cannot be split.
    pub words: Vec<String>,
    /// The entry as it is written, as JSON.
    pub written: String,
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

/// What was agreed to, kept in `consent.json` beside the person's own hooks file.
#[derive(Debug, Default)]
pub struct Consents {
    file: PathBuf,
    known: Mutex<Option<(Stamp, Known)>>,
}

/// What changes when the file does.
pub(super) type Stamp = (u64, u64, i64, i64);

/// An entry: its project's file, if it is a project's, its event and its command.
type Key = (Option<String>, String, String);

/// What stands in the file, read.
#[derive(Debug, Default)]
struct Known {
    given: Given,
    /// The entries of projects that were agreed to, by file and hash.
    entries: HashSet<(String, String)>,
}

/// What was agreed to under each; several entries may share an event and a command.
type Given = HashMap<Key, Vec<String>>;

impl Consents {
    /// Those beside the hooks file in `base`.
    pub fn beside(base: &Path) -> Self {
        Self { file: base.join("consent.json"), known: Mutex::new(None) }
    }

    /// How the person stands to an entry with this behind it.
    fn to(&self, entry: &Key, hash: Option<&str>) -> Agreement {
        self.look(|known| match (known.given.get(entry), hash) {
            (None, _) | (_, None) => Agreement::Never,
            (Some(agreed), Some(hash)) if agreed.iter().any(|one| one == hash) => Agreement::Given,
            (Some(_), Some(_)) => Agreement::Lapsed,
        })
    }

    /// Whether the person agreed to the words of this entry of a project, whatever has become of the files
    /// that it names.
    pub(super) fn knows(&self, project: &Path, written: &str) -> bool {
        let entry = (project.to_string_lossy().into_owned(), evidence::of_words(written));
        self.look(|known| known.entries.contains(&entry))
    }

    fn look<T>(&self, answer: impl FnOnce(&Known) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        match &mut *known {
            Some((then, known)) if *then == stamp => answer(known),
            outdated => answer(&outdated.insert((stamp, self.read())).1),
        }
    }

    /// Why `hook` must not run what stands behind it, if so.
    pub(super) fn objection(
        &self,
        project: Option<&Path>,
        hook: &Hook,
        command: &str,
        found: &Evidence,
    ) -> Option<(Agreement, String)> {
        let agreement = self.to(&key(project, &hook.on, command), found.hash.as_deref());
        let what = match agreement {
            Agreement::Given => return None,
            _ if found.hash.is_none() => {
                let why = "it has too many files to be agreed to; name a smaller directory";
                return Some((agreement, why.to_owned()));
            }
            Agreement::Never => "nobody has agreed to it",
            Agreement::Lapsed => "it has changed since it was agreed to",
        };
        let place = project.and_then(Path::parent).and_then(Path::parent);
        let place = place.map_or_else(String::new, |place| format!(" in {}", place.display()));
        Some((agreement, format!("{what}; look at it with `hookbus hooks approve`{place}")))
    }

    pub(super) fn stamp(&self) -> Stamp {
        fs::metadata(&self.file)
            .map_or((0, 0, 0, 0), |file| (file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
    }

    fn rows(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        json["approvals"].as_array().cloned().unwrap_or_default()
    }

    fn read(&self) -> Known {
        let mut known = Known::default();
        for row in self.rows() {
            let text = |key: &str| row[key].as_str().map(str::to_owned);
            known.entries.extend(text("project").zip(text("entry")));
            if let (Some(event), Some(command), Some(hash)) =
                (text("event"), text("command"), text("script"))
            {
                known.given.entry((text("project"), event, command)).or_default().push(hash);
            }
        }
        known
    }

    /// The file that holds them.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The file's text with agreement to `agreed` in it, given at `at`. What else was agreed to under the
    /// same words stays only if it is among `all` that stand in the files now.
    pub fn with(&self, agreed: &[&Agreeable], all: &[Agreeable], at: Time) -> String {
        let mut rows = self.rows();
        for entry in agreed {
            let stands = |row: &Value| {
                all.iter()
                    .any(|it| it != *entry && it.is_under(row) && row["script"] == json!(it.hash))
            };
            rows.retain(|row| !entry.is_under(row) || stands(row));
            let mut row = json!({
                "event": entry.event, "command": entry.command, "script": entry.hash, "approved_at": at.to_string(),
            });
            if let Some(project) = &entry.project {
                row["project"] = json!(project.to_string_lossy());
                row["entry"] = json!(evidence::of_words(&entry.written));
            }
            rows.push(row);
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

fn key(project: Option<&Path>, event: &EventKey, command: &str) -> Key {
    let project = project.map(|file| file.to_string_lossy().into_owned());
    (project, event.to_string(), command.to_owned())
}

impl Agreeable {
    /// Whether a row of the file is about an entry of these words.
    fn is_under(&self, row: &Value) -> bool {
        let project = self.project.as_ref().map(|file| file.to_string_lossy());
        row["event"] == json!(self.event)
            && row["command"] == json!(self.command)
            && row["project"] == json!(project)
    }
}

impl Hooks {
    /// Everything in these hooks that has to be agreed to.
    pub fn agreeables(&self, place: &Surroundings) -> Vec<Agreeable> {
        self.hooks.iter().filter_map(|hook| self.agreeable(hook, place)).collect()
    }

    /// These hooks with nothing but `entry` in them.
    #[must_use]
    pub fn alone(&self, entry: &Agreeable) -> Self {
        let is_it = |hook: &&Hook| {
            let known = hook.summary();
            (&known.name, &known.event, known.line) == (&entry.hook, &entry.event, entry.line)
                && hook.what_runs() == entry.command
        };
        Self { hooks: self.hooks.iter().find(is_it).cloned().into_iter().collect(), ..self.clone() }
    }

    fn agreeable(&self, hook: &Hook, place: &Surroundings) -> Option<Agreeable> {
        let plugins = match &hook.action {
            Action::Python(python) => {
                let folder = launch::folder(&python.folder, place, &self.base);
                let interpreter = launch::with_home(&python.launch.interpreter, place);
                let launch = Launch { interpreter, ..python.launch };
                Some(self.shelf.hash(&folder, &self.base, &self.plugins, &launch))
            }
            Action::Command(_)
            | Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Broken(_)
            | Action::Unread { .. } => None,
        };
        let (command, written) = (hook.what_runs(), hook.written.clone());
        let Evidence { words, settings, files, made_out, hash } =
            evidence::of(hook, plugins.as_deref(), place, &self.base)?;
        let event = hook.on.to_string();
        let agreement =
            self.consents.to(&key(self.project.as_deref(), &hook.on, &command), hash.as_deref());
        let runs_something = hook.runs_outside();
        let (hook, line) = (hook.name.clone(), hook.line);
        Some(Agreeable {
            project: self.project.clone(),
            event,
            hook,
            command,
            runs_something,
            words,
            written,
            settings,
            files,
            made_out,
            hash,
            agreement,
            line,
        })
    }

    /// Why an entry of a project must not even be looked into, if so: nobody agreed to these words.
    pub(super) fn unread(&self, hook: &Hook) -> Option<(Agreement, String)> {
        let project = self.project.as_deref().filter(|_| self.trust == Trust::Nobody)?;
        if self.consents.knows(project, &hook.written) {
            return None;
        }
        let nothing = Evidence { hash: Some(String::new()), ..Evidence::default() };
        self.consents.objection(Some(project), hook, &hook.what_runs(), &nothing)
    }

    /// Why `hook` must not be asked, if so. `plugins` is the host's word on what it would load.
    pub(super) fn objection(
        &self,
        hook: &Hook,
        plugins: Option<&str>,
        place: &Surroundings,
    ) -> Option<(Agreement, String)> {
        if self.trust == Trust::Home {
            return None;
        }
        let found = evidence::of(hook, plugins, place, &self.base)?;
        self.consents.objection(self.project.as_deref(), hook, &hook.what_runs(), &found)
    }
}
