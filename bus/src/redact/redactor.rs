//! The map of redaction: one function from raw bytes to redacted bytes.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::fingerprint::FingerprintKey;
use super::json_walk::starts_like_json;
use super::look::{Candidate, Look, Rank};
use super::own::Own;
use super::replace::{FoundSecret, Places, replace};
use super::rules::{Rule, Rules, kinds};
use super::settings::{RedactionSettings, SettingsError};
use super::unescape::Unescaped;

/// Finds and replaces secrets. Building one takes well under a millisecond; it can be shared between threads.
#[derive(Debug)]
pub struct Redactor {
    key: FingerprintKey,
    own: Own,
    rules: Rules,
    off: Vec<String>,
}

/// How often a payload with secrets is searched again. Twice is rare.
const MAX_PASSES: usize = 8;

/// A payload without its secrets.
#[derive(Debug)]
pub struct Redacted<'a> {
    /// The payload; borrowed if there was nothing to replace.
    pub bytes: Cow<'a, [u8]>,
    /// What was replaced: in the order of the payload, then what only the other marks made visible.
    pub found: Vec<FoundSecret>,
}

impl<'a> Redacted<'a> {
    /// A payload in which there is nothing to replace.
    pub const fn unchanged(raw: &'a [u8]) -> Self {
        Self { bytes: Cow::Borrowed(raw), found: Vec::new() }
    }
}

impl Redactor {
    /// Checks the settings, and makes the search ready.
    pub fn new(key: FingerprintKey, settings: &RedactionSettings) -> Result<Self, SettingsError> {
        let own = Own::new(settings)?;
        let rules = Rules::new(&settings.off, &own)?;
        Ok(Self { key, own, rules, off: settings.off.clone() })
    }

    /// The kinds that the built-in detectors find, sorted.
    pub fn kinds() -> Vec<&'static str> {
        let mut kinds: Vec<&str> = kinds().collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Replaces the secrets in a payload: JSON, broken JSON or plain text.
    pub fn redact<'a>(&self, raw: &'a [u8]) -> Redacted<'a> {
        let mut redacted = self.pass(raw);
        // A mark changes what is around the next candidate: where a command ends, where a token may start. So a payload
        // with secrets is searched again until nothing more is found, and redacting the result once more changes nothing.
        let passes = if redacted.found.is_empty() { 0 } else { MAX_PASSES };
        for _ in 0..passes {
            let next = self.pass(&redacted.bytes);
            if next.found.is_empty() {
                break;
            }
            redacted = Redacted {
                bytes: Cow::Owned(next.bytes.into_owned()),
                found: [redacted.found, next.found].concat(),
            };
        }
        redacted
    }

    fn pass<'a>(&self, raw: &'a [u8]) -> Redacted<'a> {
        let view = Unescaped::new(raw);
        let (found, places) = self.search(&view, starts_like_json(raw));
        replace(raw, &view, found, &places, &self.own, &self.key)
    }

    /// Whether the settings name places whose values are secrets.
    pub fn has_places(&self) -> bool {
        self.own.has_places()
    }

    /// Whether keywords alone say where to look: the settings name no places, and have no patterns without keywords.
    pub(super) fn searches_by_keyword_alone(&self) -> bool {
        !self.own.has_places() && self.own.patterns.is_empty()
    }

    /// Whether the search finds nothing in a stretch of a payload.
    pub(super) fn is_clean(&self, raw: &[u8], stretch: Range<usize>) -> bool {
        let view = Unescaped::new(raw.get(stretch).unwrap_or_default());
        let (found, places) = self.search(&view, starts_like_json(raw));
        found.is_empty() && places.unexamined.is_empty()
    }

    /// What looks like a secret.
    fn search(&self, view: &Unescaped<'_>, is_json: bool) -> (Vec<Candidate>, Places) {
        let mut look = Look::new(view, is_json);
        let mut places = Places::default();
        let mut tried = vec![false; self.own.patterns.len()];
        self.rules.search(view.text(), |rule, hit| {
            if matches!(rule, Rule::Mark) {
                places.has_marks = true;
            } else if let Rule::OwnPattern(index) = rule {
                if let Some(tried) = tried.get_mut(index) {
                    *tried = true;
                }
            } else if look.is_exhausted() {
                places.unexamined.push(hit.start);
            } else {
                rule.look_closer(&mut look, hit, &self.own);
            }
        });
        self.match_own_patterns(&mut look, &tried);
        let mut found = std::mem::take(&mut look.found);
        found.retain(|candidate| !self.off.iter().any(|kind| *kind == candidate.kind));
        (found, places)
    }

    /// Replaces the secrets in a text: an error text, a line of a log.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()).bytes {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Replaces the secrets in a JSON value, and says what they were. The value is written as text for this, so that a name
    /// counts for the value beside it.
    pub fn redact_value(&self, value: &mut Value) -> Vec<FoundSecret> {
        let text = value.to_string();
        let redacted = self.redact(text.as_bytes());
        if !redacted.found.is_empty() {
            // Marks keep JSON valid; if that ever failed, nothing of the value may stay.
            *value = serde_json::from_slice(&redacted.bytes).unwrap_or(Value::Null);
        }
        redacted.found
    }

    fn match_own_patterns(&self, look: &mut Look<'_>, tried: &[bool]) {
        for (pattern, hit) in self.own.patterns.iter().zip(tried) {
            if !hit && !pattern.keywords.is_empty() {
                continue;
            }
            for captures in pattern.regex.captures_iter(look.text) {
                let whole = captures.get(0);
                if let Some(secret) = captures.get(1).or(whole) {
                    look.add(secret.range(), pattern.name.clone(), Rank::Own);
                }
            }
        }
    }
}
