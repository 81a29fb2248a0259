//! What an event is about, in one text for lists: the answer, the command, the path, the prompt.

use serde_json::{Map, Value};

/// Where the agents put an answer. Some repeat the prompt beside it, so these come first.
const ANSWERS: [&str; 5] = [
    "extra.assistant_response",
    "extra.response_text",
    "extra.final_response",
    "prompt_response",
    "last_assistant_message",
];

/// Where the agents put everything else, the most informative field first.
const SUBJECTS: [&str; 19] = [
    "tool_input.command",
    "tool_input.file_path",
    "tool_input.path",
    "tool_input.absolute_path",
    "tool_input.url",
    "tool_input.query",
    "tool_input.prompt",
    "tool_input.code",
    "tool_input.goal",
    "prompt",
    "extra.user_message",
    "extra.command",
    "message",
    "extra.child_goal",
    "extra.child_summary",
    "source",
    "reason",
    "extra.reason",
    "trigger",
];

/// The text of the first of these fields that exists; else the tool's whole input as JSON.
pub fn gist(payload: &Map<String, Value>) -> String {
    let text = ANSWERS.iter().chain(&SUBJECTS).find_map(|path| match path.split_once('.') {
        Some((object, key)) => payload.get(object)?.get(key)?.as_str(),
        None => payload.get(*path)?.as_str(),
    });
    let whole_input = || payload.get("tool_input").filter(|input| input.is_object());
    text.map_or_else(|| whole_input().map(Value::to_string).unwrap_or_default(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_informative_field_is_the_gist() {
        for (payload, expected) in [
            (json!({"tool_input": {"command": "ls", "cwd": "/"}, "prompt": "p"}), "ls"),
            (json!({"prompt": "p", "prompt_response": "done"}), "done"),
            (json!({"extra": {"user_message": "hello"}}), "hello"),
            (json!({"tool_input": {"n": 1}}), "{\"n\":1}"),
            (json!({}), ""),
        ] {
            let fields = payload.as_object().expect("an object");
            assert_eq!(gist(fields), expected, "{payload}");
        }
    }
}
