//! The model as Hermes knows it: the chat completions of `OpenAI`, streamed or whole, and the model list.

use serde_json::{Value, json};

use super::http::{Reply, Request};
use super::model_server::{Model, unknown};
use super::step::{Spoken, Step};

/// The one model there is.
pub(super) const MODEL: &str = "played-model";

/// How many tokens it takes.
pub(super) const CONTEXT: u64 = 131_072;

const SIDE_ANSWER: &str = "side answer";

pub(super) fn answer(request: Request, model: &mut Model) -> Reply {
    match request.path.trim_end_matches('/') {
        "/v1/models" => Reply::ok(json!({"object": "list", "data": [
            {"id": MODEL, "object": "model", "owned_by": "tests", "context_length": CONTEXT}
        ]})),
        "/v1/chat/completions" => complete(request.body, model),
        _ => unknown(&request),
    }
}

fn complete(body: Value, model: &mut Model) -> Reply {
    let streamed = body["stream"] == true;
    // Titles, summaries and judges are asked for without tools; the conversation always has some.
    let is_main = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let step = if is_main {
        model.asked(body)
    } else {
        model.asked_aside(body);
        Step::text(SIDE_ANSWER)
    };
    match step.spoken() {
        Ok(spoken) if streamed => stream(&spoken, model.turn()),
        Ok(spoken) => whole(&spoken, model.turn()),
        Err((status, message)) => Reply::Json {
            status,
            body: json!({"error": {"message": message, "type": "server_error"}}),
        },
    }
}

fn whole(spoken: &Spoken, turn: usize) -> Reply {
    let mut message = json!({"role": "assistant", "content": spoken.pieces.concat()});
    if !spoken.calls.is_empty() {
        message["tool_calls"] = calls(spoken, turn).into();
    }
    Reply::ok(json!({
        "id": format!("chatcmpl-{turn}"), "object": "chat.completion", "created": 0, "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(spoken)}],
        "usage": usage(spoken),
    }))
}

fn stream(spoken: &Spoken, turn: usize) -> Reply {
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{turn}"), "object": "chat.completion.chunk", "created": 0,
            "model": MODEL, "choices": choices,
        })
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    events.extend(spoken.pieces.iter().map(|piece| delta(json!({"content": piece}))));
    events.extend(calls(spoken, turn).into_iter().map(|call| delta(json!({"tool_calls": [call]}))));
    events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish(spoken)}])));
    let mut last = chunk(json!([]));
    last["usage"] = usage(spoken);
    events.push(last);
    let done = "[DONE]".to_owned();
    Reply::Events(events.iter().map(Value::to_string).chain([done]).collect())
}

fn calls(spoken: &Spoken, turn: usize) -> Vec<Value> {
    let call = |(index, (name, args)): (usize, &(String, Value))| {
        json!({
            "index": index, "id": format!("call_{turn}_{index}"), "type": "function",
            "function": {"name": name, "arguments": args.to_string()},
        })
    };
    spoken.calls.iter().enumerate().map(call).collect()
}

fn finish(spoken: &Spoken) -> &'static str {
    if spoken.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(spoken: &Spoken) -> Value {
    let prompt = if spoken.is_crowded { CONTEXT - 1000 } else { 100 };
    json!({"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10})
}
