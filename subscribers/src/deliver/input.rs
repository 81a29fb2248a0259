//! What an observer's command, program or plugin is given: the event as JSON, and the caller it runs with.

use std::ffi::OsString;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookbus::caller::Caller;
use hookbus::config::Hook;
use hookbus::decide::with_hookbus_object;
use hookbus::dialect::restore_caller;
use hookbus::event::{BusId, Seq};
use hookbus::json::{PartialJson, read_leniently, read_within_budget};
use hookbus::log::Row;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::observer::Observer;

/// One attempt to deliver an event, as the receiver sees it.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryContext {
    /// The bus of the event.
    pub(crate) bus: BusId,
    /// The environment of the observer.
    pub(crate) env: Arc<[(OsString, OsString)]>,
    /// The number of this attempt, from 1.
    pub(crate) attempt: u32,
    /// Whether the event is delivered again by a replay.
    pub(crate) replayed: bool,
}

impl DeliveryContext {
    /// The caller for `row`: the directory of the hooks file, which is what the user approved, and the
    /// agent's recorded ids. The row may come from any bus, so its working directory and other variables
    /// do not count here.
    pub(super) fn caller(&self, observer: &Observer, hook: &Hook, row: &Row) -> Caller {
        let mut agent = restore_caller(row.context.as_deref().unwrap_or("{}"), &self.env);
        agent.cwd.clone_from(&observer.base);
        let mut caller = observer.approvals.store().hook_caller(&agent, hook.pass_env());
        caller.set_var("HOOKBUS_ATTEMPT", self.attempt.to_string());
        if self.replayed {
            caller.set_var("HOOKBUS_REPLAY", "1");
        }
        caller
    }

    /// The event as a command reads it: the payload with the `hookbus` object in it.
    pub(super) fn input(&self, row: &Row) -> Vec<u8> {
        let (seq, cause) = match &row.origin {
            Some(origin) => (origin.seq, origin.cause),
            None => (row.seq, row.cause),
        };
        let mut hookbus = json!({
            "id": row.id.to_string(),
            "bus": self.bus.to_string(),
            "bus_name": row.identity.as_ref().map(|identity| identity.name.as_str()),
            "host": row.identity.as_ref().map(|identity| identity.host.as_str()),
            "user": row.identity.as_ref().map(|identity| identity.user.as_str()),
            "seq": seq.as_i64(),
            "time": row.at.to_string(),
            "agent": row.agent,
            "session": row.session,
            "turn": row.turn,
            "name": row.name,
            "kind": row.kind,
            "tool": row.tool,
            "tool_class": row.tool_class,
            "cause": cause.map(Seq::as_i64),
            "attempt": self.attempt,
            "replay": self.replayed,
        });
        let read = read_within_budget(&row.payload);
        if matches!(read, Ok(PartialJson { value: Value::Object(_), .. })) {
            return with_hookbus_object(&row.payload, &hookbus);
        }
        // A payload that is not an object cannot hold the `hookbus` object, so it goes into it.
        match std::str::from_utf8(&row.payload) {
            Ok(text) => hookbus["payload"] = json!(text),
            Err(_) => hookbus["payload_base64"] = json!(STANDARD.encode(&row.payload)),
        }
        json!({"hookbus": hookbus}).to_string().into_bytes()
    }

    /// The same on one line.
    pub(super) fn input_line(&self, row: &Row) -> Vec<u8> {
        let mut input = self.input(row);
        if input.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            // Valid JSON has line ends between its values only.
            if serde_json::from_slice::<&RawValue>(&input).is_ok() {
                for byte in &mut input {
                    if matches!(byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
            } else if let Ok(value) = read_leniently(&input) {
                input = value.to_string().into_bytes();
            }
        }
        input.push(b'\n');
        input
    }
}
