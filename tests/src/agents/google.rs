//! The model in Google's protocol, for Gemini CLI: streamed answers for the conversation, whole answers for
//! helper calls, and a token count.

use serde_json::{Map, Value, json};

use super::http::{Request, Response};
use super::model_server::{Model, unknown};
use super::step::{ModelAnswer, Step};

const HELPER_ANSWER: &str = "<state_snapshot>side answer</state_snapshot>";

pub(super) fn answer(request: Request, model: &mut Model) -> Response {
    match request.path.rsplit(':').next() {
        Some("streamGenerateContent") => stream(with_model(request), model),
        Some("generateContent") => help(with_model(request), model),
        Some("countTokens") => Response::ok(json!({"totalTokens": 11})),
        Some(_) | None => unknown(&request),
    }
}

/// Copies the model's name from the path to the body, where tests look for it.
fn with_model(request: Request) -> Value {
    let mut body = request.body;
    let name = request.path.rsplit('/').next().and_then(|last| last.split(':').next());
    if body.is_object() {
        body["model"] = name.into();
    }
    body
}

fn stream(body: Value, model: &mut Model) -> Response {
    // A helper call that streams offers no tools; the conversation always does.
    let is_main = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let step = if is_main {
        model.next_step(body)
    } else {
        model.keep_side_request(body);
        Step::text(HELPER_ANSWER)
    };
    match step.answer() {
        Ok(answer) => Response::Events(chunks(answer)),
        Err((status, message)) => Response::Json {
            status,
            body: json!({"error": {"code": status, "message": message, "status": "SCRIPTED"}}),
        },
    }
}

/// One chunk per piece of text, and one for all tool calls, as the real model sends them.
fn chunks(answer: ModelAnswer) -> Vec<String> {
    let mut parts: Vec<Value> = answer.pieces.iter().map(|text| json!([{"text": text}])).collect();
    if !answer.calls.is_empty() {
        let call = |(name, args)| json!({"functionCall": {"name": name, "args": args}});
        parts.push(answer.calls.into_iter().map(call).collect());
    }
    let last = parts.len().saturating_sub(1);
    let position = |index| if index == last { ChunkPosition::Last } else { ChunkPosition::Middle };
    let chunk = |(index, parts)| candidate(&parts, position(index)).to_string();
    parts.into_iter().enumerate().map(chunk).collect()
}

/// A helper call may ask for JSON of a schema; any value that fits lets the agent continue.
fn help(body: Value, model: &mut Model) -> Response {
    let config = &body["generationConfig"];
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
    let text =
        schema.map_or_else(|| HELPER_ANSWER.to_owned(), |schema| smallest(schema).to_string());
    model.keep_side_request(body);
    Response::ok(candidate(&json!([{"text": text}]), ChunkPosition::Last))
}

/// The smallest value that fits a JSON schema.
fn smallest(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    let kind = schema["type"].as_str().unwrap_or("object").to_ascii_lowercase();
    match kind.as_str() {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, of)| (name.clone(), smallest(of))).collect::<Map<_, _>>().into()
        }
        "array" => json!([]),
        "number" | "integer" => json!(0),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!("none"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkPosition {
    Middle,
    Last,
}

fn candidate(parts: &Value, position: ChunkPosition) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if position == ChunkPosition::Last {
        candidate["finishReason"] = json!("STOP");
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110
        },
    })
}
