//! Events that never happened, with everything in them that an agent would say, so that a hook that works in
//! earnest works on them too.

mod gemini;
mod hermes;

use hookbus::dialect::{Arrival, decode};
use hookbus::event::{Agent, Clock, Event, EventId, Kind, SystemClock, Wire, event_names, kind_of};
use serde_json::{Map, Value, json};

/// The session that it all happens in.
const SESSION: &str = "test-session";

/// What an agent might send.
pub(super) fn payload(agent: Agent, event: &str, tool: Option<&str>) -> Value {
    let tool = tool.or_else(|| about_a_tool(agent, event).then(|| shell_of(agent)));
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
        Agent::Claude | Agent::Codex => json!({"prompt": "hello"}),
    };
    put_in(&mut payload, more);
    payload
}

pub(super) fn event(agent: Agent, wire: Wire, payload: &Value) -> Event {
    let at = SystemClock.now();
    let raw = payload.to_string().into_bytes();
    decode(Arrival { id: EventId::mint(at), at, agent, wire, raw, session_hint: None })
}

/// The fields of a file in place of the made-up ones. For Hermes also in the words of its own `hermes hooks test`,
/// which are those of a plugin's callback.
pub(super) fn replace(agent: Agent, payload: &mut Value, fields: &Map<String, Value>) {
    let is_wire = ["hook_event_name", "extra"].iter().any(|key| fields.contains_key(*key));
    for (key, value) in fields {
        let place = match key.as_str() {
            "args" if !fields.contains_key("tool_input") => Place::Top("tool_input"),
            "parent_session_id" if !fields.contains_key("session_id") => Place::Top("session_id"),
            "extra" => Place::Whole,
            "tool_name" | "tool_input" | "session_id" | "cwd" => Place::Top(key),
            _ if is_wire => Place::Top(key),
            _ => Place::Extra,
        };
        match place {
            _ if agent != Agent::Hermes => payload[key] = value.clone(),
            Place::Top(name) => payload[name] = value.clone(),
            Place::Extra => payload["extra"][key] = value.clone(),
            Place::Whole if value.is_object() => put_in(&mut payload["extra"], value.clone()),
            Place::Whole => payload["extra"] = value.clone(),
        }
    }
}

enum Place<'a> {
    Top(&'a str),
    Extra,
    /// All of `extra`.
    Whole,
}

fn put_in(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn about_a_tool(agent: Agent, event: &str) -> bool {
    let tools = [Kind::ToolBefore, Kind::ToolAfter, Kind::ToolOutput];
    tools.contains(&kind_of(agent, event)) && event != "transform_terminal_output"
}

const fn shell_of(agent: Agent) -> &'static str {
    match agent {
        Agent::Hermes => "terminal",
        Agent::Gemini => "run_shell_command",
        Agent::Claude | Agent::Codex => "Bash",
    }
}

/// The events of an agent that hears whoever listens to `patterns`, as a day goes: a plugin may miss at the end
/// what it was not told at the beginning.
pub(super) fn day(patterns: &[String]) -> Vec<Event> {
    let mut names: Vec<String> = Vec::new();
    for pattern in patterns {
        match pattern.strip_suffix('*') {
            Some(family) => {
                let known = event_names(Agent::Hermes).filter(|name| !name.contains('*'));
                let mut more: Vec<String> =
                    known.filter(|name| name.starts_with(family)).map(str::to_owned).collect();
                if more.is_empty() {
                    more.push(format!("{family}help"));
                }
                names.extend(more);
            }
            None => names.push(pattern.clone()),
        }
    }
    names.sort_by_key(|name| {
        hermes::DAY.iter().position(|known| known == name).unwrap_or(hermes::DAY.len())
    });
    let own = names.iter().map(|name| (Agent::Hermes, name.as_str()));
    let gemini = event_names(Agent::Gemini).map(|name| (Agent::Gemini, name));
    own.chain(gemini).map(|(agent, name)| tried(agent, name)).collect()
}

/// One of them, over the wire that can be told most.
pub(super) fn tried(agent: Agent, name: &str) -> Event {
    event(agent, Wire::Bridge, &payload(agent, name, None))
}
