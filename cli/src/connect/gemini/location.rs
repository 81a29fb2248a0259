//! Which `settings.json` is edited: the one of the user, which Gemini reads in every project, or the one of a project.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::super::files;
use crate::settings::Settings;

/// The directory of Gemini in a home or in a project.
const FOLDER: &str = ".gemini";

/// A `settings.json`, whether or not it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// Its path. Links of its directory are resolved; the file itself may be a link and stays one.
    pub(super) file: PathBuf,
    /// The project whose settings it holds; none: those of the user.
    pub(super) project: Option<PathBuf>,
}

impl Location {
    /// The settings of the user, where Gemini looks for them: in `GEMINI_CLI_HOME`, else in the home directory.
    pub(super) fn of_user(settings: &Settings) -> Result<Self> {
        let home = settings.gemini.as_ref();
        let home = home.context("cannot tell where Gemini CLI keeps its settings; set HOME")?;
        Ok(Self { file: settings_file(home)?, project: None })
    }

    /// The settings of a project: Gemini reads those of the directory that it is started in.
    pub(super) fn of_project(folder: &Path) -> Result<Self> {
        let folder = files::canonical(&std::path::absolute(folder)?);
        Ok(Self { file: settings_file(&folder)?, project: Some(folder) })
    }

    /// Fails if there is no such project.
    pub(super) fn check(&self) -> Result<()> {
        match &self.project {
            Some(project) if !project.is_dir() => {
                bail!("{} is not a directory; pass --project DIR with one", project.display())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The location that a record is about.
    pub(super) fn of_file(file: &Path, user: Option<&Self>) -> Self {
        let folder = file.ancestors().nth(2).map(Path::to_owned);
        let is_users = user.is_some_and(|user| user.file == file);
        Self { file: file.to_owned(), project: folder.filter(|_| !is_users) }
    }

    /// The option of `connect` and `disconnect` that names it, with a space before it.
    pub(super) fn option(&self) -> String {
        let Some(project) = &self.project else { return String::new() };
        let project = project.to_string_lossy();
        let word = shlex::try_quote(&project).unwrap_or_else(|_| project.clone());
        format!(" --project {word}")
    }
}

fn settings_file(above: &Path) -> Result<PathBuf> {
    let folder = files::canonical(&std::path::absolute(above.join(FOLDER))?);
    Ok(folder.join("settings.json"))
}
