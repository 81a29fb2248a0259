//! From an agent's bytes to an [`Event`]. The agents agree on most field names; a dialect defines where its
//! agent differs (turn and session).

use serde_json::{Map, Value};

use super::names::{kind_of, tool_class_of};
use super::{Dialect, dialect_of};
use crate::caller::Caller;
use crate::event::{Agent, Body, Event, EventId, Kind, LazyBody, Payload, Time, Tool, Wire};
use crate::json::{PartialJson, read_fields, read_within_budget};

/// The name of an event whose payload does not name one.
const UNREADABLE: &str = "unreadable";

/// Under this key our bridge names the places of an event at which it has left something out.
const LEFT_OUT: &str = "hookbus_incomplete";

/// From this many bytes on, a payload is parsed when a hook first asks for a field.
const LONG: usize = 16 << 10;

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
    pub raw: Payload,
    /// The session that the agent's environment names, for payloads that name none.
    pub session_hint: Option<String>,
}

/// The event in `arrival`. Cannot fail: an unreadable payload is an event too.
pub fn decode(arrival: Arrival) -> Event {
    let Arrival { id, at, agent, wire, raw, session_hint } = arrival;
    let parse = match (agent, wire) {
        (Agent::Hermes, Wire::Bridge) => parse_of_bridge,
        _ => parse,
    };
    // A long payload is only checked here, and searched for its ids.
    let ids = if raw.len() < LONG { None } else { read_fields(&raw, &IDS) };
    let body = ids.map_or_else(|| parse(&raw).into(), |ids| LazyBody::of_object(ids, parse));
    let mut event = Event {
        id,
        at,
        agent,
        wire,
        name: String::new(),
        kind: Kind::Other,
        session: String::new(),
        turn: None,
        tool: None,
        body,
        raw,
    };
    let Columns { name, turn, session, tool } =
        Columns::of(agent, event.ids().unwrap_or(&Map::new()));
    event.kind = kind_of(agent, &name);
    event.session = session.or(session_hint).unwrap_or_default();
    (event.name, event.turn, event.tool) = (name, turn, tool);
    event
}

/// The fields of payloads that say which event, session, turn, task and tool it is, in all dialects.
pub(super) const IDS: [&str; 9] = [
    "extra",
    "hook_event_name",
    "parent_turn_id",
    "prompt_id",
    "session_id",
    "session_key",
    "task_id",
    "tool_name",
    "turn_id",
];

/// What the payload says about the event.
struct Columns {
    name: String,
    turn: Option<String>,
    session: Option<String>,
    tool: Option<Tool>,
}

impl Columns {
    fn of(agent: Agent, fields: &Map<String, Value>) -> Self {
        let dialect = dialect_of(agent);
        let turn = dialect.turn(fields);
        let tool = |name: &str| Tool { name: name.to_owned(), class: tool_class_of(agent, name) };
        Self {
            name: text(fields, "hook_event_name").unwrap_or(UNREADABLE).to_owned(),
            session: session_in(fields, dialect, turn).map(str::to_owned),
            turn: turn.map(str::to_owned),
            tool: text(fields, "tool_name").map(tool),
        }
    }
}

fn parse(raw: &[u8]) -> Body {
    body(raw, |_| Vec::new())
}

fn parse_of_bridge(raw: &[u8]) -> Body {
    body(raw, left_out_by_bridge)
}

/// The payload, parsed; `left_out` names places at which the sender has left something out.
fn body(raw: &[u8], left_out: impl Fn(&Map<String, Value>) -> Vec<String>) -> Body {
    match read_within_budget(raw) {
        Ok(PartialJson { value: Value::Object(mut fields), mut incomplete }) => {
            incomplete.extend(read_input_text(&mut fields));
            incomplete.extend(left_out(&fields));
            if incomplete.is_empty() {
                Body::Read(fields)
            } else {
                Body::Partial { fields, incomplete }
            }
        }
        Ok(_) => Body::Unreadable { why: "the payload is JSON, but not an object".to_owned() },
        Err(why) => Body::Unreadable { why: why.to_string() },
    }
}

/// Puts the object in place of a tool's input that is the JSON text of one, so that rules and plugins look into it.
/// Returns the places at which it is not complete.
fn read_input_text(fields: &mut Map<String, Value>) -> Vec<String> {
    let Some(input) = fields.get_mut("tool_input") else { return Vec::new() };
    let Some(text) = input.as_str().filter(|text| text.trim_start().starts_with('{')) else {
        return Vec::new();
    };
    let Ok(PartialJson { value: object @ Value::Object(_), incomplete }) =
        read_within_budget(text.as_bytes())
    else {
        return Vec::new();
    };
    *input = object;
    let whole = |place: &String| {
        if place.is_empty() { "tool_input".to_owned() } else { format!("tool_input.{place}") }
    };
    incomplete.iter().map(whole).collect()
}

/// The places at which our bridge has left something out. Where it cannot be read which ones, it is the whole
/// payload: a guard must not take a part for all.
fn left_out_by_bridge(fields: &Map<String, Value>) -> Vec<String> {
    let Some(named) = fields.get(LEFT_OUT) else { return Vec::new() };
    let places = named.as_array().filter(|places| !places.is_empty());
    let texts = places.and_then(|places| {
        places.iter().map(|place| place.as_str().map(str::to_owned)).collect::<Option<_>>()
    });
    texts.unwrap_or_else(|| vec![String::new()])
}

/// The session that the agent's environment names.
pub fn session_hint(agent: Agent, caller: &Caller) -> Option<String> {
    let session = caller.var(dialect_of(agent).session_variable()?)?.to_string_lossy().into_owned();
    (!session.is_empty()).then_some(session)
}

/// The session that a payload names, itself or in its turn.
pub(super) fn session_in<'a>(
    fields: &'a Map<String, Value>,
    dialect: &dyn Dialect,
    turn: Option<&'a str>,
) -> Option<&'a str> {
    text(fields, "session_id").or_else(|| dialect.session_in_turn(turn?))
}

/// The session of an event whose payload does not name it, for the event's context: the hash of the row covers
/// the context, so that `verify` can tell whether the session was changed. None if the payload names it.
pub fn session_to_record(event: &Event) -> Option<&str> {
    let in_payload =
        event.ids().and_then(|ids| session_in(ids, dialect_of(event.agent), event.turn.as_deref()));
    in_payload.is_none().then_some(event.session.as_str())
}

/// A string field that is there and not empty.
pub(super) fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::ToolClass;

    fn decoded(agent: Agent, raw: &[u8]) -> Event {
        let at = Time::from_micros(1_700_000_000_000_000);
        let (wire, raw) = (Wire::Shell, raw.to_vec());
        decode(Arrival {
            id: EventId::mint(at),
            at,
            agent,
            wire,
            raw: raw.into(),
            session_hint: None,
        })
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
    fn what_the_bridge_left_out_counts_and_a_field_of_the_same_name_on_another_wire_does_not() {
        let read = |agent, wire, places: &str| {
            let at = Time::from_micros(1_700_000_000_000_000);
            let raw = format!(r#"{{"hook_event_name":"x","hookbus_incomplete":{places}}}"#);
            let (id, raw) = (EventId::mint(at), raw.into_bytes());
            decode(Arrival { id, at, agent, wire, raw: raw.into(), session_hint: None })
        };
        let pad = r#"["tool_input.pad"]"#;
        let event = read(Agent::Hermes, Wire::Bridge, pad);
        assert!(event.is_incomplete_at("tool_input.pad") && event.is_incomplete_at("tool_input"));
        assert!(!event.is_incomplete_at("tool_input.command"));
        for places in [r#"[""]"#, "[]", "null", r#""x""#, r#"["tool_input.pad", 1]"#] {
            let event = read(Agent::Hermes, Wire::Bridge, places);
            assert!(event.is_incomplete_at("tool_input.command"), "{places}");
        }
        assert!(!read(Agent::Hermes, Wire::Shell, pad).is_partial());
        assert!(!read(Agent::Gemini, Wire::Bridge, pad).is_partial());
    }

    #[test]
    fn a_tool_input_that_is_the_text_of_an_object_is_read() {
        let read = |input: &str| {
            let raw = serde_json::json!({"hook_event_name": "BeforeTool", "tool_input": input});
            decoded(Agent::Gemini, raw.to_string().as_bytes())
        };
        let event = read(r#" {"command": "git push --force"}"#);
        assert_eq!(event.tool_input().map(|it| &it["command"]), Some(&"git push --force".into()));
        assert!(!event.is_partial());
        let deep = format!(r#"{{"a": 1, "command": {}{}}}"#, "[".repeat(200), "]".repeat(200));
        let event = read(&deep);
        assert!(event.is_incomplete_at("tool_input.command"));
        assert!(!event.is_incomplete_at("tool_input.a"));
        for text in ["{", "[1]", "ls {}", r#"{"a": "#] {
            assert_eq!(read(text).field("tool_input"), Some(&text.into()), "{text}");
        }
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
                prop_assert_eq!(&*decoded(agent, &bytes).raw, &bytes);
            }
        }
    }
}
