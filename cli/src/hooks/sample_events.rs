//! Sample events for `hookbus hooks test` and `hookbus hooks doctor`, with all fields that the agent would send, so that
//! a hook that works on real events works on them too.

mod gemini;
mod hermes;

use hookbus::dialect::{Arrival, decode, event_names, kind_of};
use hookbus::event::{Agent, Clock, Event, EventId, Kind, SystemClock, Wire};
use serde_json::{Map, Value, json};

/// The session id of all sample events.
const SESSION: &str = "test-session";

/// The payload that an agent might send.
pub(super) fn payload(agent: Agent, event: &str, tool: Option<&str>) -> Value {
    let tool = tool.or_else(|| is_about_a_tool(agent, event).then(|| shell_tool(agent)));
    let cwd = std::env::current_dir().unwrap_or_default();
    let mut payload = json!({
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": tool.map(|_| json!({"command": "echo hello", "path": "test.txt"})),
        "session_id": SESSION,
        "cwd": cwd.to_string_lossy(),
    });
    let more = match agent {
        Agent::Hermes => json!({"extra": hermes::extra(event)}),
        Agent::Gemini => gemini::fields(event),
        Agent::Claude | Agent::Codex | Agent::Other(_) => json!({"prompt": "hello"}),
    };
    merge(&mut payload, more);
    payload
}

/// The event that the bus decodes from a payload.
pub(super) fn event(agent: Agent, wire: Wire, payload: &Value) -> Event {
    let at = SystemClock.now();
    let raw = payload.to_string().into_bytes();
    decode(Arrival { id: EventId::mint(at), at, agent, wire, raw: raw.into(), session_hint: None })
}

/// Replaces fields of the sample payload. For Hermes the fields may also have the names that `hermes hooks test`
/// takes, which are those of a plugin's callback.
pub(super) fn replace_fields(agent: Agent, payload: &mut Value, fields: &Map<String, Value>) {
    let is_payload = ["hook_event_name", "extra"].iter().any(|key| fields.contains_key(*key));
    for (key, value) in fields {
        let target = match key.as_str() {
            "args" if !fields.contains_key("tool_input") => FieldTarget::Top("tool_input"),
            "parent_session_id" if !fields.contains_key("session_id") => {
                FieldTarget::Top("session_id")
            }
            "extra" => FieldTarget::Extra,
            "tool_name" | "tool_input" | "session_id" | "cwd" => FieldTarget::Top(key),
            _ if is_payload => FieldTarget::Top(key),
            _ => FieldTarget::InExtra,
        };
        match target {
            _ if agent != Agent::Hermes => payload[key] = value.clone(),
            FieldTarget::Top(name) => payload[name] = value.clone(),
            FieldTarget::InExtra => payload["extra"][key] = value.clone(),
            FieldTarget::Extra if value.is_object() => merge(&mut payload["extra"], value.clone()),
            FieldTarget::Extra => payload["extra"] = value.clone(),
        }
    }
}

/// Where a field goes in the payload of Hermes.
enum FieldTarget<'a> {
    /// At the top, under this name.
    Top(&'a str),
    /// Into `extra`, under its own name.
    InExtra,
    /// It is `extra` itself.
    Extra,
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn is_about_a_tool(agent: Agent, event: &str) -> bool {
    let tools = [Kind::ToolBefore, Kind::ToolAfter, Kind::ToolOutput];
    tools.contains(&kind_of(agent, event)) && event != "transform_terminal_output"
}

const fn shell_tool(agent: Agent) -> &'static str {
    match agent {
        Agent::Hermes => "terminal",
        Agent::Gemini => "run_shell_command",
        Agent::Claude | Agent::Codex | Agent::Other(_) => "Bash",
    }
}

/// The events that a plugin listening to `patterns` gets, and all of Gemini's, in the order of a real session: a plugin
/// may need the earlier events to handle the later ones.
pub(super) fn for_patterns(patterns: &[String]) -> Vec<Event> {
    let mut names: Vec<String> = Vec::new();
    for pattern in patterns {
        match pattern.strip_suffix('*') {
            Some(prefix) => {
                let known = event_names(Agent::Hermes).filter(|name| !name.contains('*'));
                let mut more: Vec<String> =
                    known.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect();
                if more.is_empty() {
                    more.push(format!("{prefix}help"));
                }
                names.extend(more);
            }
            None => names.push(pattern.clone()),
        }
    }
    names.sort_by_key(|name| {
        hermes::SESSION_ORDER
            .iter()
            .position(|known| known == name)
            .unwrap_or(hermes::SESSION_ORDER.len())
    });
    let hermes = names.iter().map(|name| (Agent::Hermes, name.as_str()));
    let gemini = event_names(Agent::Gemini).map(|name| (Agent::Gemini, name));
    hermes.chain(gemini).map(|(agent, name)| over_bridge(agent, name)).collect()
}

/// One sample event, over the bridge: that takes the most kinds of answers.
pub(super) fn over_bridge(agent: Agent, name: &str) -> Event {
    event(agent, Wire::Bridge, &payload(agent, name, None))
}
