//! From an agent's bytes to an [`Event`]. The agents agree on most field names; a dialect defines where its
//! agent differs (turn and session).

use serde_json::{Map, Value};

use super::dialect_of;
use super::names::{kind_of, tool_class_of};
use crate::caller::Caller;
use crate::event::{Agent, Body, Event, EventId, Time, Tool, Wire};
use crate::json::read_leniently;

/// The name of an event whose payload does not name one.
const UNREADABLE: &str = "unreadable";

/// An event as the client received it.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Minted by the client.
    pub id: EventId,
    /// When the client received it.
    pub at: Time,
    /// The agent it comes from.
    pub agent: Agent,
    /// How it came from the agent.
    pub wire: Wire,
    /// The payload.
    pub raw: Vec<u8>,
    /// The session that the agent's environment names, for payloads that name none.
    pub session_hint: Option<String>,
}

/// The event in `arrival`. Cannot fail: an unreadable payload is an event too.
pub fn decode(arrival: Arrival) -> Event {
    let Arrival { id, at, agent, wire, raw, session_hint } = arrival;
    let body = match read_leniently(&raw) {
        Ok(Value::Object(fields)) => Body::Read(fields),
        Ok(_) => Body::Unreadable { why: "the payload is JSON, but not an object".to_owned() },
        Err(why) => Body::Unreadable { why: why.to_string() },
    };
    let empty = Map::new();
    let fields = match &body {
        Body::Read(fields) => fields,
        Body::Unreadable { .. } => &empty,
    };
    let dialect = dialect_of(agent);
    let name = text(fields, "hook_event_name").unwrap_or(UNREADABLE).to_owned();
    let tool = text(fields, "tool_name")
        .map(|name| Tool { name: name.to_owned(), class: tool_class_of(agent, name) });
    let turn = dialect.turn(fields);
    let session = text(fields, "session_id")
        .or_else(|| dialect.session_in_turn(turn?))
        .map(str::to_owned)
        .or(session_hint)
        .unwrap_or_default();
    let (kind, turn) = (kind_of(agent, &name), turn.map(str::to_owned));
    Event { id, at, agent, wire, name, kind, session, turn, tool, body, raw }
}

/// The session that the agent's environment names.
pub fn session_hint(agent: Agent, caller: &Caller) -> Option<String> {
    let session = caller.var(dialect_of(agent).session_variable()?)?.to_string_lossy().into_owned();
    (!session.is_empty()).then_some(session)
}

/// A string field that is there and not empty.
pub(super) fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{Kind, ToolClass};

    fn decoded(agent: Agent, raw: &[u8]) -> Event {
        let at = Time::from_micros(1_700_000_000_000_000);
        let (wire, raw) = (Wire::Shell, raw.to_vec());
        decode(Arrival { id: EventId::mint(at), at, agent, wire, raw, session_hint: None })
    }

    #[test]
    fn a_hermes_tool_call_is_decoded() {
        let event = decoded(
            Agent::Hermes,
            br#"{"hook_event_name":"pre_tool_call","tool_name":"terminal","tool_input":{"command":"ls"},
                 "session_id":"s1","cwd":"/","extra":{"turn_id":"s1:t:1"}}"#,
        );
        assert_eq!((event.kind, event.session.as_str()), (Kind::ToolBefore, "s1"));
        assert_eq!(event.turn.as_deref(), Some("s1:t:1"));
        assert_eq!(event.tool.map(|tool| tool.class), Some(ToolClass::Shell));
    }

    #[test]
    fn an_approval_without_a_session_gets_it_from_its_turn() {
        let event = decoded(
            Agent::Hermes,
            br#"{"hook_event_name":"pre_approval_request","session_id":"","extra":{"turn_id":"s9:t:1"}}"#,
        );
        assert_eq!(event.session, "s9");
    }

    #[test]
    fn an_agent_without_a_dialect_is_decoded_by_the_shared_fields() {
        let raw = br#"{"hook_event_name":"tool_start","tool_name":"sh","session_id":"s"}"#;
        let event = decoded(Agent::named("opencode").expect("a name"), raw);
        assert_eq!((event.kind, event.session.as_str()), (Kind::Other, "s"));
        assert_eq!(event.tool.map(|tool| tool.class), Some(ToolClass::Other));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for agent in Agent::ALL {
                prop_assert_eq!(&decoded(agent, &bytes).raw, &bytes);
            }
        }
    }
}
