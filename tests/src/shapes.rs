//! The shapes of JSON as `cli/docs/output.md` documents them, and a comparison with what commands print.
//!
//! A section of the document has tables whose first column is headed `key`, or ``key of `files[]` ``. Each key is in
//! backticks: `` `name` `` is always there, `` `name?` `` not always, `` `name{}` `` holds what other programs wrote. A link
//! to another section in the row says that the value, or each of its elements, is what that section documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;
use serde_json::Value;

/// One documented key.
#[derive(Debug, Clone, Default)]
struct Key {
    is_optional: bool,
    is_foreign: bool,
    /// The section that documents what is in it.
    link: Option<String>,
    inside: BTreeMap<String, Key>,
}

/// All sections of the document, by their anchors.
#[derive(Debug)]
pub struct Shapes {
    sections: BTreeMap<String, Key>,
    /// The keys that were there, as `section key`.
    seen: BTreeSet<String>,
}

impl Shapes {
    /// Reads the document.
    pub fn documented() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/docs/output.md");
        Self::parse(&std::fs::read_to_string(file).expect("cli/docs/output.md"))
    }

    fn parse(text: &str) -> Self {
        let key = Regex::new(r"`([a-z0-9_]+)(\{\})?(\?)?`").expect("a pattern");
        let link = Regex::new(r"\]\(#([^)]+)\)").expect("a pattern");
        let mut sections: BTreeMap<String, Key> = BTreeMap::new();
        let (mut section, mut place): (String, Option<Vec<String>>) = (String::new(), None);
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
                (section, place) = (anchor(title), None);
                continue;
            }
            let cells: Vec<&str> = line.trim_matches('|').splitn(2, '|').map(str::trim).collect();
            let [first, meaning] = cells.as_slice() else {
                place = None;
                continue;
            };
            if *first == "key" {
                place = Some(Vec::new());
            } else if let Some(path) = first.strip_prefix("key of `") {
                let path = path.trim_end_matches('`').replace("[]", "");
                place = Some(path.split('.').map(str::to_owned).collect());
            } else if let Some(place) = &place {
                let mut inside = sections.entry(section.clone()).or_default();
                for name in place {
                    let known = inside.inside.get_mut(name);
                    inside = known.unwrap_or_else(|| panic!("{section}: {name} is not documented"));
                }
                let link = link.captures(meaning).map(|found| found[1].to_owned());
                for found in key.captures_iter(first) {
                    let new = Key {
                        is_foreign: found.get(2).is_some(),
                        is_optional: found.get(3).is_some(),
                        link: link.clone(),
                        inside: BTreeMap::new(),
                    };
                    inside.inside.insert(found[1].to_owned(), new);
                }
            }
        }
        Self { sections, seen: BTreeSet::new() }
    }

    /// Compares a value with what the section `title` says.
    pub fn check(&mut self, title: &str, value: &Value) -> Result<(), String> {
        let section = anchor(title);
        let root = self.sections.get(&section).cloned();
        let root = root.ok_or_else(|| format!("`{title}` is not documented"))?;
        self.compare(&root, &section, "", value).map_err(|wrong| format!("{title}: {wrong}"))
    }

    fn compare(
        &mut self,
        key: &Key,
        section: &str,
        path: &str,
        value: &Value,
    ) -> Result<(), String> {
        match value {
            Value::Array(items) => {
                items.iter().try_for_each(|item| self.compare(key, section, path, item))
            }
            Value::Object(_) if key.is_foreign => Ok(()),
            Value::Object(object) => {
                let linked = key.link.as_ref().filter(|_| key.inside.is_empty());
                if let Some(link) = linked {
                    let root = self.sections.get(link).cloned();
                    let root = root.ok_or_else(|| format!("there is no section #{link}"))?;
                    return self.compare(&root, link, "", value);
                }
                if key.inside.is_empty() {
                    return Err(format!("what is in `{path}` is not documented: {value}"));
                }
                for (name, inner) in object {
                    let Some(known) = key.inside.get(name) else {
                        return Err(format!("`{path}{name}` is not documented"));
                    };
                    self.seen.insert(format!("{section} {path}{name}"));
                    self.compare(known, section, &format!("{path}{name}."), inner)?;
                }
                let is_missing =
                    |(name, key): &(&String, &Key)| !key.is_optional && !object.contains_key(*name);
                match key.inside.iter().find(is_missing) {
                    Some((name, _)) => Err(format!("`{path}{name}` is missing in {value}")),
                    None => Ok(()),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// The documented keys that no value had so far, as `section key`.
    pub fn never_seen(&self) -> Vec<String> {
        fn all(section: &str, path: &str, key: &Key, found: &mut Vec<String>) {
            for (name, inner) in &key.inside {
                found.push(format!("{section} {path}{name}"));
                all(section, &format!("{path}{name}."), inner, found);
            }
        }
        let mut found = Vec::new();
        self.sections.iter().for_each(|(section, key)| all(section, "", key, &mut found));
        found.retain(|key| !self.seen.contains(key));
        found
    }

    /// The titles of the sections about a command, as anchors.
    pub fn sections(&self) -> Vec<&str> {
        self.sections.keys().map(String::as_str).collect()
    }
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase().replace(' ', "-");
    kept.chars().filter(|it| it.is_alphanumeric() || *it == '-' || *it == '_').collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOCUMENT: &str = "## a --json\n\n| key | meaning |\n|---|---|\n| `one`, `two?` | x |\n| `any{}` | y |\n\
        | `rows` | see |\n| `self?` | [the same](#a---json) |\n\n| key of `rows[]` | meaning |\n|---|---|\n| `n` | z |\n";

    #[test]
    fn a_missing_key_and_an_undocumented_one_are_told() {
        let told = |value: Value| Shapes::parse(DOCUMENT).check("a --json", &value);
        let good = json!({"one": 1, "any": {"x": 2}, "rows": [{"n": 1}], "self": null});
        assert_eq!(told(good.clone()), Ok(()));
        let mut changed = good.clone();
        changed["three"] = json!(3);
        assert_eq!(told(changed), Err("a --json: `three` is not documented".to_owned()));
        let mut changed = good.clone();
        changed["rows"][0]["m"] = json!(3);
        assert_eq!(told(changed), Err("a --json: `rows.m` is not documented".to_owned()));
        let inner = json!({"one": 1, "any": null, "rows": [], "self": {"one": 1}});
        assert!(told(inner).expect_err("a key is missing").contains("is missing in"));
        let mut shapes = Shapes::parse(DOCUMENT);
        shapes.check("a --json", &good).expect("as documented");
        assert_eq!(shapes.never_seen(), ["a---json two"]);
    }
}
