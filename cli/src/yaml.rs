//! Edits of YAML files that people write by hand: comments, order and quoting stay as they are. The crate `yaml-edit`
//! changes the text; the result is then read by another parser, and an edit that changed anything else is refused.

use std::str::FromStr;

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};
use yaml_edit::{Mapping, Sequence, YamlFile, YamlNode};

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum YamlError {
    /// It cannot be parsed.
    #[error("it is not valid YAML: {0}")]
    Invalid(String),
    /// A key holds another type than the list or mapping that belongs there.
    #[error("`{0}` has to be {1}; fix it by hand")]
    WrongType(String, &'static str),
    /// The edit would change something else as well.
    #[error("`{0}` is written in a way that cannot be edited safely; edit it by hand")]
    Unsafe(String),
}

/// One item of a list in a section of the file: `section: list: [.., item, ..]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemPath {
    pub(crate) section: &'static str,
    pub(crate) list: String,
    pub(crate) index: usize,
}

/// One entry of the section `hooks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryPath {
    /// The key that its list is under; none if the section itself is a list.
    pub(crate) event: Option<String>,
    pub(crate) index: usize,
}

/// The content of a YAML file as JSON; `Null` for an empty one.
pub(crate) fn read(text: &str) -> Result<Value, YamlError> {
    let documents = Yaml::load_from_str(text);
    let documents = documents.map_err(|error| YamlError::Invalid(error.to_string()))?;
    match documents.as_slice() {
        [] => Ok(Value::Null),
        [document] => Ok(to_json(document)),
        [..] => Err(YamlError::WrongType("---".to_owned(), "the only document")),
    }
}

/// Adds `item` at the end of `section: list:`, and makes both where they are missing.
pub(crate) fn append(
    text: &str,
    section: &str,
    list: &str,
    item: &Value,
) -> Result<String, YamlError> {
    let place = format!("{section}.{list}");
    let mut expected = read(text)?;
    let root = object(&mut expected, "the file")?;
    let in_section = object(root.entry(section).or_insert(Value::Null), section)?;
    let items = in_section.entry(list).or_insert(Value::Null);
    if items.is_null() {
        *items = json!([]);
    }
    let items = items.as_array_mut();
    items.ok_or_else(|| YamlError::WrongType(place.clone(), "a list"))?.push(item.clone());
    edit(text, &expected, &place, |root| {
        let in_section = match root.get_mapping(section) {
            Some(known) => known,
            None => {
                root.set(section, Mapping::new());
                root.get_mapping(section)?
            }
        };
        let items = match in_section.get_sequence(list) {
            Some(known) => known,
            None => {
                in_section.set(list, Sequence::new());
                in_section.get_sequence(list)?
            }
        };
        match item.as_str() {
            Some(word) => items.push(word),
            // JSON is YAML, and quotes what has to be quoted.
            None => items.push(node(&item.to_string())?),
        }
        Some(())
    })
}

/// Removes these items, and each list and section that has nothing left in it then.
pub(crate) fn remove(text: &str, paths: &[ItemPath]) -> Result<String, YamlError> {
    let Some(first) = paths.first() else { return Ok(text.to_owned()) };
    let mut expected = read(text)?;
    // The last one first, so that the indexes of the others stay valid.
    for path in paths.iter().rev() {
        take_out(&mut expected, path);
    }
    edit(text, &expected, &format!("{}.{}", first.section, first.list), |root| {
        for ItemPath { section, list, index } in paths.iter().rev() {
            let Some(left) = expected.get(section) else {
                root.remove(*section);
                continue;
            };
            let in_section = root.get_mapping(*section)?;
            if left.get(list).is_none() {
                in_section.remove(list.as_str());
            } else if let Some(items) = in_section.get_sequence(list.as_str()) {
                items.remove(*index);
            } // otherwise an alias of a list that loses the same item
        }
        Some(())
    })
}

fn take_out(file: &mut Value, ItemPath { section, list, index }: &ItemPath) {
    let Some(root) = file.as_object_mut() else { return };
    let Some(Value::Object(in_section)) = root.get_mut(*section) else { return };
    let Some(Value::Array(items)) = in_section.get_mut(list) else { return };
    if *index < items.len() {
        items.remove(*index);
    }
    if items.is_empty() {
        in_section.shift_remove(list);
    }
    if in_section.is_empty() {
        root.shift_remove(*section);
    }
}

/// Sets `key` in each of these entries, or removes it if there is no value, and removes the setting `without`.
pub(crate) fn set_in_entries(
    text: &str,
    entries: &[EntryPath],
    (key, value): (&str, Option<&str>),
    without: Option<&str>,
) -> Result<String, YamlError> {
    let mut expected = read(text)?;
    for EntryPath { event, index } in entries {
        let hooks = expected.get_mut("hooks");
        let list = match event {
            Some(event) => hooks.and_then(|hooks| hooks.get_mut(event)),
            None => hooks,
        };
        let entry = list.and_then(|list| list.get_mut(index)).and_then(Value::as_object_mut);
        let entry = entry.ok_or_else(|| YamlError::Unsafe("hooks".to_owned()))?;
        match value {
            Some(value) => drop(entry.insert(key.to_owned(), json!(value))),
            None => drop(entry.shift_remove(key)),
        }
    }
    if let (Some(without), Some(root)) = (without, expected.as_object_mut()) {
        root.shift_remove(without);
    }
    edit(text, &expected, "hooks", |root| {
        for EntryPath { event, index } in entries {
            let list = match event {
                Some(event) => root.get_mapping("hooks")?.get_sequence(event.as_str())?,
                None => root.get_sequence("hooks")?,
            };
            let node = list.get(*index)?;
            match value {
                Some(value) => node.as_mapping()?.set(key, value),
                None => drop(node.as_mapping()?.remove(key)),
            }
        }
        if let Some(without) = without {
            root.remove(without);
        }
        Some(())
    })
}

/// Changes the text of a file, and checks that it means `expected` afterwards. `place` is named if that fails.
fn edit(
    text: &str,
    expected: &Value,
    place: &str,
    change: impl FnOnce(&Mapping) -> Option<()>,
) -> Result<String, YamlError> {
    let refused = || YamlError::Unsafe(place.to_owned());
    let file = YamlFile::from_str(text).map_err(|error| YamlError::Invalid(error.to_string()))?;
    if file.to_string() != text {
        return Err(refused());
    }
    let root = file.ensure_document().as_mapping().ok_or_else(refused)?;
    change(&root).ok_or_else(refused)?;
    let edited = file.to_string();
    let found = read(&edited).map_err(|_| refused())?;
    let is_empty = |value: &Value| value.is_null() || *value == json!({});
    let is_as_expected = found == *expected || is_empty(&found) && is_empty(expected);
    if is_as_expected { Ok(edited) } else { Err(refused()) }
}

/// A mapping, which an empty value becomes.
fn object<'a>(value: &'a mut Value, place: &str) -> Result<&'a mut Map<String, Value>, YamlError> {
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut().ok_or_else(|| YamlError::WrongType(place.to_owned(), "a mapping"))
}

fn node(text: &str) -> Option<YamlNode> {
    let document = YamlFile::from_str(text).ok()?.document()?;
    document.as_mapping().map(YamlNode::Mapping)
}

fn to_json(node: &Yaml<'_>) -> Value {
    match node {
        Yaml::Value(Scalar::Boolean(value)) => json!(value),
        Yaml::Value(Scalar::Integer(value)) => json!(value),
        Yaml::Value(Scalar::FloatingPoint(value)) => json!(value.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Representation(text, ..) => json!(text),
        Yaml::Sequence(items) => items.iter().map(to_json).collect(),
        Yaml::Mapping(pairs) => {
            let pair = |(key, value): (&Yaml<'_>, &Yaml<'_>)| (key_text(key), to_json(value));
            Value::Object(pairs.iter().map(pair).collect())
        }
        Yaml::Tagged(_, inner) => to_json(inner),
        Yaml::Value(Scalar::Null) | Yaml::Alias(_) | Yaml::BadValue => Value::Null,
    }
}

fn key_text(key: &Yaml<'_>) -> String {
    match to_json(key) {
        Value::String(text) => text,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(text: &str) -> Result<String, YamlError> {
        append(text, "plugins", "enabled", &json!("hookbus"))
    }

    #[test]
    fn a_list_gets_one_more_item_and_everything_else_stays() {
        for (before, after) in [
            ("", "plugins:\n  enabled:\n    - hookbus\n"),
            ("# mine\nmodel: x", "# mine\nmodel: x\nplugins:\n  enabled:\n    - hookbus\n"),
            (
                "plugins:\n  enabled: # on\n  - a # one\n  - b\n\n# about\nmodel: x\n",
                "plugins:\n  enabled: # on\n  - a # one\n  - b\n  - hookbus\n\n# about\nmodel: x\n",
            ),
            (
                "plugins:\n    disabled: [z]\n",
                "plugins:\n    disabled: [z]\n    enabled:\n      - hookbus\n",
            ),
            ("plugins:\n  enabled:\n", "plugins:\n  enabled:\n    - hookbus\n"),
            ("plugins:\n  enabled: [] # none\n", "plugins:\n  enabled: [hookbus] # none\n"),
            ("plugins:\n", "plugins:\n  enabled:\n    - hookbus\n"),
            (r#"{"plugins": {"enabled": ["a"]}}"#, r#"{"plugins": {"enabled": ["a", "hookbus"]}}"#),
            ("plugins: {}\n", "plugins: {enabled: [hookbus]}\n"),
        ] {
            assert_eq!(enabled(before).expect("an edit"), after, "{before}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_left_alone() {
        for text in ["plugins: none\n", "plugins:\n  enabled: all\n", "- a\n", "a: [\n", "a\n"] {
            assert!(enabled(text).is_err(), "{text}");
        }
    }

    fn without(text: &str, places: &[(&str, usize)]) -> String {
        let path = |(list, index): &(&str, usize)| ItemPath {
            section: "hooks",
            list: (*list).to_owned(),
            index: *index,
        };
        remove(text, &places.iter().map(path).collect::<Vec<_>>()).expect("an edit")
    }

    #[test]
    fn what_is_removed_leaves_the_rest_as_it_was() {
        let text = "a: 1\nhooks:\n  # before\n  x:\n    - command: one\n      timeout: 5\n    # about two\n    - command: two\n  y:\n  - command: three\n\n# about b\nb: 2\n";
        assert_eq!(
            without(text, &[("x", 0)]),
            text.replace("    - command: one\n      timeout: 5\n", "")
        );
        let without_y = text.replace("  y:\n  - command: three\n", "");
        assert_eq!(without(text, &[("y", 0)]), without_y, "the key goes with its last item");
        let all = [("x", 0), ("x", 1), ("y", 0)];
        assert_eq!(without(text, &all), "a: 1\n\n# about b\nb: 2\n");
    }

    #[test]
    fn a_key_of_an_entry_is_removed_or_set_and_everything_else_stays() {
        let of = |event: &str, index| EntryPath { event: Some(event.to_owned()), index };
        let text = "# mine\nshadow: true # all\nhooks:\n  x:\n    - name: 'a'  # first\n      mode: shadow # for now\n      \
                    rule: {block: no}\n    # about b\n    - {name: b, mode: shadow, rule: {block: \"no\"}}\n    - name: c\n      \
                    rule: {block: no}\n\ntrust: home\n";
        let set = |paths: &[EntryPath], value, without| {
            set_in_entries(text, paths, ("mode", value), without).expect("an edit")
        };
        let removed = set(&[of("x", 0), of("x", 1)], None, None);
        assert!(
            !removed.contains("mode") && removed.contains("# mine\nshadow: true # all\n"),
            "{removed}"
        );
        assert!(
            removed.contains("    # about b\n    - {name: b, rule: {block: \"no\"}}\n"),
            "{removed}"
        );
        assert!(removed.contains("- name: 'a'  # first\n"), "{removed}");
        let decided = set(&[of("x", 0)], Some("decide"), None);
        assert_eq!(decided, text.replacen("mode: shadow", "mode: decide", 1));
        let added = set(&[of("x", 2)], Some("decide"), None);
        assert_eq!(
            added,
            text.replace(
                "    - name: c\n      rule: {block: no}\n",
                "    - name: c\n      rule: {block: no}\n      mode: decide\n"
            )
        );
        let all = set(&[of("x", 0), of("x", 1)], None, Some("shadow"));
        assert!(!all.contains("shadow:") && !all.contains("mode"), "{all}");
        let list = "hooks:\n  - event: x\n    mode: shadow\n    command: a\n";
        let path = EntryPath { event: None, index: 0 };
        assert_eq!(
            set_in_entries(list, &[path], ("mode", None), None).expect("an edit"),
            list.replace("    mode: shadow\n", "")
        );
        assert!(set_in_entries(list, &[of("x", 0)], ("mode", None), None).is_err());
    }

    #[test]
    fn what_is_removed_from_brackets_leaves_no_comma() {
        let text = r#"{"hooks": {"x": [{"command": "one"}, {"command": "two"}], "y": [{"command": "}"}]}, "b": 2}"#;
        for (places, after) in [
            (&[("x", 0)][..], text.replace(r#"{"command": "one"}, "#, "")),
            (&[("x", 1)], text.replace(r#", {"command": "two"}"#, "")),
            (&[("y", 0)], text.replace(r#", "y": [{"command": "}"}]"#, "")),
            (&[("x", 0), ("x", 1), ("y", 0)], r#"{"b": 2}"#.to_owned()),
        ] {
            assert_eq!(without(text, places), after, "{places:?}");
        }
    }
}
