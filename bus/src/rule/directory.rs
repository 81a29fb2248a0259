//! A directory in a policy: absolute, relative to the project, or behind one of the words `$project`, `$cwd`, `$home`,
//! `$tmp` and `$hookbus`.

use std::fmt;
use std::path::{Path, PathBuf};

use super::place::Place;
use super::wildcard::{may_lead_above, may_lead_below};

/// A directory as a policy names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    base: Base,
    /// What follows the word; the whole path if there is none.
    rest: PathBuf,
    written: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Root,
    Project,
    Cwd,
    Home,
    Temporary,
    Bus,
}

/// Which directories a word stands for where that is not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Every one that it may be: for what is guarded.
    Wide,
    /// Only those that are certain: for what is let through.
    Narrow,
}

const WORDS: [(&str, Base); 5] = [
    ("$project", Base::Project),
    ("$cwd", Base::Cwd),
    ("$home", Base::Home),
    ("$tmp", Base::Temporary),
    ("$hookbus", Base::Bus),
];

impl Directory {
    /// Reads a directory. An error says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written = text.to_owned();
        if text.trim().is_empty() {
            return Err(
                "a directory is missing; write `$project`, `$home`, `$tmp` or a path".into()
            );
        }
        let (first, rest) = text.split_once('/').unwrap_or((text, ""));
        let first = if first == "~" { "$home" } else { first };
        if let Some((_, base)) = WORDS.into_iter().find(|(word, _)| *word == first) {
            return Ok(Self { base, rest: PathBuf::from(rest.trim_start_matches('/')), written });
        }
        if first.starts_with('$') || first.starts_with('~') {
            let known = WORDS.map(|(word, _)| word).join(", ");
            return Err(format!("`{first}` stands for no directory here (one of: {known})"));
        }
        let base = if text.starts_with('/') { Base::Root } else { Base::Project };
        Ok(Self { base, rest: PathBuf::from(text.trim_start_matches('/')), written })
    }

    /// Whether a resolved path is this directory or below it.
    pub(super) fn contains(&self, path: &Path, place: &Place, reading: Reading) -> bool {
        if self.base == Base::Temporary && self.rest.as_os_str().is_empty() {
            return place.is_temporary(path);
        }
        self.paths(place, reading).iter().any(|folder| path.starts_with(folder))
    }

    /// Whether a path with wildcards may be in this directory once the shell has expanded it.
    pub(super) fn may_contain(&self, path: &Path, place: &Place) -> bool {
        self.paths(place, Reading::Wide).iter().any(|folder| may_lead_below(path, folder))
    }

    /// Whether a resolved path is this directory or one above it.
    pub(super) fn is_below(&self, path: &Path, place: &Place, reading: Reading) -> bool {
        self.paths(place, reading).iter().any(|folder| folder.starts_with(path))
    }

    /// Whether a path with wildcards may be this directory or one above it.
    pub(super) fn may_be_below(&self, path: &Path, place: &Place) -> bool {
        self.paths(place, Reading::Wide).iter().any(|folder| may_lead_above(path, folder))
    }

    /// Where it leads; a link to it and what the link leads to both count.
    pub(super) fn paths(&self, place: &Place, reading: Reading) -> Vec<PathBuf> {
        let bases: Vec<&Path> = match (self.base, reading) {
            (Base::Root, _) => vec![Path::new("/")],
            (Base::Project, _) => vec![&place.project],
            (Base::Cwd, _) => vec![&place.cwd],
            (Base::Home, Reading::Wide) => place.homes().collect(),
            (Base::Home, Reading::Narrow) => place.home.as_deref().into_iter().collect(),
            (Base::Temporary, _) => place.temporary.iter().map(PathBuf::as_path).collect(),
            (Base::Bus, _) => vec![&place.bus],
        };
        let mut paths = Vec::with_capacity(bases.len());
        for base in bases {
            if self.rest.as_os_str().is_empty() {
                paths.push(base.to_owned());
                continue;
            }
            let written = base.join(&self.rest);
            let real = place.follow_directory(&written);
            paths.extend(real.filter(|real| *real != written));
            paths.push(written);
        }
        paths
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
