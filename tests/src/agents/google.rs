//! The model as Gemini CLI knows it: streamed answers for the conversation, whole ones for its helper
//! calls, and a token count.

use serde_json::{Map, Value, json};

use super::http::{Reply, Request};
use super::model_server::{Model, unknown};
use super::step::{Spoken, Step};

const HELPER_ANSWER: &str = "<state_snapshot>side answer</state_snapshot>";

pub(super) fn answer(request: Request, model: &mut Model) -> Reply {
    match request.path.rsplit(':').next() {
        Some("streamGenerateContent") => stream(with_model(request), model),
        Some("generateContent") => help(with_model(request), model),
        Some("countTokens") => Reply::ok(json!({"totalTokens": 11})),
        Some(_) | None => unknown(&request),
    }
}

/// This protocol names the model in the path; a test looks for it in the body.
fn with_model(request: Request) -> Value {
    let mut body = request.body;
    let name = request.path.rsplit('/').next().and_then(|last| last.split(':').next());
    if body.is_object() {
        body["model"] = name.into();
    }
    body
}

fn stream(body: Value, model: &mut Model) -> Reply {
    // A helper that streams offers no tools; the conversation always does.
    let is_main = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let step = if is_main {
        model.asked(body)
    } else {
        model.asked_aside(body);
        Step::text(HELPER_ANSWER)
    };
    match step.spoken() {
        Ok(spoken) => Reply::Events(chunks(spoken)),
        Err((status, message)) => Reply::Json {
            status,
            body: json!({"error": {"code": status, "message": message, "status": "PLAYED"}}),
        },
    }
}

/// Text comes piece by piece, tool calls all together in one chunk, as the real model sends them.
fn chunks(spoken: Spoken) -> Vec<String> {
    let mut parts: Vec<Value> = spoken.pieces.iter().map(|text| json!([{"text": text}])).collect();
    if !spoken.calls.is_empty() {
        let call = |(name, args)| json!({"functionCall": {"name": name, "args": args}});
        parts.push(spoken.calls.into_iter().map(call).collect());
    }
    let last = parts.len().saturating_sub(1);
    let ending = |index| if index == last { Ending::Stops } else { Ending::GoesOn };
    let chunk = |(index, parts)| candidate(&parts, ending(index)).to_string();
    parts.into_iter().enumerate().map(chunk).collect()
}

/// Helper calls ask for a shape; any value of that shape lets the agent go on.
fn help(body: Value, model: &mut Model) -> Reply {
    let config = &body["generationConfig"];
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
    let text = schema.map_or_else(|| HELPER_ANSWER.to_owned(), |shape| smallest(shape).to_string());
    model.asked_aside(body);
    Reply::ok(candidate(&json!([{"text": text}]), Ending::Stops))
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
enum Ending {
    GoesOn,
    Stops,
}

fn candidate(parts: &Value, ending: Ending) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if ending == Ending::Stops {
        candidate["finishReason"] = json!("STOP");
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110
        },
    })
}
