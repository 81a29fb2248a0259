//! What a path is compared with, after it was resolved: the directory that it is in (`under`, `outside`), what it
//! contains (`above`), a glob, or the comparisons of texts.

use std::fmt;
use std::path::Path;

use super::directory::{Directory, Reading, below};
use super::field::FieldsOf;
use super::files::FileFact;
use super::place::Place;
use super::text_match::{LazyGlob, Separators, TextMatch, any, every, write_list};
use super::wildcard::may_be;
use crate::dialect::PatternFailure;

/// One comparison of a path.
#[derive(Debug, Clone)]
pub enum PathMatch {
    /// The path as the tool got it is searched for a regex: how `path: 'regex'` has always worked.
    Written(TextMatch),
    /// It is one of these directories or below one.
    Under(Vec<Directory>),
    /// It is in none of these directories.
    Outside(Vec<Directory>),
    /// One of these directories is in it, or is it.
    Above(Vec<Directory>),
    /// Its name (a pattern without `/`), or all of it, matches.
    Glob(PathGlob),
    /// The resolved path, as text.
    Text(TextMatch),
    /// It cannot be told before the command runs which path it is.
    Unknown,
    /// All of these hold.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
    /// None of these holds.
    Not(Vec<Self>),
}

/// A glob for paths.
#[derive(Debug, Clone)]
pub struct PathGlob {
    written: String,
    /// Where a pattern with `/` starts, and the pattern from there on.
    base: Option<Directory>,
    matcher: LazyGlob,
}

impl PathGlob {
    /// Reads a glob. An error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written = text.to_owned();
        let is_name = !text.contains('/');
        let is_floating = text.starts_with("**/") || text.starts_with('/');
        if is_name || is_floating {
            let matcher = LazyGlob::parse(text, Separators::Literal)?;
            return Ok(Self { written, base: None, matcher });
        }
        let (first, rest) = text.split_once('/').unwrap_or((text, ""));
        let has_word = first.starts_with('$') || first == "~";
        let (base, rest) = if has_word { (first, rest) } else { ("$project", text) };
        let base = Directory::parse(base)?;
        Ok(Self { written, base: Some(base), matcher: LazyGlob::parse(rest, Separators::Literal)? })
    }

    /// Whether a path with wildcards may have the name that this is.
    fn may_match(&self, path: &Path) -> bool {
        let own = self.written.rsplit('/').next().unwrap_or_default();
        let is_plain_name = !own.contains(['*', '?', '[', '{']) && !own.is_empty();
        let name = path.file_name().and_then(|name| name.to_str());
        // `*` alone may be every name, and is meant to be none in particular.
        let is_meant =
            |pattern: &str| pattern.chars().filter(|it| !"*?[]".contains(*it)).count() > 1;
        is_plain_name && name.is_some_and(|it| is_meant(it) && may_be(it, own))
    }

    fn matches(&self, path: &Path, place: &Place, reading: Reading) -> bool {
        if !self.written.contains('/') {
            return path.file_name().is_some_and(|name| self.matcher.is_match(name));
        }
        match &self.base {
            None => self.matcher.is_match(path),
            Some(base) => base
                .paths(place, reading)
                .iter()
                .any(|base| below(path, base).is_some_and(|rest| self.matcher.is_match(rest))),
        }
    }
}

impl PathMatch {
    /// The words that a mapping can have, besides those of [`TextMatch`].
    pub const WORDS: [&'static str; 4] = ["under", "outside", "above", "unknown"];

    /// [`matches`](Self::matches), where a plain regex is searched only in the fields that `of` chooses.
    pub(super) fn matches_of(
        &self,
        file: &FileFact<'_>,
        place: &Place,
        reading: Reading,
        of: FieldsOf,
    ) -> Result<bool, PatternFailure> {
        let is_chosen = of == FieldsOf::Everyone || file.is_in_first_field();
        if matches!(self, Self::Written(_)) && !is_chosen {
            return Ok(false);
        }
        self.matches(file, place, reading)
    }

    /// Whether `file` matches. What is not known about the file matches nothing but [`Self::Unknown`].
    pub(super) fn matches(
        &self,
        file: &FileFact<'_>,
        place: &Place,
        reading: Reading,
    ) -> Result<bool, PatternFailure> {
        if let Self::Written(text) = self {
            return file.field_text().map_or(Ok(false), |written| text.matches(written));
        }
        let Some(path) = file.path() else {
            return match self {
                Self::Unknown => Ok(file.is_unknown()),
                Self::All(all) => every(all, |it| it.matches(file, place, reading)),
                Self::Any(some) => any(some, |it| it.matches(file, place, reading)),
                Self::Written(_)
                | Self::Under(_)
                | Self::Outside(_)
                | Self::Above(_)
                | Self::Glob(_)
                | Self::Text(_)
                | Self::Not(_) => Ok(false),
            };
        };
        Ok(match self {
            Self::Under(folders) => {
                let may_expand = file.is_glob() && reading == Reading::Wide;
                folders.iter().any(|folder| {
                    folder.contains(path, place, reading)
                        || may_expand && folder.may_contain(path, place)
                })
            }
            Self::Outside(folders) => {
                !folders.iter().any(|folder| folder.contains(path, place, reading.opposite()))
            }
            Self::Above(folders) => {
                let whole = file.whole_directory().unwrap_or(path);
                // `~/$X` is probably not `~` itself.
                let may_expand = file.is_written_glob() && reading == Reading::Wide;
                folders.iter().any(|folder| {
                    folder.is_below(whole, place, reading)
                        || may_expand && folder.may_be_below(whole, place)
                })
            }
            Self::Glob(glob) => {
                glob.matches(path, place, reading)
                    || file.is_glob() && reading == Reading::Wide && glob.may_match(path)
            }
            Self::Text(text) => return text.matches(&path.to_string_lossy()),
            Self::Unknown | Self::Written(_) => false,
            Self::All(all) => return every(all, |it| it.matches(file, place, reading)),
            Self::Any(some) => return any(some, |it| it.matches(file, place, reading)),
            Self::Not(none) => {
                let reading = reading.opposite();
                return any(none, |it| it.matches(file, place, reading)).map(|found| !found);
            }
        })
    }
}

impl Reading {
    /// What is outside of a directory is certain where what is in it is not.
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::Wide => Self::Narrow,
            Self::Narrow => Self::Wide,
        }
    }
}

impl fmt::Display for PathMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, folders) = match self {
            Self::Under(folders) => ("under ", folders),
            Self::Outside(folders) => ("outside of ", folders),
            Self::Above(folders) => ("above ", folders),
            Self::Glob(glob) => return write!(f, "glob {}", glob.written),
            Self::Written(text) | Self::Text(text) => return text.fmt(f),
            Self::Unknown => return f.write_str("not known"),
            Self::All(all) => return write_list(f, all, " and "),
            Self::Any(some) => return write_list(f, some, " or "),
            Self::Not(none) => {
                f.write_str("not ")?;
                return write_list(f, none, " or ");
            }
        };
        f.write_str(word)?;
        write_list(f, folders, " or ")
    }
}
