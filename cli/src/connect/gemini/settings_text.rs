//! Edits of Gemini's `settings.json`, which may hold comments: they, the order and the layout stay as they are. The crate
//! `jsonc-parser` changes the text; the result is read again, and an edit that changed anything else is refused.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Value, json};

/// Gemini strips comments and gives the rest to `JSON.parse`, which accepts nothing more than JSON.
const AS_GEMINI_READS_IT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    /// Gemini cannot read it either.
    #[error("it is not valid JSON: {0}; fix that line, then run this again")]
    Invalid(String),
    /// `JSON.parse` takes the last of two equal keys, an editor may change the first.
    #[error("the key `{0}` is in it twice; remove one of them, then run this again")]
    Twice(String),
    /// A key holds another type than Gemini expects there.
    #[error("`{0}` has to be {1}; fix it by hand, then run this again")]
    WrongType(String, &'static str),
    /// The edit would change something else as well.
    #[error("it is written in a way that cannot be edited safely; edit `hooks` by hand")]
    Unsafe,
}

/// The place of one hook: `hooks.<event>[group].hooks[index]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HookPlace {
    pub(super) event: String,
    pub(super) group: usize,
    pub(super) index: usize,
}

/// The changes to `hooks`.
#[derive(Debug, Default)]
pub(super) struct HookEdit {
    /// Hooks to remove. A group that has no hooks then is removed too.
    pub(super) remove: Vec<HookPlace>,
    /// Groups to add at the end of an event's list.
    pub(super) append: Vec<(String, Value)>,
}

/// The settings in a text; an empty object for an empty text.
pub(super) fn read(text: &str) -> Result<Value, SettingsError> {
    let root = parse(text)?;
    let Some(value) = root.value() else { return Ok(json!({})) };
    let object = value.as_object().ok_or_else(not_an_object)?;
    if let Some(key) = key_in_it_twice(&object) {
        return Err(SettingsError::Twice(key));
    }
    value.to_serde_value().ok_or(SettingsError::Unsafe)
}

/// The text with these changes. Lists of events that end up empty are removed, and so is `hooks`, unless they are in
/// `base`, the settings that belong to the user.
pub(super) fn edit(text: &str, edit: &HookEdit, base: &Value) -> Result<String, SettingsError> {
    let expected = edited(read(text)?, edit, base)?;
    let root = parse(text)?;
    let settings = root.object_value_or_create().ok_or_else(not_an_object)?;
    remove(&settings, edit, base);
    for (event, group) in &edit.append {
        append(&settings, event, group)?;
    }
    let after = root.to_string();
    if read(&after)? == expected { Ok(after) } else { Err(SettingsError::Unsafe) }
}

fn parse(text: &str) -> Result<CstRootNode, SettingsError> {
    if text.starts_with('\u{feff}') {
        let why = "it starts with a byte order mark, which Gemini cannot read".to_owned();
        return Err(SettingsError::Invalid(why));
    }
    let parsed = CstRootNode::parse(text, &AS_GEMINI_READS_IT);
    parsed.map_err(|error| SettingsError::Invalid(error.to_string()))
}

fn not_an_object() -> SettingsError {
    SettingsError::WrongType("the file".to_owned(), "one JSON object")
}

/// A key that an object on the way to the hooks holds twice.
fn key_in_it_twice(settings: &CstObject) -> Option<String> {
    let own = twice(settings);
    own.or_else(|| settings.get("hooks").and_then(|hooks| twice_below(&hooks.value()?)))
}

fn twice(object: &CstObject) -> Option<String> {
    let mut names: Vec<String> =
        object.properties().iter().filter_map(CstObjectProp::decoded_name).collect();
    names.sort();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

fn twice_below(node: &CstNode) -> Option<String> {
    if let Some(object) = node.as_object() {
        let values = object.properties().into_iter().filter_map(|property| property.value());
        return twice(&object).or_else(|| values.into_iter().find_map(|value| twice_below(&value)));
    }
    let elements = node.as_array().map(|array| array.elements()).unwrap_or_default();
    elements.iter().find_map(twice_below)
}

fn remove(settings: &CstObject, edit: &HookEdit, base: &Value) {
    let Some(hooks) = settings.object_value("hooks") else { return };
    let found: Vec<(CstObject, CstArray, CstNode)> =
        edit.remove.iter().filter_map(|place| find(&hooks, place)).collect();
    for (.., hook) in &found {
        hook.clone().remove();
    }
    for (group, left, _) in found {
        if left.elements().is_empty() && group.parent().is_some() {
            group.remove();
        }
    }
    for property in hooks.properties() {
        let name = property.decoded_name().unwrap_or_default();
        let is_empty = property.array_value().is_some_and(|list| list.elements().is_empty());
        let is_touched = edit.remove.iter().any(|place| place.event == name);
        let is_filled_again = edit.append.iter().any(|(event, _)| *event == name);
        if is_empty && is_touched && !is_filled_again && base["hooks"].get(&name).is_none() {
            property.remove();
        }
    }
    let stays = base.get("hooks").is_some() || !edit.append.is_empty() || edit.remove.is_empty();
    if let Some(section) = settings.get("hooks").filter(|_| !stays && hooks.properties().is_empty())
    {
        section.remove();
    }
}

fn find(hooks: &CstObject, place: &HookPlace) -> Option<(CstObject, CstArray, CstNode)> {
    let group = hooks.array_value(&place.event)?.elements().get(place.group)?.as_object()?;
    let list = group.array_value("hooks")?;
    let hook = list.elements().get(place.index)?.clone();
    Some((group, list, hook))
}

fn append(settings: &CstObject, event: &str, group: &Value) -> Result<(), SettingsError> {
    let hooks = settings.object_value_or_create("hooks").ok_or_else(wrong_hooks)?;
    // The crate writes a number as it is given: this keeps a hook on one line.
    let group = CstInputValue::Number(group.to_string());
    match hooks.get(event) {
        Some(property) => {
            let list = property.array_value().ok_or_else(|| wrong_list(event))?;
            drop(list.append(group));
        }
        None => drop(hooks.append(event, CstInputValue::Array(vec![group]))),
    }
    Ok(())
}

/// The same changes to the settings as a value.
fn edited(mut settings: Value, edit: &HookEdit, base: &Value) -> Result<Value, SettingsError> {
    let mut places = edit.remove.clone();
    places.sort();
    for HookPlace { event, group, index } in places.iter().rev() {
        let Some(groups) = settings["hooks"][event].as_array_mut() else { continue };
        let Some(hooks) = groups.get_mut(*group).and_then(|group| group["hooks"].as_array_mut())
        else {
            continue;
        };
        hooks.remove(*index);
        if hooks.is_empty() {
            groups.remove(*group);
        }
    }
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    for HookPlace { event, .. } in &places {
        let is_kept = base["hooks"].get(event).is_some();
        if let Some(hooks) = settings["hooks"].as_object_mut()
            && !is_kept
            && hooks.get(event).is_some_and(is_empty)
        {
            hooks.shift_remove(event);
        }
    }
    for (event, group) in &edit.append {
        let root = settings.as_object_mut().ok_or_else(not_an_object)?;
        let hooks = root.entry("hooks").or_insert(json!({}));
        let hooks = hooks.as_object_mut().ok_or_else(wrong_hooks)?;
        let list = hooks.entry(event.as_str()).or_insert(json!([]));
        list.as_array_mut().ok_or_else(|| wrong_list(event))?.push(group.clone());
    }
    let has_no_hooks = settings["hooks"].as_object().is_some_and(serde_json::Map::is_empty);
    if let Some(root) = settings.as_object_mut().filter(|_| has_no_hooks)
        && !places.is_empty()
        && base.get("hooks").is_none()
    {
        root.shift_remove("hooks");
    }
    Ok(settings)
}

fn wrong_hooks() -> SettingsError {
    SettingsError::WrongType("hooks".to_owned(), "an object")
}

fn wrong_list(event: &str) -> SettingsError {
    SettingsError::WrongType(format!("hooks.{event}"), "a list")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = r#"// my settings
{
  "ui": { "theme": "dark" }, /* the
  only one */
  "hooks": {
    // guards
    "BeforeTool": [
      { "matcher": "write_file", "hooks": [{ "type": "command", "command": "~/guard.sh" } /* mine */] } // first
    ]
  } // end of hooks
}
"#;

    fn place(event: &str, group: usize, index: usize) -> HookPlace {
        HookPlace { event: event.to_owned(), group, index }
    }

    #[test]
    fn groups_are_added_behind_what_is_there_and_removed_without_a_trace() {
        let group = json!({"hooks": [{"command": "x"}]});
        let append = ["BeforeTool", "AfterTool"].map(|event| (event.to_owned(), group.clone()));
        let add = HookEdit { append: append.into(), ..HookEdit::default() };
        let remove = HookEdit { remove: vec![place("AfterTool", 0, 0)], ..HookEdit::default() };
        let with_first = |after: &str, remove: &HookEdit| {
            let first = read(after).expect("settings")["hooks"]["BeforeTool"]
                .as_array()
                .map_or(0, Vec::len);
            let mut places = remove.remove.clone();
            places.push(place("BeforeTool", first - 1, 0));
            HookEdit { remove: places, ..HookEdit::default() }
        };
        for text in [
            SETTINGS,
            "{}",
            "{\n}\n",
            "{\n\t\"a\": 1\n}\n",
            "{\r\n  \"a\": 1\r\n}\r\n",
            r#"{"hooks":{}}"#,
        ] {
            let base = read(text).expect("settings");
            let after = edit(text, &add, &base).expect("an edit");
            assert!(after.contains(&group.to_string()), "{after}");
            for comment in [
                "// my settings",
                "/* the\n  only one */",
                "// guards",
                "/* mine */",
                "// first",
                "// end of hooks",
            ] {
                assert_eq!(after.contains(comment), text.contains(comment), "{comment}: {after}");
            }
            let again = edit(&after, &with_first(&after, &remove), &base).expect("an edit");
            assert_eq!(read(&again).expect("settings"), base, "{after}");
        }
        assert_eq!(
            edit(SETTINGS, &add, &json!({})).expect("an edit"),
            SETTINGS.replace("} // first\n    ]", "}, // first\n      {\"hooks\":[{\"command\":\"x\"}]}\n    ],\n    \"AfterTool\": [{\"hooks\":[{\"command\":\"x\"}]}]")
        );
    }

    #[test]
    fn comments_in_odd_places_stay() {
        for text in [
            "{/*1*/}",
            "/*1*/{//2\n}/*3*/",
            "{/*1*/\"hooks\"/*2*/:/*3*/{/*4*/}/*5*/}//6",
            "{\"hooks\": {\"BeforeTool\": [/*1*/]} //2\n}",
            "{\"hooks\": {\"BeforeTool\": [ //1\n ]\n//2\n}\n//3\n}\n//4",
            "{\"hooks\": {\"BeforeTool\": [{\"hooks\": []}/*1*/]/*2*/, /*3*/\"X\": 1 /*4*/}, \"a\": \"// no comment\" /*5*/}",
            "{\n  \"a\": 1 //1\n  , \"b\": 2 //2\n  //3\n}\n",
        ] {
            let group = json!({"hooks": [{"command": "x"}]});
            let events = ["BeforeTool", "AfterTool"];
            let append = events.map(|event| (event.to_owned(), group.clone())).into();
            let add = HookEdit { append, ..HookEdit::default() };
            let base = read(text).expect("settings");
            let after = edit(text, &add, &base).expect("an edit");
            let comments = |text: &str| {
                let mut found: Vec<String> = Vec::new();
                for number in '1'..='9' {
                    let both = [format!("/*{number}*/"), format!("//{number}")];
                    found.extend(both.into_iter().filter(|comment| text.contains(comment)));
                }
                found
            };
            assert_eq!(comments(&after), comments(text), "{after}");
            let settings = read(&after).expect("settings");
            let last = |event: &str| {
                let groups = settings["hooks"][event].as_array().map_or(0, Vec::len);
                place(event, groups - 1, 0)
            };
            let remove = HookEdit { remove: events.map(last).into(), ..HookEdit::default() };
            let again = edit(&after, &remove, &base).expect("an edit");
            assert_eq!(read(&again).expect("settings"), base, "{after}\n{again}");
        }
    }

    #[test]
    fn a_file_that_gemini_cannot_read_is_refused_with_the_line() {
        for (text, word) in [
            ("{\n  \"a\": 1,\n}", "line 2"),
            ("{\n  'a': 1}", "line 2"),
            ("{\"a\": 1 \"b\": 2}", "line 1"),
            ("{\n\n\"a\": ", "line 3"),
            ("[]", "one JSON object"),
            ("{} {}", "line 1"),
            ("\u{feff}{}", "byte order mark"),
            ("{\"hooks\": {}, \"hoo\\u006bs\": {}}", "`hooks` is in it twice"),
            ("{\"hooks\": {\"A\": [{\"hooks\": [], \"hooks\": []}]}}", "`hooks` is in it twice"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let add = |event: &str| HookEdit {
            append: vec![(event.to_owned(), json!({}))],
            ..HookEdit::default()
        };
        for text in [r#"{"hooks": 1}"#, r#"{"hooks": {"A": {}}}"#] {
            let error = edit(text, &add("A"), &json!({})).expect_err(text).to_string();
            assert!(error.contains("`hooks"), "{error}");
        }
    }
}
