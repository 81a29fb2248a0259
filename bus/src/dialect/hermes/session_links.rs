//! Finding the session of events that do not name one. Hermes fires some of its hooks without a session
//! id (calls made by code that the agent runs, a gateway's `session:end`), but with the id of a task or a
//! chat that earlier events named together with their session.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::event::{Agent, Event};

/// The oldest links are dropped beyond this many.
const MOST: usize = 4096;

/// The task id of the default terminal, which all sessions share.
const NO_TASK: &str = "default";

/// The links seen so far. Only a daemon lives long enough to collect any.
#[derive(Debug, Default)]
pub struct SessionLinks {
    links: Mutex<Links>,
}

#[derive(Debug, Default)]
struct Links {
    sessions: HashMap<Key, String>,
    /// The oldest first.
    order: VecDeque<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Task(String),
    Chat(String),
}

impl SessionLinks {
    /// Remembers the links of an event that names its session, and sets the session of an event that does not.
    pub fn resolve(&self, event: &mut Event) {
        if event.agent != Agent::Hermes {
            return;
        }
        let keys = keys_of(event);
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if names_its_session(event) {
            for key in keys {
                links.remember(key, &event.session);
            }
        } else if let Some(known) = keys.iter().find_map(|key| links.sessions.get(key)) {
            // More reliable than the environment, which all chats of a gateway share.
            event.session.clone_from(known);
        }
    }
}

impl Links {
    fn remember(&mut self, key: Key, session: &str) {
        if self.sessions.get(&key).is_some_and(|known| known == session) {
            return;
        }
        if self.sessions.insert(key.clone(), session.to_owned()).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.sessions.remove(&oldest);
            }
        }
    }
}

fn names_its_session(event: &Event) -> bool {
    let own = event.ids().and_then(|ids| ids.get("session_id")?.as_str()).unwrap_or_default();
    let in_turn = event.turn.as_deref().and_then(|turn| turn.split(':').next()).unwrap_or_default();
    !event.session.is_empty() && [own, in_turn].contains(&event.session.as_str())
}

fn keys_of(event: &Event) -> Vec<Key> {
    let extra = event.ids().and_then(|ids| ids.get("extra")?.as_object());
    let text = |name: &str| {
        let value = extra?.get(name)?.as_str()?;
        (!value.is_empty() && value != NO_TASK).then(|| value.to_owned())
    };
    let task = text("task_id").map(Key::Task);
    task.into_iter().chain(text("session_key").map(Key::Chat)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::dialect::decode::{Arrival, decode};
    use crate::event::{EventId, Time, Wire};

    fn event(session: &str, extra: &Value, session_hint: Option<&str>) -> Event {
        let at = Time::from_micros(1_700_000_000_000_000);
        let raw =
            json!({"hook_event_name": "pre_tool_call", "session_id": session, "extra": extra});
        decode(Arrival {
            id: EventId::mint(at),
            at,
            agent: Agent::Hermes,
            wire: Wire::Shell,
            raw: raw.to_string().into_bytes().into(),
            session_hint: session_hint.map(str::to_owned),
        })
    }

    fn session_of(sessions: &SessionLinks, mut event: Event) -> String {
        sessions.resolve(&mut event);
        event.session
    }

    #[test]
    fn a_call_without_a_session_gets_that_of_its_task() {
        let sessions = SessionLinks::default();
        session_of(&sessions, event("s1", &json!({"task_id": "t1"}), None));
        session_of(&sessions, event("s2", &json!({"task_id": "t2", "session_key": "c2"}), None));
        assert_eq!(session_of(&sessions, event("", &json!({"task_id": "t1"}), Some("s2"))), "s1");
        assert_eq!(session_of(&sessions, event("", &json!({"session_key": "c2"}), None)), "s2");
        assert_eq!(session_of(&sessions, event("", &json!({"task_id": "t9"}), Some("s3"))), "s3");
        assert_eq!(
            session_of(&sessions, event("", &json!({"task_id": "t9"}), None)),
            "",
            "a hint creates no link"
        );
    }

    #[test]
    fn an_id_that_all_sessions_share_links_nothing() {
        let sessions = SessionLinks::default();
        session_of(&sessions, event("s1", &json!({"task_id": "default"}), None));
        assert_eq!(
            session_of(&sessions, event("", &json!({"task_id": "default"}), Some("s2"))),
            "s2"
        );
    }

    #[test]
    fn a_chat_that_starts_a_new_session_is_linked_to_it() {
        let sessions = SessionLinks::default();
        session_of(&sessions, event("s1", &json!({"session_key": "c"}), None));
        session_of(&sessions, event("s2", &json!({"session_key": "c"}), None));
        assert_eq!(session_of(&sessions, event("", &json!({"session_key": "c"}), None)), "s2");
    }
}
