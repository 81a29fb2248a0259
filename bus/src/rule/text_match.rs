//! What a text is compared with: a regex, or one of the words `equals`, `starts_with`, `ends_with`, `contains`,
//! `glob`, `regex` and `not`.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use globset::{Glob, GlobBuilder, GlobMatcher};
use memchr::memmem;

use crate::dialect::{Pattern, PatternFailure};

/// One comparison of a text.
#[derive(Debug, Clone)]
pub enum TextMatch {
    /// The regex is found somewhere in it.
    Regex(String, Pattern),
    /// It is exactly this.
    Equals(String),
    /// It begins with this.
    StartsWith(String),
    /// It ends with this.
    EndsWith(String),
    /// It contains this.
    Contains(String),
    /// It matches all of this pattern, in which `*` stands for anything.
    Glob(String, LazyGlob),
    /// All of these hold.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
    /// None of these holds.
    Not(Vec<Self>),
}

impl TextMatch {
    /// The words that a mapping can have.
    pub const WORDS: [&'static str; 7] =
        ["equals", "starts_with", "ends_with", "contains", "glob", "regex", "not"];

    /// A regex that is searched. An error says what is wrong with it.
    pub fn regex(text: &str) -> Result<Self, String> {
        Pattern::compile_later(text).map(|pattern| Self::Regex(text.to_owned(), pattern))
    }

    /// The comparison `word: text`. An error says what is wrong with it.
    pub fn word(word: &str, text: &str) -> Result<Self, String> {
        Ok(match word {
            "equals" => Self::Equals(text.to_owned()),
            "starts_with" => Self::StartsWith(text.to_owned()),
            "ends_with" => Self::EndsWith(text.to_owned()),
            "contains" => Self::Contains(text.to_owned()),
            "glob" => Self::Glob(text.to_owned(), LazyGlob::parse(text, Separators::Any)?),
            _ => Self::regex(text)?,
        })
    }

    /// Whether `text` matches. Fails if that cannot be found out.
    pub fn matches(&self, text: &str) -> Result<bool, PatternFailure> {
        Ok(match self {
            Self::Regex(_, pattern) => return pattern.is_match(text),
            Self::Equals(other) => text == other,
            Self::StartsWith(start) => text.starts_with(start.as_str()),
            Self::EndsWith(end) => text.ends_with(end.as_str()),
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Glob(_, glob) => glob.is_match(text),
            Self::All(all) => return every(all, |it| it.matches(text)),
            Self::Any(some) => return any(some, |it| it.matches(text)),
            Self::Not(none) => return any(none, |it| it.matches(text)).map(|found| !found),
        })
    }
}

/// Whether one of `items` holds. A failure counts only if none of the others does.
pub(super) fn any<T>(
    items: impl IntoIterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, PatternFailure>,
) -> Result<bool, PatternFailure> {
    let mut result = Ok(false);
    for item in items {
        match holds(item) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(why) => result = Err(why),
        }
    }
    result
}

/// Whether all of `items` hold. A failure counts only if all of the others do.
pub(super) fn every<T>(
    items: impl IntoIterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, PatternFailure>,
) -> Result<bool, PatternFailure> {
    any(items, |item| holds(item).map(|held| !held)).map(|found| !found)
}

/// Whether `*` in a glob also stands for `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separators {
    /// It does: for texts.
    Any,
    /// It does not, and `**` does: for paths.
    Literal,
}

/// A glob, compiled when it is first needed.
#[derive(Debug, Clone)]
pub struct LazyGlob {
    glob: Glob,
    plain: Option<PlainGlob>,
    /// A text that everything has that matches. Tells most paths apart without the matcher.
    fragment: String,
    matcher: Arc<OnceLock<GlobMatcher>>,
}

/// The longest text between the wildcards of a glob, without slashes at its ends: `**/` may stand for nothing.
fn longest_fragment(glob: &str) -> String {
    if glob.contains(['[', '{', '\\']) {
        return String::new();
    }
    let fragments = glob.split(['*', '?']).map(|it| it.trim_matches('/'));
    fragments.max_by_key(|it| it.len()).unwrap_or_default().to_owned()
}

/// A glob that can be compared without a matcher.
#[derive(Debug, Clone)]
enum PlainGlob {
    /// No wildcards.
    Exact(String),
    /// One `*`, between these two.
    Star(String, String, Separators),
}

impl PlainGlob {
    fn parse(text: &str, separators: Separators) -> Option<Self> {
        if text.contains(['?', '[', ']', '{', '}', '\\']) {
            return None;
        }
        let mut parts = text.split('*').map(str::to_owned);
        match (parts.next()?, parts.next(), parts.next()) {
            (all, None, _) => Some(Self::Exact(all)),
            (start, Some(end), None) => Some(Self::Star(start, end, separators)),
            (_, Some(_), Some(_)) => None,
        }
    }

    fn is_match(&self, path: &Path) -> bool {
        let bytes = path.as_os_str().as_bytes();
        match self {
            Self::Exact(all) => bytes == all.as_bytes(),
            Self::Star(start, end, separators) => {
                let rest = bytes.strip_prefix(start.as_bytes());
                let any = rest.and_then(|rest| rest.strip_suffix(end.as_bytes()));
                any.is_some_and(|any| *separators == Separators::Any || !any.contains(&b'/'))
            }
        }
    }
}

impl LazyGlob {
    pub(super) fn parse(text: &str, separators: Separators) -> Result<Self, String> {
        let mut builder = GlobBuilder::new(text);
        builder.literal_separator(separators == Separators::Literal).backslash_escape(true);
        let glob = builder.build();
        let glob =
            glob.map_err(|error| format!("`{text}` is not a glob we can use ({})", error.kind()))?;
        let (plain, fragment) = (PlainGlob::parse(text, separators), longest_fragment(text));
        Ok(Self { glob, plain, fragment, matcher: Arc::default() })
    }

    pub(super) fn is_match(&self, path: impl AsRef<Path>) -> bool {
        if let Some(plain) = &self.plain {
            return plain.is_match(path.as_ref());
        }
        if memmem::find(path.as_ref().as_os_str().as_bytes(), self.fragment.as_bytes()).is_none() {
            return false;
        }
        self.matcher.get_or_init(|| self.glob.compile_matcher()).is_match(path)
    }
}

/// As it is written in a file.
impl fmt::Display for TextMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regex(text, _) => write!(f, "/{text}/"),
            Self::Equals(text) => write!(f, "equals {text}"),
            Self::StartsWith(text) => write!(f, "starts with {text}"),
            Self::EndsWith(text) => write!(f, "ends with {text}"),
            Self::Contains(text) => write!(f, "contains {text}"),
            Self::Glob(text, _) => write!(f, "glob {text}"),
            Self::All(all) => write_list(f, all, " and "),
            Self::Any(some) => write_list(f, some, " or "),
            Self::Not(none) => {
                f.write_str("not ")?;
                write_list(f, none, " or ")
            }
        }
    }
}

pub(super) fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    between: &str,
) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_compares_in_its_own_way() {
        for (word, text, yes, no) in [
            ("equals", "a.b", "a.b", "axb"),
            ("starts_with", "cron-", "cron-1", "my-cron-"),
            ("ends_with", ".rs", "main.rs", "main.rsx"),
            ("contains", "a+b", "xa+by", "aab"),
            ("glob", "mcp_*_delete", "mcp_x/y_delete", "mcp_x_deleted"),
            ("regex", "^a+$", "aaa", "aab"),
        ] {
            let read = TextMatch::word(word, text).expect("a comparison");
            assert_eq!((read.matches(yes), read.matches(no)), (Ok(true), Ok(false)), "{word}");
            let not = TextMatch::Not(vec![read]);
            assert_eq!((not.matches(yes), not.matches(no)), (Ok(false), Ok(true)), "{word}");
        }
    }

    #[test]
    fn a_plain_glob_matches_what_the_matcher_does() {
        let globs = ["", "a", ".env", "*", "a*", "*.pem", "a*b", "a/*", "*/b", ".env.*"];
        let texts =
            ["", "a", "b", "ab", "axb", "a/b", "a/xb", ".env", ".env.x", "k.pem", "d/k.pem"];
        for separators in [Separators::Any, Separators::Literal] {
            for (glob, text) in globs.iter().flat_map(|glob| texts.map(|text| (glob, text))) {
                let read = LazyGlob::parse(glob, separators).expect("a glob");
                let matcher = read.glob.compile_matcher();
                assert_eq!(read.is_match(text), matcher.is_match(text), "{glob} {text}");
                assert!(read.plain.is_some(), "{glob}");
            }
        }
    }

    #[test]
    fn a_first_look_at_a_path_never_misses_what_a_glob_matches() {
        let globs =
            ["/home/*/.ssh/**", "**/.ssh/**", "**/bin/x", "a?c/**/d", "{a,b}/*c*", "[ab]/*/c"];
        let texts = [
            "/home/you/.ssh/id",
            "x/.ssh/id",
            ".ssh/id",
            "bin/x",
            "/y/bin/x",
            "abc/d",
            "abc/x/y/d",
            "a/c",
            "b/xcx",
            "a/x/c",
        ];
        for (glob, text) in globs.iter().flat_map(|glob| texts.map(|text| (glob, text))) {
            let read = LazyGlob::parse(glob, Separators::Literal).expect("a glob");
            assert_eq!(
                read.is_match(text),
                read.glob.compile_matcher().is_match(text),
                "{glob} {text}"
            );
        }
    }

    #[test]
    fn a_failure_is_neither_a_match_nor_its_opposite() {
        let slow = TextMatch::regex("(?=y)").expect("a regex");
        let long = "x".repeat(64 << 10);
        assert!(slow.matches(&long).is_err());
        assert!(TextMatch::Not(vec![slow.clone()]).matches(&long).is_err());
        let other = TextMatch::Contains("x".into());
        assert_eq!(any([&slow, &other], |it| it.matches(&long)), Ok(true));
    }
}
