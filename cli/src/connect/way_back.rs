//! From a connection back to where one came from: every file as it was, or with what others changed since.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::files::{self, Change, Record};
use super::{consent, hermes, show_one};
use crate::output::Paint;

/// A file, what it holds now, and what it shall hold; none: no file.
pub(super) type Return = (PathBuf, Option<String>, Option<String>);

/// All of the way back, thought through and not gone yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WayBack {
    known: Record,
    pub(super) returns: Vec<Return>,
    pub(super) remarks: Vec<String>,
}

impl WayBack {
    /// Finds it.
    pub(super) fn find(known: Record, hermes: &Path, hookbus: &Path) -> Result<Self> {
        let (mut returns, mut remarks) = (Vec::new(), Vec::new());
        let (config, hooks) = (hermes.join("config.yaml"), hookbus.join("hookbus.yaml"));
        let agreed = consent::file(hookbus);
        let back = hermes::without_us(&config, &hooks, &known, &mut remarks)?;
        for change in &known.changes {
            let Change { path, before, .. } = change;
            let now = files::read(path)?;
            let then = match path {
                path if *path == config => back.config.clone(),
                path if *path == hooks => back.hooks.clone(),
                path if *path == agreed => consent::taken_back(change, now.as_deref()),
                _ => before.clone(),
            };
            if now.is_some() && then != now {
                returns.push((path.clone(), now, then));
            }
        }
        Ok(Self { known, returns, remarks })
    }

    /// Shows what would change.
    pub(super) fn show(&self, paint: Paint) -> Result<()> {
        let one =
            |(path, now, then): &Return| show_one(path, now.as_deref(), then.as_deref(), paint);
        self.returns.iter().try_for_each(one)
    }

    /// Goes it, and forgets the record in `file`.
    pub(super) fn go(&self, file: &Path) -> Result<()> {
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
