//! `consent.json`, beside the person's own hooks file: what they agreed to, entry by entry, with the content of
//! each file behind it. Several agreements to the same words can stand side by side: the same `./check.sh`
//! is another script in another directory.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::super::host::Form;
use super::super::projects::of_project_in;
use super::super::stamp::Stamp;
use super::agreed_files::{Files, FoundFiles, agreement, makes_way};
use super::evidence::{Evidence, Exhibit};
use super::readings::Readings;
use super::{Agreeable, Agreement, News};
use crate::event::Time;

/// What was agreed to.
#[derive(Debug, Default)]
pub struct Consents {
    file: PathBuf,
    known: Mutex<Option<(Stamp, Arc<[Given]>)>>,
    /// What the files hold that are compared with it.
    pub(in crate::decide) readings: Readings,
}

/// An entry: the project's file it stands in, if it is not the person's own, its event and what it runs.
#[derive(Debug, Clone, Copy)]
pub(in crate::decide) struct Entry<'a> {
    pub(in crate::decide) project: Option<&'a Path>,
    pub(in crate::decide) event: &'a str,
    pub(in crate::decide) command: &'a str,
}

/// One agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    project: Option<String>,
    event: String,
    command: String,
    /// The hash of what the entry says about how.
    terms: String,
    /// The files, and what they held.
    files: Files,
    at: String,
}

impl Given {
    fn is_to(&self, entry: Entry<'_>) -> bool {
        self.event == entry.event && self.command == entry.command && self.is_in(entry.project)
    }

    fn is_in(&self, project: Option<&Path>) -> bool {
        self.project.as_deref().map(Path::new) == project
    }

    /// Whether it is about the person's own file, or about that of a project that `place` is in.
    fn counts_in(&self, place: &Path) -> bool {
        let project = self.project.as_deref().map(Path::new);
        project.is_none_or(|file| place.ancestors().any(|folder| of_project_in(folder) == file))
    }

    fn to_json(&self) -> Value {
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|(path, hash)| {
                let mut file = json!({"path": path.to_string_lossy(), "hash": hash});
                // Two paths that are no text could look the same in it.
                if path.to_str().is_none() {
                    file["bytes"] = json!(hex::encode(path.as_os_str().as_bytes()));
                }
                file
            })
            .collect();
        let mut row = json!({
            "event": self.event, "command": self.command, "terms": self.terms, "files": files,
            "approved_at": self.at,
        });
        if let Some(project) = &self.project {
            row["project"] = json!(project);
        }
        row
    }

    fn from_json(row: &Value) -> Option<Self> {
        let text = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
        let path = |row: &Value| match text(row, "bytes") {
            Some(bytes) => Some(OsString::from_vec(hex::decode(bytes).ok()?).into()),
            None => Some(PathBuf::from(text(row, "path")?)),
        };
        let file = |row: &Value| Some((path(row)?, text(row, "hash")?));
        Some(Self {
            project: text(row, "project"),
            event: text(row, "event")?,
            command: text(row, "command")?,
            terms: text(row, "terms")?,
            files: row["files"].as_array()?.iter().filter_map(file).collect(),
            at: text(row, "approved_at").unwrap_or_default(),
        })
    }
}

impl Consents {
    /// Those beside the hooks file in `base`.
    pub fn beside(base: &Path) -> Self {
        Self { file: base.join("consent.json"), ..Self::default() }
    }

    /// The file that holds them.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What is wrong with the file, if it cannot be read; then nothing counts as agreed to.
    pub fn trouble(&self) -> Option<String> {
        self.rows().err()
    }

    /// How the person stands to an entry with this behind it.
    pub(in crate::decide) fn to(&self, entry: Entry<'_>, found: &Evidence) -> Agreement {
        self.look(|known| {
            let same_words: Vec<&Given> = known.iter().filter(|it| it.is_to(entry)).collect();
            let given = same_words.iter().filter(|it| it.terms == found.terms);
            let given: Vec<&Files> = given.map(|it| &it.files).collect();
            match (same_words.is_empty(), given.is_empty()) {
                (true, _) => Agreement::Never,
                (false, true) => Agreement::Lapsed,
                (false, false) => {
                    let Evidence { root, place, plugins, looked_for, .. } = found;
                    let (files, root) = (&by_path(&found.files), root.as_deref());
                    let resting = &plugins.resting;
                    let found = FoundFiles { files, root, resting, place, looked_for };
                    agreement(&found, &given, |path| self.readings.now(path))
                }
            }
        })
    }

    /// What is different from the agreement under these words that has most in common with what is there now.
    pub(in crate::decide) fn news(&self, entry: Entry<'_>, found: &Evidence) -> Option<News> {
        let files = by_path(&found.files);
        self.look(|known| {
            let same_words = known.iter().filter(|it| it.is_to(entry));
            let in_common =
                |it: &&Given| it.files.keys().filter(|path| files.contains_key(*path)).count();
            let then = &same_words.max_by_key(in_common)?.files;
            let is_new = |(path, hash): &(&PathBuf, &String)| then.get(*path) != Some(*hash);
            let changed = files.iter().filter(is_new).map(|(path, _)| path.clone());
            let gone = then.keys().filter(|path| !files.contains_key(*path)).cloned();
            Some(News { changed: changed.collect(), gone: gone.collect() })
        })
    }

    /// Whether all that was ever agreed to under these words are hooks of the gateway.
    pub(in crate::decide) fn knows_only_gateway_hooks(&self, entry: Entry<'_>) -> bool {
        let of_gateway = |it: &Given| {
            let has = |form: Form| it.files.keys().any(|path| form.is_said_by(path));
            has(Form::Gateway) && !has(Form::Plugin)
        };
        self.look(|known| known.iter().filter(|it| it.is_to(entry)).all(of_gateway))
    }

    /// Whether the person agreed to the words of an entry of a project, whatever has become of the files that
    /// it names.
    pub(in crate::decide) fn knows_words(&self, project: &Path, event: &str, terms: &str) -> bool {
        self.look(|known| {
            known.iter().any(|it| it.is_in(Some(project)) && it.event == event && it.terms == terms)
        })
    }

    /// Whether the person agreed to anything in this project's file.
    pub(in crate::decide) fn knows_project(&self, project: &Path) -> bool {
        self.look(|known| known.iter().any(|it| it.is_in(Some(project))))
    }

    fn look<T>(&self, answer: impl FnOnce(&[Given]) -> T) -> T {
        // Nobody else waits while the answer looks for files.
        answer(&self.known())
    }

    fn known(&self) -> Arc<[Given]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        match &mut *known {
            Some((then, known)) if *then == stamp => Arc::clone(known),
            outdated => {
                let rows = self.rows().unwrap_or_default().into();
                Arc::clone(&outdated.insert((stamp, rows)).1)
            }
        }
    }

    pub(in crate::decide) fn stamp(&self) -> Stamp {
        Stamp::of(&self.file)
    }

    fn rows(&self) -> Result<Vec<Given>, String> {
        let file = self.file.display();
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("{file} cannot be read: {error}")),
        };
        let rows = serde_json::from_str::<Value>(&text).ok();
        let rows = rows.and_then(|json| json["approvals"].as_array().cloned());
        let rows =
            rows.ok_or_else(|| format!("{file} is broken; mend it, or remove it and agree anew"))?;
        // One of an older version says too little to be held to.
        Ok(rows.iter().filter_map(Given::from_json).collect())
    }

    /// The file's text with agreement to `agreed` in it, given at `at`. What was agreed to before about the same
    /// files, and what none of `all` that stands in the files now says any more, makes way.
    pub fn with(
        &self,
        agreed: &[&Agreeable],
        all: &[Agreeable],
        at: Time,
    ) -> Result<String, String> {
        let mut rows = self.rows()?;
        // What nobody can look at nobody can agree to.
        for entry in agreed.iter().filter(|entry| entry.obstacle().is_none()) {
            let words = entry.words_of();
            let files = by_path(&entry.files);
            let stands = |row: &Given| {
                all.iter().any(|it| row.is_to(it.words_of()) && row.terms == it.terms)
            };
            // Another entry may run the same script in another way, and has an agreement of its own.
            let is_outdated =
                |row: &Given| row.terms == entry.terms && makes_way(&row.files, &files);
            rows.retain(|row| !row.is_to(words) || stands(row) && !is_outdated(row));
            rows.push(Given {
                project: entry.project.as_ref().map(|file| file.to_string_lossy().into_owned()),
                event: entry.event.clone(),
                command: entry.command.clone(),
                terms: entry.terms.clone(),
                files,
                at: at.to_string(),
            });
        }
        Ok(written(&rows))
    }

    /// The file's text without the agreements to any of `commands`, in the person's own file and in the projects that
    /// have `place` in them, whether or not those still have a file. And how many there were.
    pub fn without(&self, commands: &[String], place: &Path) -> Result<(String, usize), String> {
        let mut rows = self.rows()?;
        let before = rows.len();
        rows.retain(|row| !(commands.contains(&row.command) && row.counts_in(place)));
        let gone = before - rows.len();
        Ok((written(&rows), gone))
    }
}

fn written(rows: &[Given]) -> String {
    let rows: Vec<Value> = rows.iter().map(Given::to_json).collect();
    format!("{:#}\n", json!({"approvals": rows}))
}

/// A command can name a file twice.
fn by_path(files: &[Exhibit]) -> Files {
    files.iter().map(|file| (file.path.clone(), file.hash.clone())).collect()
}
