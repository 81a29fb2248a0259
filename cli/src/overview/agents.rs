//! The agents of this machine: whether each is connected, and when it was active last.

use std::collections::BTreeSet;

use hookbus::event::{Agent, Time};
use serde_json::{Value, json};

use crate::connect::{self, ConnectedAgent};
use crate::init::{FoundAgent, installed};
use crate::output::{Paint, sanitize, when};
use crate::sessions::SessionSummary;
use crate::settings::Settings;

/// Whether the events of an agent reach the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Works,
    /// Something is wrong with it.
    Broken,
    None,
    /// It is connected by hand, so that only its events tell.
    ByHand,
}

/// An agent that is installed, or was active lately.
#[derive(Debug)]
pub(super) struct AgentState {
    name: String,
    connection: Connection,
    /// When it was active last, as far as the latest sessions tell.
    last: Option<Time>,
    connect: Option<String>,
}

/// Those that are installed, and those of the latest sessions.
pub(super) fn read(settings: &Settings, sessions: &[SessionSummary]) -> Vec<AgentState> {
    let found = installed(settings);
    let mut names: Vec<String> = Agent::ALL.iter().map(|it| it.as_str().to_owned()).collect();
    names.extend(sessions.iter().map(|it| it.agent.clone()));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let state = |name: String| {
        let installed = found.iter().find(|it| it.name == name);
        let last = sessions.iter().filter(|it| it.agent == name).map(|it| it.last).max();
        if installed.is_none() && last.is_none() {
            return None;
        }
        let connect =
            installed.filter(|it| it.connected_as.is_some()).map(FoundAgent::how_to_connect);
        Some(AgentState { name, connection: connection(installed, settings), last, connect })
    };
    names.into_iter().filter_map(state).collect()
}

fn connection(agent: Option<&FoundAgent>, settings: &Settings) -> Connection {
    let of_each = |wrong: &[bool]| match wrong {
        [] => Connection::None,
        wrong if wrong.contains(&false) => Connection::Works,
        _ => Connection::Broken,
    };
    match agent.and_then(|agent| agent.connected_as) {
        Some(ConnectedAgent::Hermes) => {
            let calls = connect::health(settings).into_iter().filter(|it| it.calls);
            of_each(&calls.map(|it| it.wrong.is_some()).collect::<Vec<_>>())
        }
        Some(ConnectedAgent::Gemini) => {
            let health = connect::gemini_health(settings).into_iter();
            of_each(&health.map(|it| !it.wrong.is_empty()).collect::<Vec<_>>())
        }
        None => Connection::ByHand,
    }
}

impl AgentState {
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.connection, Connection::Works | Connection::Broken) || self.last.is_some()
    }

    /// What connects it, if it is not connected.
    pub(super) fn connect_command(&self) -> Option<String> {
        self.connect.clone().filter(|_| self.connection == Connection::None)
    }

    pub(super) fn to_json(&self) -> Value {
        let connected = match self.connection {
            Connection::Works => json!(true),
            Connection::Broken | Connection::None => json!(false),
            Connection::ByHand => Value::Null,
        };
        json!({
            "agent": self.name,
            "connected": connected,
            "last": self.last.map(|last| last.to_string()),
        })
    }

    pub(super) fn describe(&self, now: Time, paint: Paint) -> String {
        let name = sanitize(&self.name);
        let last = self.last.map(|last| format!("active {}", when(last, now)));
        let last = last.unwrap_or_else(|| "not active lately".to_owned());
        match self.connection {
            Connection::Works => format!("{name} {}, {last}", paint.good("connected")),
            Connection::Broken => {
                let broken = paint.bad("its connection is broken");
                format!("{name} {last}, {broken}: `hookbus hooks doctor`")
            }
            Connection::None if self.last.is_some() => format!("{name} {last}"),
            Connection::None => {
                format!("{name} not connected: `hookbus connect {name}`")
            }
            Connection::ByHand if self.last.is_some() => format!("{name} {last}"),
            Connection::ByHand => {
                format!("{name} not connected (by hand: cli/docs/{name}.md)")
            }
        }
    }
}
