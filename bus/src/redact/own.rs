//! The user's settings, ready to be used: compiled patterns, key names, paths and allowed values.

use regex::bytes::{Regex, RegexBuilder};

use super::glob::Glob;
use super::json_walk::Segment;
use super::mark::Mark;
use super::settings::{Allowed, OwnPattern, RedactionSettings, SettingsError};
use super::unescape::Unescaped;

/// Compiled settings.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) patterns: Vec<Pattern>,
    pub(super) key_names: Vec<Glob>,
    paths: Vec<Vec<Step>>,
    exact: Vec<Vec<u8>>,
    matching: Vec<Regex>,
}

#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) name: String,
    pub(super) regex: Regex,
    pub(super) keywords: Vec<String>,
}

#[derive(Debug)]
enum Step {
    Any,
    Named(Vec<u8>),
}

impl Own {
    pub(super) fn new(settings: &RedactionSettings) -> Result<Self, SettingsError> {
        let mut own = Self {
            patterns: settings.patterns.iter().map(pattern).collect::<Result<_, _>>()?,
            key_names: settings
                .key_names
                .iter()
                .map(|name| key_name(name))
                .collect::<Result<_, _>>()?,
            paths: settings.json_paths.iter().map(|path| steps(path)).collect::<Result<_, _>>()?,
            exact: Vec::new(),
            matching: Vec::new(),
        };
        for allowed in &settings.allowed {
            match allowed {
                Allowed::Exact(value) => own.exact.push(value.clone().into_bytes()),
                Allowed::Matching(regex) => {
                    let whole = format!("^(?:{regex})$");
                    own.matching.push(compile("allowed", &whole)?);
                }
            }
        }
        Ok(own)
    }

    /// Whether JSON has to be walked through even if no keyword is in it.
    pub(super) fn has_places(&self) -> bool {
        !self.paths.is_empty() || !self.key_names.is_empty()
    }

    /// Which setting names a place in the payload as secret.
    pub(super) fn names_place(&self, raw: &[u8], path: &[Segment]) -> Option<&'static str> {
        let key = |range: &std::ops::Range<usize>| {
            Unescaped::new(raw.get(range.clone()).unwrap_or_default()).text().to_vec()
        };
        let is_named = |segment: &Segment| match segment {
            Segment::Key(range) => {
                let key = key(range);
                self.key_names.iter().any(|name| name.matches(&key))
            }
            Segment::Index(_) => false,
        };
        let leads_here = |steps: &Vec<Step>| {
            steps.len() <= path.len()
                && steps.iter().zip(path).all(|(step, segment)| match (step, segment) {
                    (Step::Any, _) => true,
                    (Step::Named(name), Segment::Key(range)) => *name == key(range),
                    (Step::Named(name), Segment::Index(index)) => {
                        *name == index.to_string().into_bytes()
                    }
                })
        };
        if self.paths.iter().any(leads_here) {
            return Some("configured-path");
        }
        (!self.key_names.is_empty() && path.iter().any(is_named)).then_some("configured-key")
    }

    pub(super) fn allows(&self, secret: &[u8]) -> bool {
        self.exact.iter().any(|value| value == secret)
            || self.matching.iter().any(|regex| regex.is_match(secret))
    }
}

fn pattern(own: &OwnPattern) -> Result<Pattern, SettingsError> {
    let name = own.name.clone();
    if !Mark::is_kind(&name) {
        return Err(SettingsError::Name { name });
    }
    let regex = compile(&name, &own.regex)?;
    if regex.is_match(b"") {
        return Err(SettingsError::Empty { name });
    }
    Ok(Pattern { name, regex, keywords: own.keywords.clone() })
}

fn compile(name: &str, regex: &str) -> Result<Regex, SettingsError> {
    RegexBuilder::new(regex)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| SettingsError::Regex { name: name.to_owned(), error: Box::new(error) })
}

fn key_name(pattern: &str) -> Result<Glob, SettingsError> {
    let glob = Glob::new(pattern);
    if glob.literal().is_empty() {
        return Err(SettingsError::TooWide { pattern: pattern.to_owned() });
    }
    Ok(glob)
}

fn steps(path: &str) -> Result<Vec<Step>, SettingsError> {
    let step = |part: &str| match part {
        "" => Err(SettingsError::Path { path: path.to_owned() }),
        "*" => Ok(Step::Any),
        name => Ok(Step::Named(name.as_bytes().to_vec())),
    };
    let steps: Vec<Step> = path.split('.').map(step).collect::<Result<_, _>>()?;
    if steps.iter().all(|step| matches!(step, Step::Any)) {
        return Err(SettingsError::TooWide { pattern: path.to_owned() });
    }
    Ok(steps)
}
