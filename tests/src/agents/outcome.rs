//! A run in a form that can be compared with another run of the same script. Ids, times and temporary paths
//! are masked; the system prompt, which is long, is reduced to a hash.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde_json::{Value, json};

use super::Run;
use super::mask::Mask;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The exit code.
    pub exit: Option<i32>,
    /// The requests to the model, in order.
    pub requests: Vec<ModelRequest>,
    /// The files of the working directory by name, without dot directories.
    pub files: BTreeMap<String, String>,
    /// The answer that the user saw.
    pub answer: String,
    /// Warnings and messages of hooks on stderr, without lines that are printed at every start.
    pub notices: Vec<String>,
}

/// One request to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Everything but the conversation and the declarations of tools: sampling, choice of tools.
    pub settings: Value,
    /// The names of the declared tools.
    pub tools: Vec<String>,
    /// The conversation so far.
    pub conversation: Vec<ConversationPart>,
}

/// One part of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationPart {
    /// The system prompt, as a hash.
    System(u64),
    /// A text.
    Text {
        /// Its role, in the protocol's word.
        role: String,
        /// The text.
        text: String,
    },
    /// The model called a tool.
    Call {
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
    },
    /// The result of a tool, as the model gets it.
    Result {
        /// The tool.
        name: String,
        /// The result.
        content: Value,
    },
}

/// The protocol of a run's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    OpenAi,
    Google,
}

/// How lines begin that Gemini CLI prints at every start, in varying order, or below an error.
const STARTUP_LINES: [&str; 4] =
    ["YOLO mode is enabled.", "Ripgrep is not available.", "[STARTUP] ", "    at "];

pub(super) fn of(run: &Run) -> Outcome {
    let mask = Mask::of(run);
    let read: fn(&Value) -> ModelRequest = match run.protocol {
        Protocol::OpenAi => from_openai,
        Protocol::Google => from_google,
    };
    let notices = run.stderr.lines().filter(|line| !line.trim().is_empty());
    let notices = notices.filter(|line| !STARTUP_LINES.iter().any(|start| line.starts_with(start)));
    Outcome {
        exit: run.exit,
        requests: run.requests.iter().map(|body| read(&mask.value(body))).collect(),
        files: files(&run.work, &mask),
        answer: mask.text(run.stdout.trim()),
        notices: notices.map(|line| mask.text(line)).collect(),
    }
}

fn from_openai(body: &Value) -> ModelRequest {
    let conversation = list(&body["messages"]).iter().flat_map(openai_message).collect();
    let tools = list(&body["tools"]).iter().map(|tool| string(&tool["function"]["name"])).collect();
    ModelRequest { settings: all_but(body, &["messages", "tools"]), tools, conversation }
}

fn openai_message(message: &Value) -> Vec<ConversationPart> {
    let role = string(&message["role"]);
    let content = &message["content"];
    match role.as_str() {
        "system" => vec![ConversationPart::System(digest(content))],
        "tool" => {
            vec![ConversationPart::Result {
                name: string(&message["name"]),
                content: content.clone(),
            }]
        }
        _ => {
            let calls = list(&message["tool_calls"]).iter().map(|call| {
                let arguments = string(&call["function"]["arguments"]);
                let args = serde_json::from_str(&arguments).unwrap_or_else(|_| arguments.into());
                ConversationPart::Call { name: string(&call["function"]["name"]), args }
            });
            text_part(&role, content).into_iter().chain(calls).collect()
        }
    }
}

fn from_google(body: &Value) -> ModelRequest {
    let system =
        body.get("systemInstruction").map(|system| ConversationPart::System(digest(system)));
    let conversation = list(&body["contents"]).iter().flat_map(|content| {
        let role = string(&content["role"]);
        list(&content["parts"]).iter().map(move |part| google_part(&role, part)).collect::<Vec<_>>()
    });
    let declared = list(&body["tools"]).iter().flat_map(|set| list(&set["functionDeclarations"]));
    ModelRequest {
        settings: all_but(body, &["contents", "tools", "systemInstruction"]),
        tools: declared.map(|tool| string(&tool["name"])).collect(),
        conversation: system.into_iter().chain(conversation).collect(),
    }
}

fn google_part(role: &str, part: &Value) -> ConversationPart {
    if let Some(call) = part.get("functionCall") {
        ConversationPart::Call { name: string(&call["name"]), args: call["args"].clone() }
    } else if let Some(result) = part.get("functionResponse") {
        ConversationPart::Result {
            name: string(&result["name"]),
            content: result["response"].clone(),
        }
    } else {
        let text = part["text"].as_str().map_or_else(|| part.to_string(), str::to_owned);
        ConversationPart::Text { role: role.to_owned(), text }
    }
}

fn text_part(role: &str, content: &Value) -> Option<ConversationPart> {
    let text = match content {
        Value::Null => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            content.to_string()
        }
    };
    Some(ConversationPart::Text { role: role.to_owned(), text })
}

fn all_but(body: &Value, excluded: &[&str]) -> Value {
    let fields = body.as_object().into_iter().flatten();
    let kept = fields.filter(|(name, _)| !excluded.contains(&name.as_str()));
    kept.fold(json!({}), |mut rest, (name, value)| {
        rest[name] = value.clone();
        rest
    })
}

fn files(work: &Path, mask: &Mask) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![work.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if !path.is_dir() {
                let content = fs::read(&path).unwrap_or_default();
                let relative = path.strip_prefix(work).unwrap_or(&path).display().to_string();
                found.insert(relative, mask.text(&String::from_utf8_lossy(&content)));
            } else if !name.to_string_lossy().starts_with('.') {
                folders.push(path);
            }
        }
    }
    found
}

fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
