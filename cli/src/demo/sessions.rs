//! Two short sessions, with the payloads that Hermes 0.19 and Gemini CLI 0.61 send.

use serde_json::{Value, json};

pub(super) const HERMES_SESSION: &str = "20261116_091500_c0ffee";
pub(super) const GEMINI_SESSION: &str = "7f6c2a1e-0d3b-4c55-9a41-5b0a7d1f9e10";

/// One turn with two tool calls; the sample policy blocks the second one.
pub(super) fn hermes() -> Vec<Value> {
    let list = json!({"command": "ls ~/projects"});
    let delete = json!({"command": "rm -rf ~/projects/old"});
    let prompt = "Tidy up my projects folder.";
    vec![
        hermes_event("on_session_start", None, json!({"model": "demo", "platform": "cli"})),
        hermes_event("pre_llm_call", None, json!({"user_message": prompt, "is_first_turn": true})),
        hermes_event("pre_tool_call", Some(&list), json!({"tool_call_id": "call_1"})),
        hermes_event(
            "post_tool_call",
            Some(&list),
            json!({"tool_call_id": "call_1", "result": "old  site", "duration_ms": 21, "status": "ok"}),
        ),
        hermes_event("pre_tool_call", Some(&delete), json!({"tool_call_id": "call_2"})),
        hermes_event(
            "post_tool_call",
            Some(&delete),
            json!({"tool_call_id": "call_2", "duration_ms": 0, "status": "blocked", "error_type": "plugin_block"}),
        ),
        hermes_event(
            "post_llm_call",
            None,
            json!({"user_message": prompt, "assistant_response": "I did not delete anything. May `old` go?"}),
        ),
        hermes_event("on_session_end", None, json!({"completed": true, "interrupted": false})),
        hermes_event("on_session_finalize", None, json!({"reason": "shutdown"})),
    ]
}

fn hermes_event(name: &str, input: Option<&Value>, mut extra: Value) -> Value {
    extra["turn_id"] = json!(format!("{HERMES_SESSION}:demo:00000001"));
    json!({
        "hook_event_name": name, "tool_name": input.map(|_| "terminal"), "tool_input": input,
        "session_id": HERMES_SESSION, "cwd": "/home/you", "extra": extra,
    })
}

/// One prompt with two tool calls; the sample policy blocks the first one.
pub(super) fn gemini() -> Vec<Value> {
    let prompt = "Why does the deploy fail?";
    let secret = json!({"file_path": "deploy/.env"});
    let script = json!({"file_path": "deploy/run.sh"});
    let found = json!({"llmContent": "#!/bin/sh\ncurl --fail $URL\n", "returnDisplay": ""});
    vec![
        gemini_event("SessionStart", &json!({"source": "startup"})),
        gemini_event("BeforeAgent", &json!({"prompt": prompt})),
        gemini_event("BeforeTool", &json!({"tool_name": "read_file", "tool_input": secret})),
        gemini_event("BeforeTool", &json!({"tool_name": "read_file", "tool_input": script})),
        gemini_event(
            "AfterTool",
            &json!({"tool_name": "read_file", "tool_input": script, "tool_response": found}),
        ),
        gemini_event(
            "AfterAgent",
            &json!({"prompt": prompt, "prompt_response": "URL is not set.", "stop_hook_active": false}),
        ),
        gemini_event("SessionEnd", &json!({"reason": "exit"})),
    ]
}

fn gemini_event(name: &str, fields: &Value) -> Value {
    let mut event = json!({
        "session_id": GEMINI_SESSION, "transcript_path": "/home/you/.gemini/tmp/demo.jsonl",
        "cwd": "/home/you/shop", "hook_event_name": name, "timestamp": "2026-11-16T09:15:00.000Z",
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        event[key] = value.clone();
    }
    event
}
