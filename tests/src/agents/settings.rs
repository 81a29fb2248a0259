//! Agent configuration as JSON, addressed by dotted names such as `agent.max_turns`.

use serde_json::{Value, json};

/// Sets one value, making the objects on the way to it.
pub(super) fn set(settings: &mut Value, name: &str, value: Value) {
    *place(settings, name) = value;
}

/// Adds one value to the end of a list.
pub(super) fn append(settings: &mut Value, name: &str, value: Value) {
    let list = place(settings, name);
    match list.as_array_mut() {
        Some(values) => values.push(value),
        None => *list = json!([value]),
    }
}

fn place<'s>(settings: &'s mut Value, name: &str) -> &'s mut Value {
    name.split('.').fold(settings, |place, part| {
        if !place.is_object() {
            *place = json!({});
        }
        &mut place[part]
    })
}
