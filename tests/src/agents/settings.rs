//! Agent configuration as JSON, addressed by dotted names such as `agent.max_turns`.

use serde_json::{Value, json};

/// Sets a value, and creates the objects that contain it.
pub(super) fn set(settings: &mut Value, name: &str, value: Value) {
    *at(settings, name) = value;
}

/// Appends a value to a list.
pub(super) fn append(settings: &mut Value, name: &str, value: Value) {
    let list = at(settings, name);
    match list.as_array_mut() {
        Some(values) => values.push(value),
        None => *list = json!([value]),
    }
}

fn at<'s>(settings: &'s mut Value, name: &str) -> &'s mut Value {
    name.split('.').fold(settings, |value, part| {
        if !value.is_object() {
            *value = json!({});
        }
        &mut value[part]
    })
}
