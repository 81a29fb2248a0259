//! A run in a form that two runs of the same script can be compared by. Ids, times and scratch paths
//! are masked; the system prompt is kept as a digest, so that a difference shows without its pages.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde_json::{Value, json};

use super::Run;
use super::mask::Mask;

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The exit code.
    pub exit: Option<i32>,
    /// What the model was asked, in order.
    pub requests: Vec<Asked>,
    /// The files of the work directory by name, without the agents' own dot directories.
    pub files: BTreeMap<String, String>,
    /// What the user saw as the answer.
    pub answer: String,
    /// What the user was told besides: warnings, messages of hooks. Start-up chatter is left out.
    pub notices: Vec<String>,
}

/// One request to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Everything but the conversation and the tools' declarations: sampling, choice of tools.
    pub settings: Value,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// The conversation so far.
    pub said: Vec<Said>,
}

/// One part of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The agent's standing instructions, as a digest.
    System(u64),
    /// A text by `role`.
    Text {
        /// Who said it, in the protocol's word.
        role: String,
        /// What was said.
        text: String,
    },
    /// The model called a tool.
    Call {
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
    },
    /// What the model was told a tool returned.
    Result {
        /// The tool.
        name: String,
        /// The result as the agent put it.
        content: Value,
    },
}

/// Which protocol a run's requests are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    OpenAi,
    Google,
}

/// How lines begin that Gemini CLI prints at any start, in an order that varies, or below an error.
const CHATTER: [&str; 4] =
    ["YOLO mode is enabled.", "Ripgrep is not available.", "[STARTUP] ", "    at "];

pub(super) fn of(run: &Run) -> Outcome {
    let mask = Mask::of(run);
    let read: fn(&Value) -> Asked = match run.wire {
        Wire::OpenAi => from_openai,
        Wire::Google => from_google,
    };
    let notices = run.stderr.lines().filter(|line| !line.trim().is_empty());
    let notices = notices.filter(|line| !CHATTER.iter().any(|chatter| line.starts_with(chatter)));
    Outcome {
        exit: run.exit,
        requests: run.requests.iter().map(|body| read(&mask.value(body))).collect(),
        files: files(&run.work, &mask),
        answer: mask.text(run.stdout.trim()),
        notices: notices.map(|line| mask.text(line)).collect(),
    }
}

fn from_openai(body: &Value) -> Asked {
    let said = list(&body["messages"]).iter().flat_map(openai_message).collect();
    let tools = list(&body["tools"]).iter().map(|tool| string(&tool["function"]["name"])).collect();
    Asked { settings: all_but(body, &["messages", "tools"]), tools, said }
}

fn openai_message(message: &Value) -> Vec<Said> {
    let role = string(&message["role"]);
    let content = &message["content"];
    match role.as_str() {
        "system" => vec![Said::System(digest(content))],
        "tool" => {
            vec![Said::Result { name: string(&message["name"]), content: content.clone() }]
        }
        _ => {
            let calls = list(&message["tool_calls"]).iter().map(|call| {
                let arguments = string(&call["function"]["arguments"]);
                let args = serde_json::from_str(&arguments).unwrap_or_else(|_| arguments.into());
                Said::Call { name: string(&call["function"]["name"]), args }
            });
            spoken(&role, content).into_iter().chain(calls).collect()
        }
    }
}

fn from_google(body: &Value) -> Asked {
    let system = body.get("systemInstruction").map(|system| Said::System(digest(system)));
    let said = list(&body["contents"]).iter().flat_map(|content| {
        let role = string(&content["role"]);
        list(&content["parts"]).iter().map(move |part| google_part(&role, part)).collect::<Vec<_>>()
    });
    let declared = list(&body["tools"]).iter().flat_map(|set| list(&set["functionDeclarations"]));
    Asked {
        settings: all_but(body, &["contents", "tools", "systemInstruction"]),
        tools: declared.map(|tool| string(&tool["name"])).collect(),
        said: system.into_iter().chain(said).collect(),
    }
}

fn google_part(role: &str, part: &Value) -> Said {
    if let Some(call) = part.get("functionCall") {
        Said::Call { name: string(&call["name"]), args: call["args"].clone() }
    } else if let Some(result) = part.get("functionResponse") {
        Said::Result { name: string(&result["name"]), content: result["response"].clone() }
    } else {
        let text = part["text"].as_str().map_or_else(|| part.to_string(), str::to_owned);
        Said::Text { role: role.to_owned(), text }
    }
}

fn spoken(role: &str, content: &Value) -> Option<Said> {
    let text = match content {
        Value::Null => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            content.to_string()
        }
    };
    Some(Said::Text { role: role.to_owned(), text })
}

fn all_but(body: &Value, left_out: &[&str]) -> Value {
    let fields = body.as_object().into_iter().flatten();
    let kept = fields.filter(|(name, _)| !left_out.contains(&name.as_str()));
    kept.fold(json!({}), |mut kept, (name, value)| {
        kept[name] = value.clone();
        kept
    })
}

fn files(work: &Path, mask: &Mask) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut places = vec![work.to_path_buf()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if !path.is_dir() {
                let content = fs::read(&path).unwrap_or_default();
                let relative = path.strip_prefix(work).unwrap_or(&path).display().to_string();
                found.insert(relative, mask.text(&String::from_utf8_lossy(&content)));
            } else if !name.to_string_lossy().starts_with('.') {
                places.push(path);
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
