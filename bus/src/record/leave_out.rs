//! Leaves out what is not to be recorded. What names the event stays: the derived columns of a row follow from its payload,
//! and `hookbus verify` computes them again.

use serde_json::{Map, Value};

use super::choice::{FieldPath, RecordChoice};
use super::mark::Omitted;
use crate::json::read_leniently;
use crate::redact::FingerprintKey;

/// Fields that stay in an outline: names, ids and places, which tell what happened where.
const KEPT: [&str; 16] = [
    "hook_event_name",
    "session_id",
    "turn_id",
    "task_id",
    "parent_session_id",
    "child_session_id",
    "tool_name",
    "tool_call_id",
    "tool_use_id",
    "agent_id",
    "cwd",
    "timestamp",
    "model",
    "provider",
    "platform",
    "status",
];

/// A name of a field that is longer than this is content.
const LONGEST_NAME: usize = 64;

/// A kept text that is longer than this is content.
const LONGEST_KEPT: usize = 512;

/// The texts of the row's columns. They stay wherever they are.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Session, turn, tool and event name.
    pub texts: [&'a str; 4],
}

/// The payload without what `choice` leaves out; none if that is nothing.
pub fn leave_out(
    payload: &[u8],
    choice: &RecordChoice,
    columns: Columns<'_>,
    key: &FingerprintKey,
) -> Option<Vec<u8>> {
    let writer = Writer { columns, key };
    let left = match choice {
        RecordChoice::Everything => return None,
        RecordChoice::Without(paths) => {
            // What is not JSON has no fields.
            let mut value = read_leniently(payload).ok()?;
            let mut place = Vec::new();
            if !writer.without(&mut value, paths, &mut place) {
                return None;
            }
            value
        }
        RecordChoice::Outline | RecordChoice::Nothing => match read_leniently(payload) {
            Ok(value) => writer.outline(None, value),
            Err(_) => Value::String(Omitted::mark(&String::from_utf8_lossy(payload), key)),
        },
    };
    Some(left.to_string().into_bytes())
}

struct Writer<'a> {
    columns: Columns<'a>,
    key: &'a FingerprintKey,
}

impl Writer<'_> {
    /// Numbers, flags and the structure stay.
    fn outline(&self, name: Option<&str>, value: Value) -> Value {
        match value {
            Value::String(text) if self.stays(name, &text) => Value::String(text),
            Value::String(text) => Value::String(Omitted::mark(&text, self.key)),
            Value::Array(items) => items.into_iter().map(|item| self.outline(None, item)).collect(),
            Value::Object(fields) => {
                let mut left = Map::new();
                for (field, value) in fields {
                    let value = self.outline(Some(&field), value);
                    let is_name = field.chars().count() <= LONGEST_NAME;
                    let field = if is_name { field } else { Omitted::mark(&field, self.key) };
                    left.insert(field, value);
                }
                Value::Object(left)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn stays(&self, name: Option<&str>, text: &str) -> bool {
        let is_kept = name.is_some_and(|name| KEPT.contains(&name));
        text.is_empty()
            || self.columns.texts.contains(&text)
            || (is_kept && text.chars().count() <= LONGEST_KEPT)
    }

    /// Replaces the values at `paths`. Whether there was any.
    fn without(&self, value: &mut Value, paths: &[FieldPath], place: &mut Vec<String>) -> bool {
        // How often an agent was sent back to work is counted in the log.
        if place.len() == 1 && place.iter().any(|name| name == "stop_hook_active") {
            return false;
        }
        if !place.is_empty() && paths.iter().any(|path| path.leads_to(place)) {
            let name = place.last().map(String::as_str);
            let whole = std::mem::take(value);
            let is_named = self.names_event(&whole);
            *value = match whole {
                // Only the rest of it can go.
                whole if is_named => self.outline(name, whole),
                Value::String(text) => Value::String(Omitted::mark(&text, self.key)),
                other => Value::String(Omitted::mark(&other.to_string(), self.key)),
            };
            return true;
        }
        let mut inside = |name: String, value: &mut Value| {
            place.push(name);
            let found = self.without(value, paths, place);
            place.pop();
            found
        };
        match value {
            Value::Object(fields) => fields
                .iter_mut()
                .fold(false, |found, (name, value)| inside(name.clone(), value) || found),
            Value::Array(items) => items
                .iter_mut()
                .enumerate()
                .fold(false, |found, (index, value)| inside(index.to_string(), value) || found),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    /// Whether a column of the row may follow from something in it.
    fn names_event(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => !text.is_empty() && self.columns.texts.contains(&text.as_str()),
            Value::Array(items) => items.iter().any(|item| self.names_event(item)),
            Value::Object(fields) => fields.values().any(|value| self.names_event(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn left(payload: &Value, choice: &RecordChoice) -> Option<Value> {
        let columns = Columns { texts: ["s1", "t1", "terminal", "pre_tool_call"] };
        let key = FingerprintKey::new([7; 32]);
        let left = leave_out(payload.to_string().as_bytes(), choice, columns, &key)?;
        Some(serde_json::from_slice(&left).expect("JSON"))
    }

    #[test]
    fn an_outline_keeps_the_structure_the_names_and_the_numbers() {
        let payload = json!({"hook_event_name": "pre_tool_call", "session_id": "s1", "tool_name": "terminal",
            "tool_input": {"command": "rm -rf /secret", "timeout": 30, "background": false, "notes": ["a b", ""]},
            "stop_hook_active": true, "cwd": "/w"});
        let outline = left(&payload, &RecordChoice::Outline).expect("an outline");
        for kept in ["hook_event_name", "session_id", "tool_name", "stop_hook_active", "cwd"] {
            assert_eq!(outline[kept], payload[kept], "{kept}");
        }
        let input = &outline["tool_input"];
        assert_eq!((&input["timeout"], &input["background"]), (&json!(30), &json!(false)));
        let command = input["command"].as_str().expect("a mark");
        assert!(command.starts_with("[omitted:14:") && command.len() == 25, "{command}");
        assert_eq!(input["notes"][1], "");
        assert!(!outline.to_string().contains("secret"));
    }

    #[test]
    fn fields_are_left_out_by_path_and_what_names_the_event_is_not() {
        let payload = json!({"session_id": "s1", "history": [{"content": "one"}, {"content": "two"}],
            "extra": {"turn_id": "t1", "text": "private"}, "n": {"a": {"x": 1}, "b": {"x": 2}}});
        let paths = |paths: &[&str]| {
            let paths = paths.iter().map(|path| FieldPath::parse(path).expect("a path"));
            RecordChoice::Without(paths.collect())
        };
        let without = left(&payload, &paths(&["history", "session_id", "extra", "n.*.x"]));
        let without = without.expect("something is left out");
        assert!(without["history"].as_str().is_some_and(|mark| mark.starts_with("[omitted:")));
        assert_eq!(without["session_id"], "s1");
        assert_eq!(without["extra"]["turn_id"], "t1");
        assert!(!without.to_string().contains("private"));
        assert!(without["n"]["a"]["x"].is_string() && without["n"]["b"]["x"].is_string());
        assert_eq!(left(&payload, &paths(&["absent"])), None, "nothing was left out");
        assert_eq!(left(&payload, &RecordChoice::Everything), None);
        for wrong in ["", "a..b", "*", "*.*", ".a"] {
            assert_eq!(FieldPath::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        /// Nothing of a text that has no name in an outline is in it.
        #[test]
        fn no_text_is_in_an_outline(text in "[A-Z]{6,20}", name in "[a-z]{1,8}") {
            let payload = json!({(name): {"x": [text.clone(), {"y": text.clone()}]}, "z": text.clone()});
            let outline = left(&payload, &RecordChoice::Outline).expect("an outline");
            prop_assert!(!outline.to_string().contains(&text));
        }

        /// Bytes that are not JSON have an outline too.
        #[test]
        fn any_bytes_have_an_outline(bytes in any::<Vec<u8>>()) {
            let columns = Columns { texts: [""; 4] };
            let key = FingerprintKey::new([7; 32]);
            let outline = leave_out(&bytes, &RecordChoice::Outline, columns, &key);
            prop_assert!(serde_json::from_slice::<Value>(&outline.expect("an outline")).is_ok());
        }
    }
}
