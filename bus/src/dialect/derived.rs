//! Derives the columns of a recorded row again, for `hookbus verify`: from the parts of the row that its hash
//! covers, by the same tables that were used when it was recorded.
//!
//! When the meaning of a known event or tool name changes, the earlier meaning goes into the tables here, so that
//! logs of earlier versions stay sound.

use serde_json::{Map, Value};

use super::decode::{IDS, session_in, text};
use super::dialect_of;
use super::names::{kind_of, tool_class_of};
use crate::event::{Agent, Column, Derived, DerivedFrom, Kind, ToolClass};
use crate::json::{read_fields, read_leniently};

/// What earlier versions took an event for: agent, event name, kind.
const EARLIER_KINDS: &[(&str, &str, Kind)] = &[];

/// What earlier versions took a tool for: agent, tool name, class.
const EARLIER_TOOL_CLASSES: &[(&str, &str, ToolClass)] = &[];

/// The agent of rows about the bus itself, which are named after their kind.
const BUS: &str = "hookbus";

/// The columns that follow from `row`, which is not a decision: a decision has those of its event.
pub fn derive(row: &DerivedFrom<'_>) -> Derived {
    if row.agent == BUS {
        return Derived {
            kinds: vec![row.name.to_owned()],
            session: Column::Known(String::new()),
            turn: Column::Known(None),
            tool: Column::Known(None),
            tool_classes: Column::Known(vec![None]),
        };
    }
    // A name that no agent can have: nothing is known about its payload either.
    let Some(agent) = Agent::named(row.agent) else {
        return Derived { kinds: vec![Kind::Other.as_str().to_owned()], ..Derived::default() };
    };
    let kinds = std::iter::once(kind_of(agent, row.name)).chain(earlier(
        EARLIER_KINDS,
        row.agent,
        row.name,
    ));
    let kinds = kinds.map(|kind| kind.as_str().to_owned()).collect();
    let context = row.context.and_then(|it| read_fields(it.as_bytes(), &["cut", "session"]));
    let context = context.unwrap_or_default();
    if context.contains_key("cut") {
        return Derived { kinds, ..Derived::default() };
    }
    let recorded = context.get("session").and_then(Value::as_str);
    let Some(payload) = row.payload else {
        // It is recorded only if the payload does not name another.
        let session = recorded.map_or(Column::Unknown, |it| Column::Known(it.to_owned()));
        return Derived { kinds, session, ..Derived::default() };
    };
    let fields = match read_fields(payload, &IDS) {
        Some(fields) => fields,
        None => match read_leniently(payload) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => Map::new(),
        },
    };
    let dialect = dialect_of(agent);
    let turn = dialect.turn(&fields);
    let session = session_in(&fields, dialect, turn).or(recorded);
    let tool = text(&fields, "tool_name");
    let classes = tool.map_or_else(
        || vec![None],
        |tool| {
            std::iter::once(tool_class_of(agent, tool))
                .chain(earlier(EARLIER_TOOL_CLASSES, row.agent, tool))
                .map(|class| Some(class.as_str().to_owned()))
                .collect()
        },
    );
    Derived {
        kinds,
        session: session.map_or(Column::Unknown, |session| Column::Known(session.to_owned())),
        turn: Column::Known(turn.map(str::to_owned)),
        tool: Column::Known(tool.map(str::to_owned)),
        tool_classes: Column::Known(classes),
    }
}

fn earlier<T: Copy>(table: &[(&str, &str, T)], agent: &str, name: &str) -> impl Iterator<Item = T> {
    let matches = |(of, known, _): &&(&str, &str, T)| *of == agent && *known == name;
    table.iter().filter(matches).map(|(.., value)| *value).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::caller::Caller;
    use crate::dialect::{Arrival, decode, record_caller, session_to_record};
    use crate::event::{EventId, Time, Wire};

    proptest! {
        /// The columns of any event that is recorded now follow from what its hash covers.
        #[test]
        fn what_is_recorded_is_derived_again(
            name in "[a-z_]{0,8}|pre_tool_call|BeforeTool",
            session in proptest::option::of("[a-z]{0,3}"),
            turn in proptest::option::of("[a-z:]{0,5}"),
            tool in proptest::option::of("terminal|mcp__x|[a-z]{0,4}"),
            hint in proptest::option::of("[a-z]{1,3}"),
            rest in "[ -~]{0,20}",
        ) {
            let mut payload = serde_json::json!({"hook_event_name": name, "rest": rest});
            if let Some(session) = session { payload["session_id"] = session.into(); }
            if let Some(turn) = turn {
                payload["prompt_id"] = turn.clone().into();
                payload["turn_id"] = turn.clone().into();
                payload["extra"] = serde_json::json!({"turn_id": turn});
            }
            if let Some(tool) = tool { payload["tool_name"] = tool.into(); }
            for agent in Agent::ALL {
                let at = Time::from_micros(1_700_000_000_000_000);
                let (id, raw) = (EventId::mint(at), payload.to_string().into_bytes());
                let session_hint = hint.clone();
                let event = decode(Arrival { id, at, agent, wire: Wire::Shell, raw: raw.into(), session_hint });
                let context =
                    record_caller(&Caller::default(), None, session_to_record(&event), None);
                let from = |payload| DerivedFrom {
                    agent: agent.as_str(),
                    name: &event.name,
                    context: Some(&context),
                    payload,
                };
                // Without the payload less is known, and nothing else.
                let without = derive(&from(None));
                prop_assert_eq!(&without.kinds, &[event.kind.as_str()]);
                prop_assert!(without.session.allows(|session| *session == event.session));
                let unknown = (Column::Unknown, Column::Unknown, Column::Unknown);
                prop_assert_eq!((without.turn, without.tool, without.tool_classes), unknown);
                let derived = derive(&from(Some(&event.raw)));
                prop_assert_eq!(derived.kinds, [event.kind.as_str()]);
                prop_assert_eq!(derived.session, Column::Known(event.session));
                prop_assert_eq!(derived.turn, Column::Known(event.turn));
                let class = event.tool.as_ref().map(|tool| tool.class.as_str().to_owned());
                prop_assert_eq!(derived.tool, Column::Known(event.tool.map(|tool| tool.name)));
                prop_assert_eq!(derived.tool_classes, Column::Known(vec![class]));
            }
        }
    }

    #[test]
    fn a_row_of_an_earlier_version_may_have_any_session_that_its_payload_does_not_name() {
        let row = |context, payload| {
            derive(&DerivedFrom { agent: "hermes", name: "x", context: Some(context), payload })
        };
        assert_eq!(row("{}", Some(b"{}")).session, Column::Unknown);
        assert_eq!(row("{}", None).session, Column::Unknown);
        assert_eq!(row(r#"{"session":"s"}"#, Some(b"{}")).session, Column::Known("s".to_owned()));
        assert_eq!(row(r#"{"session":"s"}"#, None).session, Column::Known("s".to_owned()));
        let named = row(r#"{"session":"s"}"#, Some(br#"{"session_id":"t"}"#));
        assert_eq!(named.session, Column::Known("t".to_owned()));
    }

    #[test]
    fn a_row_of_the_bus_itself_is_known_as_a_whole_without_its_payload() {
        let row = |payload| {
            derive(&DerivedFrom { agent: "hookbus", name: "hooks.loaded", context: None, payload })
        };
        assert_eq!(row(None), row(Some(b"{}")));
        assert_eq!(row(None).kinds, ["hooks.loaded"]);
    }
}
