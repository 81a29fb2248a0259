//! Payloads of the four agents with a text somewhere in them.

use serde_json::{Value, json};

/// How many shapes [`wrap`] knows.
pub const SHAPES: usize = 12;

/// A payload that holds the text: as a command, an output, a message, JSON in a string in a string, or plain text.
pub fn wrap(text: &str, shape: usize) -> Vec<u8> {
    let session = "3c1f0f6e-9d6b-4a53-8c39-2d6a0c1e7b11";
    let payload = match shape % SHAPES {
        0 => {
            json!({"session_id": session, "hook_event_name": "PreToolUse", "cwd": "/home/jo/app", "tool_name": "Bash",
            "tool_input": {"command": text, "description": "Run it"}})
        }
        1 => {
            json!({"session_id": session, "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"file_path": "/x"},
            "tool_response": {"type": "text", "file": {"filePath": "/x", "content": text, "numLines": 3}}})
        }
        2 => {
            json!({"session_id": session, "hook_event_name": "BeforeModel", "llm_request": {"model": "gemini-2.5-pro",
            "messages": [{"role": "user", "content": "Hello"}, {"role": "model", "content": text}]}})
        }
        3 => {
            json!({"hook_event_name": "pre_llm_call", "session_id": session, "extra": {"conversation_history": [
            {"role": "assistant", "tool_calls": [{"id": "call_1", "function": {"name": "terminal",
                "arguments": json!({"command": text}).to_string()}}]}]}})
        }
        4 => json!({"type": "agent-turn-complete", "thread-id": session, "turn-id": "12",
            "input-messages": ["hi"], "last-assistant-message": text}),
        5 => json!({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": text}),
        6 => {
            json!({"hook_event_name": "PostToolUse", "tool_name": "mcp__db__query", "tool_response": [{"type": "text",
            "text": json!({"rows": [{"note": text}]}).to_string()}]})
        }
        7 => {
            json!({"hook_event_name": "pre_tool_call", "tool_name": "write_file", "tool_input": {"path": "a", "content":
            json!({"inner": json!({"text": text}).to_string()}).to_string()}})
        }
        8 => return text.as_bytes().to_vec(),
        9 => {
            return pretty(
                &json!({"hook_event_name": "AfterTool", "tool_response": {"llmContent": format!("Output: {text}\n(end)")}}),
            );
        }
        10 => {
            json!({"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": "/x",
            "old_string": "a = 1", "new_string": text, "replace_all": false}})
        }
        _ => {
            json!({"hook_event_name": "PreToolUse", "tool_name": "shell", "tool_input": {"command":
            ["bash", "-lc", text], "workdir": "/home/jo"}})
        }
    };
    payload.to_string().into_bytes()
}

fn pretty(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("values are JSON")
}
