//! Whether what was connected still is: each Hermes with a record, and the usual one.

use std::path::{Path, PathBuf};

use super::files::{self, Record};
use super::hermes;
use crate::settings::Settings;

/// What is wrong with the usual Hermes, if it is there, and with each that was connected from this home.
pub(crate) fn health(settings: &Settings) -> Vec<(PathBuf, Option<String>)> {
    let hookbus = files::real(&settings.home);
    let usual = hermes::home(None, settings).ok();
    let own = usual.as_ref().map(|home| Record::file(&hookbus, "hermes", home));
    let others = Record::files(&hookbus, "hermes").into_iter();
    let others = others.filter(|file| Some(file) != own.as_ref());
    let usual = usual.iter().zip(&own).map(|(home, file)| of_one(file, Some(home), &hookbus));
    usual.chain(others.map(|file| of_one(&file, None, &hookbus))).collect()
}

fn of_one(file: &Path, usual: Option<&PathBuf>, hookbus: &Path) -> (PathBuf, Option<String>) {
    let known = match Record::load(file) {
        Ok(known) => known,
        Err(broken) => {
            let about = usual.cloned().unwrap_or_else(|| file.to_owned());
            return (about, Some(format!("{broken:#}")));
        }
    };
    let Some(home) = usual.cloned().or_else(|| hermes::home_in(&known)) else {
        let why = "it does not say where Hermes is; take hookbus out by hand and delete it";
        return (file.to_owned(), Some(why.to_owned()));
    };
    let option = usual.map_or_else(|| option_for(&home), |_| String::new());
    let wrong = hermes::trouble(&home, &option, &known, hookbus);
    (home, wrong)
}

/// How a home that is not the usual one is named on the command line.
fn option_for(home: &Path) -> String {
    let home = home.to_string_lossy();
    let word = shlex::try_quote(&home).unwrap_or_else(|_| home.clone());
    format!(" --hermes-home {word}")
}
