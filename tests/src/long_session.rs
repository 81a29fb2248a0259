//! A long session of Hermes: each `pre_llm_call`, `pre_api_request` and `post_llm_call` carries the whole history, as the
//! real agent sends it. The shapes are those of `payloads/hermes`; the text is made of words, the same for the same seed.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::payloads;
use crate::words::Words;

const SESSION: &str = "20261116_003429_2e141a";
const TASK: &str = "dc369afc-f11b-4d0a-83fe-84db068a2d78";
/// Hermes cuts strings in the request's body after this many characters.
const LONGEST_IN_BODY: usize = 1024;

/// A session in the making: an iterator over its payloads, as the agent writes them to the hook.
#[derive(Debug)]
pub struct LongSession {
    words: Words,
    turns: usize,
    turn: usize,
    history: History,
    fixed: Fixed,
    ready: std::vec::IntoIter<Vec<u8>>,
    /// Bytes of text that no payload had before: messages, commands, results, answers.
    pub new_text: usize,
}

/// The messages so far, in the three forms in which payloads repeat them, each with its separators.
#[derive(Debug, Default)]
struct History {
    conversation: String,
    request: String,
    body: String,
    count: usize,
}

/// What is the same in each request: the system prompt and the tools.
#[derive(Debug)]
struct Fixed {
    system: String,
    body_system: String,
    tools: String,
    tool_count: usize,
}

impl LongSession {
    /// A session of this many turns, each of about 4.6 KB of new text; every third turn calls a tool.
    pub fn new(turns: usize, seed: u64) -> Self {
        let mut words = Words::new(seed);
        let mut recorded = payloads::one("hermes", "pre_api_request");
        let request = &mut recorded["extra"]["request"]["body"];
        fill_placeholders(&mut request["tools"], &mut words);
        let tools = request["tools"].as_array().map_or(0, Vec::len);
        let system = words.text(6_600);
        let fixed = Fixed {
            body_system: python(&json!({"role": "system", "content": shortened(&system)})),
            system: python(&json!({"role": "system", "content": system})),
            tools: python(&request["tools"]),
            tool_count: tools,
        };
        let history = History::default();
        let ready = Vec::new().into_iter();
        Self { words, turns, turn: 0, history, fixed, ready, new_text: 0 }
    }

    /// The payloads of the next turn.
    fn next_turn(&mut self) -> Vec<Vec<u8>> {
        let turn = format!("{SESSION}:{TASK}:{}", self.words.hex(8));
        let mut payloads = Vec::new();
        if self.turn == 0 {
            payloads.push(event(
                "on_session_start",
                None,
                &json!({"model": "fake-model", "platform": "cli"}),
            ));
        }
        let user = self.text(900);
        payloads.push(self.pre_llm_call(&turn, &user));
        self.history.add(&json!({"role": "user", "content": user}));
        let mut call = 1;
        if self.turn.is_multiple_of(3) {
            payloads.push(self.pre_api_request(&turn, &user, call));
            payloads.extend(self.tool_call(&turn, call));
            call += 1;
        }
        payloads.push(self.pre_api_request(&turn, &user, call));
        let answer = self.text(2_900);
        payloads.push(self.post_api_request(
            &turn,
            call,
            &json!({"role": "assistant", "content": answer, "tool_calls": null}),
        ));
        self.history.add(
            &json!({"role": "assistant", "content": answer, "reasoning": null, "finish_reason": "stop"}),
        );
        let output = json!({"task_id": TASK, "turn_id": turn, "response_text": answer, "model": "fake-model", "platform": "cli"});
        payloads.push(event("transform_llm_output", None, &output));
        payloads.push(self.post_llm_call(&turn, &user, &answer));
        let end = json!({"task_id": TASK, "turn_id": turn, "completed": true, "interrupted": false,
                         "model": "fake-model", "platform": "cli", "telemetry_schema_version": "hermes.observer.v1"});
        payloads.push(event("on_session_end", None, &end));
        payloads
    }

    fn text(&mut self, len: usize) -> String {
        let text = self.words.text(len);
        self.new_text += text.len();
        text
    }

    fn pre_llm_call(&self, turn: &str, user: &str) -> Vec<u8> {
        let last = python(&json!({"role": "user", "content": user}));
        let history = joined(&[&self.history.conversation, &last]);
        let first = if self.turn == 0 { "true" } else { "false" };
        let extra = format!(
            "\"task_id\": \"{TASK}\", \"turn_id\": \"{}\", \"user_message\": {}, \"conversation_history\": [{history}], \
             \"is_first_turn\": {first}, \"model\": \"fake-model\", \"platform\": \"cli\", \"sender_id\": \"\", \
             \"telemetry_schema_version\": \"hermes.observer.v1\"",
            turn,
            python(&json!(user)),
        );
        around("pre_llm_call", &extra)
    }

    fn pre_api_request(&mut self, turn: &str, user: &str, call: usize) -> Vec<u8> {
        let Fixed { system, body_system, tools, tool_count } = &self.fixed;
        let History { conversation, request, body, count } = &self.history;
        let request = joined(&[system, request]);
        let body = joined(&[body_system, body]);
        let chars = request.len();
        let extra = format!(
            "\"task_id\": \"{TASK}\", \"turn_id\": \"{turn}\", \"api_request_id\": \"{turn}:api:{call}\", \"user_message\": {user}, \
             \"conversation_history\": [{conversation}], \"platform\": \"cli\", \"model\": \"fake-model\", \"provider\": \"custom\", \
             \"base_url\": \"http://127.0.0.1:40619/v1\", \"api_mode\": \"chat_completions\", \"api_call_count\": {call}, \
             \"request_messages\": [{request}], \"message_count\": {messages}, \"tool_count\": {tool_count}, \
             \"approx_input_tokens\": {tokens}, \"request_char_count\": {chars}, \"max_tokens\": null, \"started_at\": {time}, \
             \"middleware_trace\": [], \"request\": {{\"method\": \"POST\", \"body\": {{\"model\": \"fake-model\", \
             \"messages\": [{body}], \"tools\": {tools}, \"max_tokens\": 65536}}}}, \
             \"telemetry_schema_version\": \"hermes.observer.v1\"",
            user = python(&json!(user)),
            messages = count + 1,
            tokens = chars / 4,
            time = self.words.time(),
        );
        around("pre_api_request", &extra)
    }

    fn post_api_request(&mut self, turn: &str, call: usize, message: &Value) -> Vec<u8> {
        let mut recorded = payloads::one("hermes", "post_api_request");
        let extra = &mut recorded["extra"];
        let text = message["content"].as_str().unwrap_or_default();
        extra["turn_id"] = json!(turn);
        extra["api_request_id"] = json!(format!("{turn}:api:{call}"));
        extra["api_duration"] = json!(self.words.seconds());
        extra["started_at"] = json!(self.words.time());
        extra["ended_at"] = json!(self.words.time());
        extra["message_count"] = json!(self.history.count + 1);
        extra["response"]["assistant_message"] = message.clone();
        extra["assistant_message"] = json!(format!(
            "NormalizedResponse(content={text:?}, tool_calls=None, finish_reason='stop')"
        ));
        extra["assistant_content_chars"] = json!(text.len());
        python(&recorded).into_bytes()
    }

    fn post_llm_call(&self, turn: &str, user: &str, answer: &str) -> Vec<u8> {
        let extra = format!(
            "\"task_id\": \"{TASK}\", \"turn_id\": \"{}\", \"user_message\": {}, \"assistant_response\": {}, \
             \"conversation_history\": [{}], \"model\": \"fake-model\", \"platform\": \"cli\", \
             \"telemetry_schema_version\": \"hermes.observer.v1\"",
            turn,
            python(&json!(user)),
            python(&json!(answer)),
            self.history.conversation,
        );
        around("post_llm_call", &extra)
    }

    /// The model asks for a tool, the tool runs.
    fn tool_call(&mut self, turn: &str, call: usize) -> Vec<Vec<u8>> {
        let id = format!("call_{}", self.words.hex(24));
        let command = self.text(120);
        let output = self.text(2_300);
        let arguments = python(&json!({"command": command}));
        let result = python(&json!({"output": output, "exit_code": 0, "error": null}));
        let message = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "name": "terminal", "arguments": arguments, "provider_data": null}]});
        let after = self.post_api_request(turn, call, &message);
        let function = json!({"name": "terminal", "arguments": arguments});
        let item = format!("fc_{}", self.words.hex(24));
        self.history.add(
            &json!({"role": "assistant", "content": "", "reasoning": null, "finish_reason": "tool_calls", "tool_calls": [
                {"id": id, "call_id": id, "response_item_id": item, "type": "function", "function": function}]}),
        );
        self.history.add(
            &json!({"role": "tool", "name": "terminal", "tool_name": "terminal", "content": result, "tool_call_id": id}),
        );
        let request = format!("{turn}:api:{call}");
        let extra = json!({"task_id": TASK, "tool_call_id": id, "turn_id": turn, "api_request_id": request,
                           "middleware_trace": [], "telemetry_schema_version": "hermes.observer.v1"});
        let input = json!({"command": command});
        let mut done = json!({"result": result});
        for (key, value) in extra.as_object().into_iter().flatten() {
            done[key] = value.clone();
        }
        done["duration_ms"] = json!(self.words.below(4_000));
        done["status"] = json!("ok");
        vec![
            after,
            event("pre_tool_call", Some(&input), &extra),
            event("post_tool_call", Some(&input), &done),
            event("transform_tool_result", Some(&input), &done),
        ]
    }
}

impl Iterator for LongSession {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(payload) = self.ready.next() {
            return Some(payload);
        }
        if self.turn == self.turns {
            return None;
        }
        self.ready = self.next_turn().into_iter();
        self.turn += 1;
        self.ready.next()
    }
}

impl History {
    fn add(&mut self, message: &Value) {
        let mut stored = message.clone();
        stored["_db_persisted"] = json!(true);
        append(&mut self.conversation, &python(&stored));
        let mut sent = message.clone();
        if let Some(fields) = sent.as_object_mut() {
            for key in ["reasoning", "finish_reason", "tool_name"] {
                fields.shift_remove(key);
            }
            for call in
                fields.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten()
            {
                for key in ["call_id", "response_item_id"] {
                    call.as_object_mut().map(|call| call.shift_remove(key));
                }
            }
        }
        append(&mut self.request, &python(&sent));
        if let Some(text) = sent["content"].as_str() {
            sent["content"] = json!(shortened(text));
        }
        append(&mut self.body, &python(&sent));
        self.count += 1;
    }
}

fn append(list: &mut String, element: &str) {
    if !list.is_empty() {
        list.push_str(", ");
    }
    list.push_str(element);
}

fn joined(lists: &[&String]) -> String {
    let mut all = String::with_capacity(lists.iter().map(|list| list.len() + 2).sum());
    lists.iter().filter(|list| !list.is_empty()).for_each(|list| append(&mut all, list));
    all
}

/// What Hermes makes of a long string in a request's body.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_IN_BODY) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Recorded payloads have placeholders where text was; other text of the same length stands there in a session.
fn fill_placeholders(value: &mut Value, words: &mut Words) {
    match value {
        Value::String(text) if text.contains(" characters of text]") => {
            *text = words.text(text.len());
        }
        Value::Array(list) => list.iter_mut().for_each(|item| fill_placeholders(item, words)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|item| fill_placeholders(item, words));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn event(name: &str, input: Option<&Value>, extra: &Value) -> Vec<u8> {
    let payload = json!({"hook_event_name": name, "tool_name": input.map(|_| "terminal"), "tool_input": input,
                         "session_id": SESSION, "cwd": "/home/dev/project", "extra": extra});
    python(&payload).into_bytes()
}

fn around(name: &str, extra: &str) -> Vec<u8> {
    let mut payload = String::with_capacity(extra.len() + 200);
    let written = write!(
        payload,
        "{{\"hook_event_name\": \"{name}\", \"tool_name\": null, \"tool_input\": null, \"session_id\": \"{SESSION}\", \
         \"cwd\": \"/home/dev/project\", \"extra\": {{{extra}}}}}"
    );
    written.expect("a string takes all that is written to it");
    payload.into_bytes()
}

/// JSON as Python's `json.dumps` writes it, with a space after each comma and colon.
pub fn python(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let elements: Vec<String> = list.iter().map(python).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Object(fields) => {
            let member =
                |(key, value): (&String, &Value)| format!("{}: {}", json!(key), python(value));
            let members: Vec<String> = fields.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
