//! A directory in a policy: absolute, relative to the project, or behind one of the words `$project`, `$cwd`, `$home`,
//! `$tmp` and `$hookbus`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::place::Place;
use super::wildcard::{may_lead_above, may_lead_below, may_share_beginning};
use crate::files::lexical_path;

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
            return Ok(Self { base, rest: clean(rest), written });
        }
        if first.starts_with('$') || first.starts_with('~') {
            let known = WORDS.map(|(word, _)| word).join(", ");
            return Err(format!("`{first}` stands for no directory here (one of: {known})"));
        }
        let base = if text.starts_with('/') { Base::Root } else { Base::Project };
        Ok(Self { base, rest: clean(text), written })
    }

    /// Whether a resolved path is this directory or below it.
    pub(super) fn contains(&self, path: &Path, place: &Place, reading: Reading) -> bool {
        if self.base == Base::Temporary && self.rest.as_os_str().is_empty() {
            return place.is_temporary(path);
        }
        let is_below =
            |base: &Path| below(path, base).is_some_and(|rest| below(rest, &self.rest).is_some());
        self.bases(place, reading).any(is_below)
            || self.followed(place, reading).any(|folder| below(path, &folder).is_some())
    }

    /// Whether a path with wildcards may be in this directory once the shell has expanded it.
    pub(super) fn may_contain(&self, path: &Path, place: &Place) -> bool {
        self.may_lead(path, place, may_lead_below)
    }

    /// Whether a resolved path is this directory or one above it.
    pub(super) fn is_below(&self, path: &Path, place: &Place, reading: Reading) -> bool {
        let is_above = |base: &Path| {
            below(base, path).is_some()
                || below(path, base).is_some_and(|rest| below(&self.rest, rest).is_some())
        };
        self.bases(place, reading).any(is_above)
            || self.followed(place, reading).any(|folder| below(&folder, path).is_some())
    }

    /// Whether a path with wildcards may be this directory or one above it.
    pub(super) fn may_be_below(&self, path: &Path, place: &Place) -> bool {
        self.may_lead(path, place, may_lead_above)
    }

    fn may_lead(&self, path: &Path, place: &Place, leads: fn(&Path, &Path) -> bool) -> bool {
        let written = self.bases(place, Reading::Wide);
        let mut written = written.filter(|base| may_share_beginning(path, base, &self.rest));
        written.any(|base| leads(path, &self.at(base)))
            || self.followed(place, Reading::Wide).any(|folder| leads(path, &folder))
    }

    /// Where it leads; a link to it and what the link leads to both count.
    pub(super) fn paths(&self, place: &Place, reading: Reading) -> Vec<PathBuf> {
        let written = self.bases(place, reading).map(|base| self.at(base));
        written.chain(self.followed(place, reading)).collect()
    }

    /// This directory, where `base` is what its word stands for. To join nothing would add a slash.
    fn at(&self, base: &Path) -> PathBuf {
        if self.rest.as_os_str().is_empty() { base.to_owned() } else { base.join(&self.rest) }
    }

    /// The directories that its word may stand for.
    fn bases<'p>(&self, place: &'p Place, reading: Reading) -> impl Iterator<Item = &'p Path> {
        let one = match self.base {
            Base::Root => Some(Path::new("/")),
            Base::Project => Some(place.project.as_path()),
            Base::Cwd => Some(place.cwd.as_path()),
            Base::Home => place.home.as_deref(),
            Base::Bus => Some(place.bus.as_path()),
            Base::Temporary => None,
        };
        let claimed = (self.base, reading) == (Base::Home, Reading::Wide);
        let claimed = place.claimed_home.as_deref().filter(|_| claimed);
        let temporary: &[PathBuf] =
            if self.base == Base::Temporary { &place.temporary } else { &[] };
        one.into_iter().chain(claimed).chain(temporary.iter().map(PathBuf::as_path))
    }

    /// Where its links lead, if they lead elsewhere.
    fn followed<'p>(
        &'p self,
        place: &'p Place,
        reading: Reading,
    ) -> impl Iterator<Item = PathBuf> + 'p {
        let may_lead_elsewhere = !self.rest.as_os_str().is_empty() && place.may_have_links();
        let bases = may_lead_elsewhere.then(|| self.bases(place, reading));
        bases.into_iter().flatten().filter_map(move |base| {
            let written = self.at(base);
            place.follow_directory(&written).filter(|real| *real != written)
        })
    }
}

/// What follows `base` in `path`, if it is that directory or below it. Both are without `.`, `..` and doubled slashes, so
/// that their bytes can be compared; every rule about files does.
pub(super) fn below<'p>(path: &'p Path, base: &Path) -> Option<&'p Path> {
    let (bytes, base) = (path.as_os_str().as_bytes(), base.as_os_str().as_bytes());
    // Most directories differ in the byte at which they end, or are longer than the path.
    if let Some(last) = base.len().checked_sub(1)
        && bytes.get(last) != base.get(last)
    {
        return None;
    }
    let rest = bytes.strip_prefix(base)?;
    let rest = match rest.strip_prefix(b"/") {
        Some(behind_slash) => behind_slash,
        None if rest.is_empty() || base.is_empty() || base == b"/" => rest,
        None => return None,
    };
    Some(Path::new(OsStr::from_bytes(rest)))
}

/// Without `.`, `..` and slashes at its ends.
fn clean(text: &str) -> PathBuf {
    let whole = lexical_path(&Path::new("/").join(text.trim_start_matches('/')));
    whole.strip_prefix("/").map(Path::to_owned).unwrap_or_default()
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
