//! From a connection back to where one came from: every file as it was, or with what others changed since.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::edited::Kept;
use super::files::{self, Change, Record};
use super::{consent, hermes, show_one};
use crate::output::{self, Paint};

/// A file, what it holds now, and what it shall hold; none: no file.
pub(super) type Return = (PathBuf, Option<String>, Option<String>);

/// All of the way back, thought through and not gone yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WayBack {
    pub(super) known: Record,
    pub(super) returns: Vec<Return>,
    /// What others wrote into files that go.
    pub(super) kept: Vec<Kept>,
    pub(super) remarks: Vec<String>,
}

impl WayBack {
    /// Finds it.
    pub(super) fn find(known: Record, hermes: &Path, hookbus: &Path) -> Result<Self> {
        let mut remarks = Vec::new();
        let (config, hooks) = (hermes.join("config.yaml"), hookbus.join("hookbus.yaml"));
        let agreed = consent::file(hookbus);
        let back = hermes::without_us(&config, &hooks, &known, &mut remarks)?;
        let mut found = Self { known, returns: Vec::new(), kept: Vec::new(), remarks };
        for change in found.known.changes.clone() {
            let Change { path, before, after } = &change;
            let now = files::read(path)?;
            let then = match path {
                path if *path == config => back.config.clone(),
                path if *path == hooks => back.hooks.clone(),
                path if *path == agreed => consent::taken_back(&change, now.as_deref()),
                _ => {
                    let edited =
                        now.as_ref().filter(|now| *now != after && Some(*now) != before.as_ref());
                    if let Some(edited) = edited {
                        found.keep(path, edited);
                    }
                    before.clone()
                }
            };
            if now.is_some() && then != now {
                found.returns.push((path.clone(), now, then));
            }
        }
        Ok(found)
    }

    /// Keeps what is in a file that goes.
    pub(super) fn keep(&mut self, path: &Path, text: &str) {
        let kept = Kept::beside(path, text);
        self.remarks.push(kept.remark(path));
        self.kept.push(kept);
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.returns.is_empty() && self.known.changes.is_empty()
    }

    /// Shows what would change.
    pub(super) fn show(&self, paint: Paint) -> Result<()> {
        let one =
            |(path, now, then): &Return| show_one(path, now.as_deref(), then.as_deref(), paint);
        self.returns.iter().try_for_each(one)?;
        for kept in &self.kept {
            show_one(&kept.to, None, Some(&kept.text), paint)?;
        }
        for remark in &self.remarks {
            output::line(output::harmless_lines(remark))?;
        }
        Ok(())
    }

    /// Goes it, and forgets the record in `file`.
    pub(super) fn go(&self, file: &Path) -> Result<()> {
        for Kept { to, text } in &self.kept {
            files::write(to, text)?;
        }
        for (path, _, then) in &self.returns {
            match then {
                Some(text) => files::write(path, text)?,
                None => files::remove(path)?,
            }
        }
        files::remove_folders(&self.known.made);
        files::remove(file)?;
        files::remove_folders(&file.parent().map(Path::to_owned).into_iter().collect::<Vec<_>>());
        Ok(())
    }
}
