//! From an agent's bytes to an [`Event`]: the fields that the four dialects share, and where each
//! keeps its session and turn.

use serde_json::{Map, Value};

use crate::event::{Agent, Body, Event, EventId, Time, Tool, Wire, kind_of, tool_class_of};
use crate::json::read_leniently;

/// The name given to an event whose payload does not say one.
const NAMELESS: &str = "unreadable";

/// What came in at the front door.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Minted by the client.
    pub id: EventId,
    /// When the client heard it.
    pub at: Time,
    /// Who is speaking.
    pub agent: Agent,
    /// How it came.
    pub wire: Wire,
    /// The payload.
    pub raw: Vec<u8>,
    /// The session that the agent's environment names, for payloads that name none.
    pub session_hint: Option<String>,
}

/// The event in `arrival`. Cannot fail: what stays unreadable is an event all the same.
pub fn decode(arrival: Arrival) -> Event {
    let Arrival { id, at, agent, wire, raw, session_hint } = arrival;
    let body = match read_leniently(&raw) {
        Ok(Value::Object(fields)) => Body::Read(fields),
        Ok(_) => Body::Unreadable { why: "the payload is JSON, but no object".to_owned() },
        Err(why) => Body::Unreadable { why: why.to_string() },
    };
    let nothing = Map::new();
    let fields = match &body {
        Body::Read(fields) => fields,
        Body::Unreadable { .. } => &nothing,
    };
    let name = text(fields, "hook_event_name").unwrap_or(NAMELESS).to_owned();
    let tool = text(fields, "tool_name")
        .map(|name| Tool { name: name.to_owned(), class: tool_class_of(agent, name) });
    let turn = turn(agent, fields).map(str::to_owned);
    let session = text(fields, "session_id")
        .or_else(|| session_in_turn(agent, turn.as_deref()))
        .map(str::to_owned)
        .or(session_hint)
        .unwrap_or_default();
    let kind = kind_of(agent, &name);
    Event { id, at, agent, wire, name, kind, session, turn, tool, body, raw }
}

/// A string field that is there and not empty.
fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn turn(agent: Agent, fields: &Map<String, Value>) -> Option<&str> {
    match agent {
        Agent::Hermes => {
            let extra = fields.get("extra").and_then(Value::as_object)?;
            text(extra, "turn_id").or_else(|| text(extra, "parent_turn_id"))
        }
        Agent::Gemini => None, // it names none
        Agent::Claude => text(fields, "prompt_id"),
        Agent::Codex => text(fields, "turn_id"),
    }
}

/// Hermes' approvals have no session id, but a turn id that begins with it.
fn session_in_turn(agent: Agent, turn: Option<&str>) -> Option<&str> {
    match agent {
        Agent::Hermes => turn?.split(':').next().filter(|session| !session.is_empty()),
        Agent::Gemini | Agent::Claude | Agent::Codex => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{Kind, ToolClass};

    fn heard(agent: Agent, raw: &[u8]) -> Event {
        let at = Time::from_micros(1_700_000_000_000_000);
        let (wire, raw) = (Wire::Shell, raw.to_vec());
        decode(Arrival { id: EventId::mint(at), at, agent, wire, raw, session_hint: None })
    }

    #[test]
    fn a_hermes_tool_call_is_read() {
        let event = heard(
            Agent::Hermes,
            br#"{"hook_event_name":"pre_tool_call","tool_name":"terminal","tool_input":{"command":"ls"},
                 "session_id":"s1","cwd":"/","extra":{"turn_id":"s1:t:1"}}"#,
        );
        assert_eq!((event.kind, event.session.as_str()), (Kind::ToolBefore, "s1"));
        assert_eq!(event.turn.as_deref(), Some("s1:t:1"));
        assert_eq!(event.tool.map(|tool| tool.class), Some(ToolClass::Shell));
    }

    #[test]
    fn an_approval_without_a_session_finds_it_in_its_turn() {
        let event = heard(
            Agent::Hermes,
            br#"{"hook_event_name":"pre_approval_request","session_id":"","extra":{"turn_id":"s9:t:1"}}"#,
        );
        assert_eq!(event.session, "s9");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for agent in Agent::ALL {
                prop_assert_eq!(&heard(agent, &bytes).raw, &bytes);
            }
        }
    }
}
