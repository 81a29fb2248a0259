//! What an event is about, as one text. A search says what it looked for and where, a change says how many lines.

use serde_json::{Map, Value};

use crate::event::{ToolClass, gist};

/// Where tools have what they search for, where they search, and in which files.
const PATTERNS: [&str; 4] = ["pattern", "query", "regex", "search_term"];
const PLACES: [&str; 6] =
    ["path", "dir_path", "directory", "target_directory", "file_path", "search_path"];
const FILES: [&str; 5] = ["include", "include_pattern", "glob", "file_glob", "file_pattern"];

/// What an event with this payload is about, as one text: the command, the path, what is searched for, the prompt.
pub fn subject(class: Option<ToolClass>, payload: &Map<String, Value>) -> String {
    let input = payload.get("tool_input").and_then(Value::as_object);
    let specific = match (class, input) {
        (Some(ToolClass::FileSearch), Some(input)) => search(input),
        (Some(ToolClass::WebSearch), Some(input)) => first(input, &PATTERNS).map(quoted),
        (Some(ToolClass::FileWrite), Some(input)) => change(input),
        _ => None,
    };
    specific.unwrap_or_else(|| gist(payload))
}

fn first<'a>(input: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    let text = |key: &&str| input.get(*key)?.as_str().filter(|text| !text.is_empty());
    keys.iter().find_map(text)
}

fn quoted(text: &str) -> String {
    format!("\u{201c}{text}\u{201d}")
}

/// `“TODO” in src (*.rs)`
fn search(input: &Map<String, Value>) -> Option<String> {
    let pattern = first(input, &PATTERNS);
    let files = first(input, &FILES).map_or_else(String::new, |files| format!(" ({files})"));
    match (pattern, first(input, &PLACES)) {
        (Some(pattern), Some(place)) => Some(format!("{} in {place}{files}", quoted(pattern))),
        (Some(pattern), None) => Some(format!("{}{files}", quoted(pattern))),
        (None, Some(place)) => Some(format!("{place}{files}")),
        (None, None) => None,
    }
}

/// `src/lib.rs +12 −3`
fn change(input: &Map<String, Value>) -> Option<String> {
    let path = first(input, &["file_path", "path", "absolute_path", "notebook_path", "filePath"])?;
    let lines = |key: &str| {
        let text = input.get(key)?.as_str()?;
        Some(text.lines().count())
    };
    let removed = lines("old_string").or_else(|| lines("old_str"));
    let added = lines("new_string").or_else(|| lines("new_str")).or_else(|| lines("content"));
    let numbers = match (added, removed) {
        (None, None) => String::new(),
        (added, None | Some(0)) => format!(" +{}", added.unwrap_or(0)),
        (added, Some(removed)) => format!(" +{} \u{2212}{removed}", added.unwrap_or(0)),
    };
    Some(format!("{path}{numbers}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_subject_says_what_is_searched_and_how_much_is_changed() {
        let told = |class, input: Value| {
            let payload = json!({"tool_input": input, "prompt": "p"});
            subject(Some(class), payload.as_object().expect("an object"))
        };
        let search = json!({"pattern": "TODO", "path": "src", "glob": "*.rs"});
        assert_eq!(told(ToolClass::FileSearch, search), "“TODO” in src (*.rs)");
        let edit = json!({"file_path": "a.rs", "old_string": "a\nb", "new_string": "c"});
        assert_eq!(told(ToolClass::FileWrite, edit), "a.rs +1 −2");
        assert_eq!(told(ToolClass::WebSearch, json!({"query": "rust"})), "“rust”");
        assert_eq!(told(ToolClass::Shell, json!({"command": "ls"})), "ls");
    }
}
