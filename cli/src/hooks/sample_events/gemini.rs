//! The payload fields of Gemini CLI's events.

use serde_json::{Value, json};

/// The fields of an event besides those about tool and session.
pub(super) fn fields(event: &str) -> Value {
    let request =
        json!({"model": "test-model", "messages": [{"role": "user", "content": "hello"}]});
    let response = json!({"candidates": [{"content": {"role": "model", "parts": ["hello"]}}]});
    match event {
        "BeforeAgent" => json!({"prompt": "hello"}),
        "AfterAgent" => {
            json!({"prompt": "hello", "prompt_response": "hello", "stop_hook_active": false})
        }
        "BeforeModel" | "BeforeToolSelection" => json!({"llm_request": request}),
        "AfterModel" => json!({"llm_request": request, "llm_response": response}),
        "AfterTool" => json!({"tool_response": {"llmContent": "hello", "returnDisplay": "hello"}}),
        "SessionStart" => json!({"source": "startup"}),
        "SessionEnd" => json!({"reason": "exit"}),
        "PreCompress" => json!({"trigger": "manual"}),
        "Notification" => {
            json!({"notification_type": "ToolPermission", "message": "hello", "details": {}})
        }
        _ => json!({}),
    }
}
