//! Calls a home without starting a process per event: over the daemon's socket, or, if none answers, with
//! the pipeline in this process, as `hookbus hook` does. For loads that would otherwise measure how fast
//! processes start.

use std::path::PathBuf;
use std::time::Duration;

use hookbus::bus::Bus;
use hookbus::event::{Agent, Clock, EventId, SystemClock};
use hookbus::pipeline::{Call, handle};
use hookbus::server::{BuildVersion, SocketPath, call};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::home::Home;

/// A client of one home, one call at a time.
#[derive(Debug)]
pub struct Client {
    home: PathBuf,
    runtime: Runtime,
}

/// The result of a call.
#[derive(Debug)]
pub struct CallResult {
    /// The event's id.
    pub id: EventId,
    /// The answer to the agent; `Null` if there is none.
    pub answer: Value,
}

impl Client {
    /// A client of `home`.
    pub fn new(home: &Home) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { home: home.path(), runtime: runtime.expect("a runtime") }
    }

    /// Sends one event of Hermes.
    pub fn call(&self, payload: &Value) -> CallResult {
        let at = SystemClock.now();
        let event = Call {
            id: EventId::mint(at),
            at,
            agent: Agent::Hermes,
            raw: payload.to_string().into_bytes().into(),
            caller: hookbus::caller::Caller::default(),
            deadline: Duration::from_secs(50),
        };
        let id = event.id;
        let socket = SocketPath::in_home(&self.home);
        let answer = call(&socket, BuildVersion::current(), &event).unwrap_or_else(|_| {
            let bus = Bus::for_client(&self.home, &[]);
            self.runtime.block_on(handle(event, &bus))
        });
        let answer = answer.text.map_or(Value::Null, |answer| {
            serde_json::from_str(&answer).expect("an answer is JSON")
        });
        CallResult { id, answer }
    }
}
