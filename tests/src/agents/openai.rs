//! The model in `OpenAI`'s protocol, for Hermes: chat completions, streamed or whole, and the model list.

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::model_server::{Model, unknown};
use super::step::{ModelAnswer, Step};

/// The only model.
pub(super) const MODEL: &str = "scripted-model";

/// Its context length in tokens.
pub(super) const CONTEXT: u64 = 131_072;

const SIDE_ANSWER: &str = "side answer";

pub(super) fn answer(request: Request, model: &mut Model) -> Response {
    match request.path.trim_end_matches('/') {
        "/v1/models" => Response::ok(json!({"object": "list", "data": [
            {"id": MODEL, "object": "model", "owned_by": "tests", "context_length": CONTEXT}
        ]})),
        "/v1/chat/completions" => complete(request.body, model),
        _ => unknown(&request),
    }
}

fn complete(body: Value, model: &mut Model) -> Response {
    let streamed = body["stream"] == true;
    // Requests for titles, summaries and judgements offer no tools; the conversation always does.
    let is_main = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let step = if is_main {
        model.next_step(body)
    } else {
        model.keep_side_request(body);
        Step::text(SIDE_ANSWER)
    };
    match step.answer() {
        Ok(answer) if streamed => stream(&answer, model.turn()),
        Ok(answer) => whole(&answer, model.turn()),
        Err((status, message)) => Response::Json {
            status,
            body: json!({"error": {"message": message, "type": "server_error"}}),
        },
    }
}

fn whole(answer: &ModelAnswer, turn: usize) -> Response {
    let mut message = json!({"role": "assistant", "content": answer.pieces.concat()});
    if !answer.calls.is_empty() {
        message["tool_calls"] = calls(answer, turn).into();
    }
    Response::ok(json!({
        "id": format!("chatcmpl-{turn}"), "object": "chat.completion", "created": 0, "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(answer)}],
        "usage": usage(answer),
    }))
}

fn stream(answer: &ModelAnswer, turn: usize) -> Response {
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{turn}"), "object": "chat.completion.chunk", "created": 0,
            "model": MODEL, "choices": choices,
        })
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    events.extend(answer.pieces.iter().map(|piece| delta(json!({"content": piece}))));
    events.extend(calls(answer, turn).into_iter().map(|call| delta(json!({"tool_calls": [call]}))));
    events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish(answer)}])));
    let mut last = chunk(json!([]));
    last["usage"] = usage(answer);
    events.push(last);
    let done = "[DONE]".to_owned();
    Response::Events(events.iter().map(Value::to_string).chain([done]).collect())
}

fn calls(answer: &ModelAnswer, turn: usize) -> Vec<Value> {
    let call = |(index, (name, args)): (usize, &(String, Value))| {
        json!({
            "index": index, "id": format!("call_{turn}_{index}"), "type": "function",
            "function": {"name": name, "arguments": args.to_string()},
        })
    };
    answer.calls.iter().enumerate().map(call).collect()
}

fn finish(answer: &ModelAnswer) -> &'static str {
    if answer.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(answer: &ModelAnswer) -> Value {
    let prompt = if answer.context_is_nearly_full { CONTEXT - 1000 } else { 100 };
    json!({"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10})
}
