//! An agent that calls without a process per call: the daemon over its socket, or, where none
//! answers, the same pipeline right here, as `hookbus hook` does it. For loads that would otherwise
//! measure how fast processes start.

use std::path::PathBuf;
use std::time::Duration;

use hookbus::bus::Bus;

use hookbus::event::{Agent, Clock, EventId, SystemClock};
use hookbus::pipeline::{Call, handle};
use hookbus::server::{BuildVersion, SocketPath, call};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::home::Home;

/// Calls one home, one call at a time.
#[derive(Debug)]
pub struct Caller {
    home: PathBuf,
    runtime: Runtime,
}

/// What came of a call.
#[derive(Debug)]
pub struct Answered {
    /// The event's id.
    pub id: EventId,
    /// What the agent heard; `Null` for silence.
    pub answer: Value,
}

impl Caller {
    /// A caller of `home`.
    pub fn new(home: &Home) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { home: home.path(), runtime: runtime.expect("a runtime") }
    }

    /// One event of Hermes.
    pub fn call(&self, payload: &Value) -> Answered {
        let at = SystemClock.now();
        let event = Call {
            id: EventId::mint(at),
            at,
            agent: Agent::Hermes,
            raw: payload.to_string().into_bytes(),
            caller: hookbus::caller::Caller::default(),
            deadline: Duration::from_secs(50),
        };
        let id = event.id;
        let socket = SocketPath::in_home(&self.home);
        let answer = call(&socket, BuildVersion::current(), &event).unwrap_or_else(|_| {
            let bus = Bus::for_client(&self.home, &[]);
            let answer = self.runtime.block_on(handle(event, &bus, || false));
            answer.0.unwrap_or_default().into_bytes()
        });
        let answer = match answer.as_slice() {
            [] => Value::Null,
            answer => serde_json::from_slice(answer).expect("an answer is JSON"),
        };
        Answered { id, answer }
    }
}
