//! The payload fields of Hermes' events, for plugins and for gateway hooks.

use serde_json::{Value, json};

use super::{SESSION, merge};

const TASK: &str = "test-task";
const TURN: &str = "test-session:test-task:1";

/// All events, in the order of a session in which each of them happens.
pub(super) const SESSION_ORDER: [&str; 27] = [
    "gateway:startup",
    "session:start",
    "on_session_start",
    "pre_gateway_dispatch",
    "agent:start",
    "pre_llm_call",
    "pre_api_request",
    "post_api_request",
    "api_request_error",
    "agent:step",
    "pre_tool_call",
    "pre_approval_request",
    "post_approval_response",
    "transform_terminal_output",
    "post_tool_call",
    "transform_tool_result",
    "subagent_start",
    "subagent_stop",
    "pre_verify",
    "transform_llm_output",
    "post_llm_call",
    "on_session_end",
    "agent:end",
    "on_session_finalize",
    "session:end",
    "on_session_reset",
    "session:reset",
];

/// The fields of an event besides those about tool and session.
pub(super) fn extra(event: &str) -> Value {
    let mut extra = match event {
        "pre_tool_call"
        | "post_tool_call"
        | "transform_tool_result"
        | "transform_terminal_output" => call_fields(event),
        "pre_approval_request" | "post_approval_response" => json!({
            "command": "echo hello", "description": "a test", "pattern_key": "test",
            "pattern_keys": ["test"], "session_key": "default", "surface": "cli",
            "turn_id": TURN, "tool_call_id": "test-call", "choice": "once",
        }),
        "pre_api_request" | "post_api_request" | "api_request_error" => request_fields(event),
        "subagent_start" | "subagent_stop" => json!({
            "parent_turn_id": TURN, "parent_subagent_id": null, "child_session_id": "test-child",
            "child_subagent_id": "test-subagent", "child_role": "leaf", "child_goal": "say hello",
            "child_summary": "hello", "child_status": "completed", "duration_ms": 1,
        }),
        "pre_gateway_dispatch" => json!({
            "event": {
                "text": "hello", "message_type": "text", "message_id": "1", "media_urls": [],
                "media_types": [], "reply_to_message_id": null, "internal": false, "metadata": {},
                "source": {
                    "platform": "telegram", "chat_id": "1", "chat_type": "dm", "chat_name": "test",
                    "user_id": "1", "user_name": "test", "thread_id": null,
                },
            },
            "gateway": {}, "session_store": {},
        }),
        name if name.starts_with("kanban_") || name.starts_with("on_kanban_") => json!({
            "task_id": TASK, "profile_name": "default", "board": "default",
            "assignee": "default", "run_id": 1, "summary": "done", "reason": "a test",
        }),
        name if name.contains(':') => gateway_fields(name),
        name => turn_fields(name),
    };
    merge(&mut extra, json!({"telemetry_schema_version": "hermes.observer.v1"}));
    extra
}

fn call_fields(event: &str) -> Value {
    let call = json!({
        "task_id": TASK, "tool_call_id": "test-call", "turn_id": TURN,
        "api_request_id": "test-session:test-task:1:api:1", "middleware_trace": [],
    });
    let result = json!({
        "result": "{\"output\": \"hello\", \"exit_code\": 0, \"error\": null}", "duration_ms": 1,
        "status": "ok", "error_type": null, "error_message": null,
    });
    match event {
        "pre_tool_call" => call,
        "transform_terminal_output" => json!({
            "command": "echo hello", "output": "hello\n", "returncode": 0, "task_id": "default",
            "env_type": "local",
        }),
        _ => {
            let mut both = call;
            merge(&mut both, result);
            both
        }
    }
}

fn request_fields(event: &str) -> Value {
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0,
        "cache_write_tokens": 0, "reasoning_tokens": 0, "request_count": 1, "prompt_tokens": 1,
        "total_tokens": 2});
    let messages = json!([{"role": "user", "content": "hello"}]);
    let request = json!({"method": "POST", "body": {"model": "test-model", "messages": messages}});
    let mut fields = json!({
        "task_id": TASK, "turn_id": TURN, "api_request_id": "test-session:test-task:1:api:1",
        "platform": "cli", "model": "test-model", "provider": "custom",
        "base_url": "http://127.0.0.1:1/v1", "api_mode": "chat_completions", "api_call_count": 1,
        "started_at": 0.0, "message_count": 1, "middleware_trace": [],
    });
    let more = match event {
        "pre_api_request" => json!({
            "user_message": "hello", "conversation_history": messages, "request_messages": messages,
            "tool_count": 0, "approx_input_tokens": 1, "request_char_count": 5, "max_tokens": 1,
            "request": request,
        }),
        "post_api_request" => json!({
            "api_duration": 0.1, "ended_at": 0.1, "finish_reason": "stop",
            "response_model": "test-model", "usage": usage, "assistant_content_chars": 5,
            "assistant_tool_call_count": 0,
            "assistant_message":
                "NormalizedResponse(content='hello', tool_calls=None, finish_reason='stop')",
            "response": {
                "model": "test-model", "finish_reason": "stop", "usage": usage,
                "assistant_message": {"role": "assistant", "content": "hello", "tool_calls": []},
            },
        }),
        _ => json!({
            "api_duration": 0.1, "ended_at": 0.1, "status_code": 500, "retry_count": 0,
            "max_retries": 3, "retryable": true, "reason": "server_error", "request": request,
            "error": {"type": "InternalServerError", "message": "a test"},
        }),
    };
    merge(&mut fields, more);
    fields
}

fn gateway_fields(event: &str) -> Value {
    let command = event.strip_prefix("command:").unwrap_or("help");
    json!({
        "platform": "telegram", "platforms": ["telegram"], "user_id": "1", "chat_id": "1",
        "thread_id": null, "chat_type": "dm", "session_key": "test", "session_id": SESSION,
        "old_session_id": "before", "in_place": false, "compression_count": 1, "message": "hello",
        "response": "hello", "iteration": 1, "tool_names": ["terminal"],
        "tools": [{"name": "terminal", "result": "hello", "arguments": "{}"}],
        "command": command, "raw_command": command, "args": "", "raw_args": "",
    })
}

fn turn_fields(event: &str) -> Value {
    let mut fields = json!({"model": "test-model", "platform": "cli"});
    let history = json!([{"role": "user", "content": "hello"}]);
    let more = match event {
        "pre_llm_call" => json!({
            "task_id": TASK, "turn_id": TURN, "user_message": "hello",
            "conversation_history": history, "is_first_turn": true, "sender_id": "",
        }),
        "post_llm_call" => json!({
            "task_id": TASK, "turn_id": TURN, "user_message": "hello",
            "assistant_response": "hello", "conversation_history": history,
        }),
        "transform_llm_output" => json!({"response_text": "hello"}),
        "pre_verify" => json!({
            "coding": true, "attempt": 0, "final_response": "done", "changed_paths": ["test.txt"],
        }),
        "on_session_end" => {
            json!({"task_id": TASK, "turn_id": TURN, "completed": true, "interrupted": false})
        }
        "on_session_finalize" => json!({"reason": "shutdown"}),
        "on_session_reset" => json!({
            "reason": "new_session", "old_session_id": "before", "new_session_id": SESSION,
        }),
        _ => json!({}),
    };
    merge(&mut fields, more);
    fields
}
