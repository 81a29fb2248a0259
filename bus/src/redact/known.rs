//! The secrets of one payload, looked for in other texts about the same event: its columns, its context, a decision about it. A
//! path or a key in the settings can make a secret of a text that does not look like one, and there it stands at another place.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::{Map, Value};

use super::mark::Mark;
use super::replace::FoundSecret;

/// A shorter secret is only found as a whole value: it may be part of any word.
const SHORTEST: usize = 6;
/// What is searched for within texts is bounded. A payload with more than this in secrets is rare.
const MOST_BYTES: usize = 1 << 20;

/// The text of a secret, without escapes. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Arc<str>);

impl SecretText {
    pub(super) fn new(text: &[u8]) -> Self {
        Self(String::from_utf8_lossy(text).into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// Secrets and their marks.
pub struct KnownSecrets {
    marks: HashMap<Arc<str>, String>,
    /// Those that are looked for within texts, and what finds them.
    within: Vec<Arc<str>>,
    search: Option<AhoCorasick>,
}

impl KnownSecrets {
    /// These secrets; none if there are none.
    pub fn of(found: &[FoundSecret]) -> Option<Self> {
        if found.is_empty() {
            return None; // as in most events
        }
        let mut marks = HashMap::new();
        let (mut within, mut bytes) = (Vec::new(), 0);
        for FoundSecret { kind, chars, fingerprint, text, .. } in found {
            let mark = Mark { kind: kind.clone(), chars: *chars, fingerprint: fingerprint.clone() };
            let SecretText(text) = text;
            if marks.insert(Arc::clone(text), mark.to_string()).is_none()
                && text.len() >= SHORTEST
                && bytes + text.len() <= MOST_BYTES
            {
                bytes += text.len();
                within.push(Arc::clone(text));
            }
        }
        // Of the kinds that the crate has, the one that takes the least time to build: it searches one decision.
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::NoncontiguousNFA))
            .build(within.iter().map(|text| text.as_bytes()));
        Some(Self { marks, within, search: search.ok() })
    }

    /// The mark of a text that is a secret as a whole.
    pub fn mark_of(&self, text: &str) -> Option<String> {
        self.marks.get(text).cloned()
    }

    /// The text with marks in the place of secrets; none if it holds none.
    pub fn redact_text(&self, text: &str) -> Option<String> {
        if let Some(mark) = self.mark_of(text) {
            return Some(mark);
        }
        let mut hits = self.search.as_ref()?.find_iter(text.as_bytes()).peekable();
        hits.peek()?;
        let marks = Mark::find_all(text);
        let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
        for hit in hits {
            let is_in_mark =
                marks.iter().any(|(mark, _)| mark.start < hit.end() && hit.start() < mark.end);
            let known = self.within.get(hit.pattern().as_usize());
            let Some(mark) = known.and_then(|text| self.marks.get(text)) else { continue };
            if !is_in_mark {
                out.push_str(text.get(copied..hit.start()).unwrap_or_default());
                out.push_str(mark);
                copied = hit.end();
            }
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        (copied > 0).then_some(out)
    }

    /// Puts marks into a value: into strings, in the place of numbers that are secrets, and into the keys of objects, with the
    /// text beside such a key. Returns whether it changed.
    pub fn redact_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let Some(redacted) = self.redact_text(text) else { return false };
                *text = redacted;
                true
            }
            Value::Number(number) => {
                let text = number.to_string();
                let Some(mark) = self.marks.get(text.as_str()).filter(|_| text.len() >= SHORTEST)
                else {
                    return false;
                };
                *value = Value::String(mark.clone());
                true
            }
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, it| self.redact_value(it) | changed)
            }
            Value::Object(members) => self.redact_members(members),
            Value::Null | Value::Bool(_) => false,
        }
    }

    fn redact_members(&self, members: &mut Map<String, Value>) -> bool {
        let mut changed =
            members.values_mut().fold(false, |changed, it| self.redact_value(it) | changed);
        if members.keys().any(|key| self.redact_text(key).is_some()) {
            changed = true;
            let before = std::mem::take(members);
            for (key, value) in before {
                match self.redact_text(&key) {
                    // What a secret leads to, such as the place that a link points to, would tell of it.
                    Some(mark) if value.is_string() => members.insert(mark.clone(), mark.into()),
                    Some(mark) => members.insert(mark, value),
                    None => members.insert(key, value),
                };
            }
        }
        changed
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.marks.values()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{FingerprintKey, RedactionSettings, Redactor};
    use super::*;

    /// The secrets of a payload with `texts` at places that the settings name.
    fn known(texts: &[&str]) -> KnownSecrets {
        let json_paths = vec!["secrets.*".to_owned()];
        let settings = RedactionSettings { json_paths, ..RedactionSettings::default() };
        let redactor = Redactor::new(FingerprintKey::new([7; 32]), &settings).expect("valid");
        let payload = json!({"secrets": texts}).to_string();
        KnownSecrets::of(&redactor.redact(payload.as_bytes()).found).expect("some secrets")
    }

    #[test]
    fn secrets_are_found_within_texts_keys_and_as_numbers() {
        let known = known(&["the \"north\" gate", "it", "20260101", "redacted"]);
        let mut value = json!({
            "reason": "not the \"north\" gate, please",
            "it": "it",
            "whole": "with it all",
            "number": 20_260_101,
            "other": [20_260_102, true, null, "[redacted:aws-access-key:20:3f9c2ab1d04e]"],
            "the \"north\" gate": "leads here",
        });
        assert!(known.redact_value(&mut value));
        let text = value.to_string();
        assert!(!text.contains("north") && !text.contains("20260101"), "{text}");
        assert!(!text.contains("leads here"), "{text}");
        assert_eq!(value["whole"], "with it all");
        assert_eq!(value["other"][0], 20_260_102);
        assert_eq!(value["other"][3], "[redacted:aws-access-key:20:3f9c2ab1d04e]");
        assert!(value["reason"].as_str().is_some_and(|it| it.ends_with("], please")), "{text}");
        assert!(!known.redact_value(&mut value), "redacting again changes nothing: {value}");
    }

    #[test]
    fn debug_shows_no_secret() {
        let known = known(&["the north gate"]);
        assert!(!format!("{known:?}").contains("north"));
    }

    #[test]
    fn no_secrets_are_nothing_to_look_for() {
        assert!(KnownSecrets::of(&[]).is_none());
    }
}
