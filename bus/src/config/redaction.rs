//! The `redact:` part of `hookbus.yaml`: which secrets are replaced before an event is recorded, besides those that are
//! always found.

use super::yaml::{Data, Node, Pair};
use crate::redact::{Allowed, FingerprintKey, OwnPattern, RedactionSettings, Redactor};

/// What is replaced before an event is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redaction {
    /// Secrets, with these settings.
    On(RedactionSettings),
    /// Nothing: the log holds what agents send, secrets included.
    Off,
}

impl Default for Redaction {
    fn default() -> Self {
        Self::On(RedactionSettings::default())
    }
}

const WHY: &str = "`redact` is `false`, or has `patterns`, `keys`, `paths`, `off` and `allow`; \
                   write `redact: { keys: [x-internal-*] }`";

/// Reads the setting. An error says what is wrong, by line; the built-in detectors then stay on.
pub(super) fn read(node: &Node, line: usize) -> Result<Redaction, (usize, String)> {
    if node.is_null() {
        return Ok(Redaction::default());
    }
    match node.flag() {
        Some(true) => return Ok(Redaction::default()),
        Some(false) => return Ok(Redaction::Off),
        None => {}
    }
    let pairs = node.pairs().ok_or_else(|| (line, WHY.to_owned()))?;
    let mut settings = RedactionSettings::default();
    for pair in pairs {
        let wrong = |why: &str| (pair.line, why.to_owned());
        let texts = || pair.value.texts().ok_or_else(|| wrong("this is a list of texts"));
        match pair.key.as_str() {
            "keys" => settings.key_names = texts()?,
            "paths" => settings.json_paths = texts()?,
            "off" => settings.off = texts()?,
            "patterns" => {
                let items = items(&pair.value).ok_or_else(|| wrong("`patterns` is a list"))?;
                settings.patterns = items.iter().map(pattern).collect::<Result<_, _>>()?;
            }
            "allow" => {
                let items = items(&pair.value).ok_or_else(|| wrong("`allow` is a list"))?;
                settings.allowed = items.iter().map(allowed).collect::<Result<_, _>>()?;
            }
            _ => return Err(wrong(WHY)),
        }
    }
    // Only to check it; the key does not matter.
    match Redactor::new(FingerprintKey::new([0; 32]), &settings) {
        Ok(_) => Ok(Redaction::On(settings)),
        Err(why) => Err((line, why.to_string())),
    }
}

fn items(node: &Node) -> Option<&[Node]> {
    match &node.data {
        Data::List(items) => Some(items),
        Data::Scalar(_) | Data::Map(_) => None,
    }
}

fn pattern(node: &Node) -> Result<OwnPattern, (usize, String)> {
    let why = "a pattern has a name and a regex; write `{ name: internal-token, regex: 'itk_[a-z0-9]{32}' }`";
    let wrong = || (node.line, why.to_owned());
    let pairs = node.pairs().ok_or_else(wrong)?;
    let find = |key: &str| pairs.iter().find(|pair: &&Pair| pair.key == key);
    if pairs.iter().any(|pair| !["name", "regex", "keywords"].contains(&pair.key.as_str())) {
        return Err(wrong());
    }
    Ok(OwnPattern {
        name: find("name").and_then(|pair| pair.value.text()).ok_or_else(wrong)?,
        regex: find("regex").and_then(|pair| pair.value.text()).ok_or_else(wrong)?,
        keywords: match find("keywords") {
            Some(pair) => pair.value.texts().ok_or_else(wrong)?,
            None => Vec::new(),
        },
    })
}

fn allowed(node: &Node) -> Result<Allowed, (usize, String)> {
    if let Some(text) = node.text() {
        return Ok(Allowed::Exact(text));
    }
    let regex = match node.pairs() {
        Some([pair]) if pair.key == "regex" => pair.value.text(),
        Some(_) | None => None,
    };
    let why = "an allowed value is a text, or `{ regex: 'test_.*' }`";
    regex.map(Allowed::Matching).ok_or_else(|| (node.line, why.to_owned()))
}
