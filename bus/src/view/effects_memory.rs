//! What tool calls do, for calls that repeat. Agents run the same few commands again and again, and reading a shell line
//! takes longer than everything else that a projection does with a row.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use super::effects::Effects;
use super::event_view::EventView;
use crate::rule::{LARGEST_CALL, hash_fields};

/// Then it starts anew, so that it stays small.
const MOST_CALLS: usize = 20_000;

/// What the calls do that were met before.
#[derive(Debug, Default)]
pub struct EffectsMemory {
    /// Its secret is new in each process: a payload cannot be made to look like another one.
    keys: RandomState,
    known: HashMap<u64, Arc<Effects>>,
}

impl EffectsMemory {
    /// The same as [`EventView::effects`].
    pub fn effects(&mut self, event: &EventView<'_>) -> Arc<Effects> {
        // A large payload is unlikely to come again.
        if event.row.payload.len() > LARGEST_CALL {
            return Arc::new(event.effects());
        }
        // Where it happens is in the context: directories, links, who recorded it.
        let mut state = self.keys.build_hasher();
        (event.is_removed(), &event.row.agent, &event.row.context).hash(&mut state);
        hash_fields(event.fields(), &mut state);
        let key = state.finish();
        if let Some(known) = self.known.get(&key) {
            return Arc::clone(known);
        }
        if self.known.len() >= MOST_CALLS {
            self.known.clear();
        }
        let effects = Arc::new(event.effects());
        self.known.insert(key, Arc::clone(&effects));
        effects
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::{Arrival, decode};
    use crate::event::{Agent, EventId, Seq, Time, Wire};
    use crate::log::{Row, RowDraft};

    fn row(command: &str, place: &str, id: &str) -> Row {
        let at = Time::from_micros(1_790_000_000_000_000);
        let payload = json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal",
                             "tool_input": {"command": command}, "session_id": id,
                             "extra": {"tool_call_id": id}});
        let raw = payload.to_string().into_bytes();
        let event = decode(Arrival {
            id: EventId::mint(at),
            at,
            agent: Agent::Hermes,
            wire: Wire::default(),
            raw: raw.clone().into(),
            session_hint: None,
        });
        let context = json!({"place": {"cwd": place}}).to_string();
        let draft = RowDraft::of_event(&event, Some(context), raw);
        Row {
            seq: Seq::FIRST,
            id: draft.id,
            at,
            agent: draft.agent,
            session: draft.session,
            turn: draft.turn,
            name: draft.name,
            kind: draft.kind.as_str().to_owned(),
            tool: draft.tool,
            tool_class: draft.tool_class,
            cause: None,
            context: draft.context,
            payload: draft.payload.to_vec(),
            removed: None,
            redaction: None,
            hash: [0; 32],
            origin: None,
            identity: None,
        }
    }

    #[test]
    fn calls_that_do_the_same_are_read_once_and_others_are_not_mixed_up() {
        let mut memory = EffectsMemory::default();
        let long = format!("cat {}", "x".repeat(LARGEST_CALL));
        for (command, place, id) in [
            ("cat a > b", "/srv/one", "1"),
            ("cat a > b", "/srv/one", "2"),
            ("cat a > b", "/srv/two", "3"),
            ("cat a > c", "/srv/one", "4"),
            ("curl https://example.org/x", "/srv/one", "5"),
            (long.as_str(), "/srv/one", "6"),
        ] {
            let row = row(command, place, id);
            let event = EventView::new(&row);
            assert_eq!(*memory.effects(&event), event.effects(), "{command} in {place}");
        }
        assert_eq!(memory.known.len(), 4);
        let mut removed = row("cat a > b", "/srv/one", "7");
        removed.removed = Some([0; 32]);
        assert_eq!(*memory.effects(&EventView::new(&removed)), Effects::default());
    }
}
