//! What is said over the socket: one request, one byte that says "I am on it", one reply. Bytes
//! stay bytes (payloads, environments), each part with its length before it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use super::Build;
use crate::caller::Caller;
use crate::event::{Agent, EventId, Time, Wire};
use crate::pipeline::Call;

/// The first byte of every request; another number is another protocol, a higher one a newer client's.
const PROTOCOL: u8 = 2;

/// Sent as soon as a request was read, so that a client can tell a busy daemon from a hung one.
pub(super) const RECEIVED: u8 = b'!';

/// What a client wants.
#[derive(Debug, Clone)]
pub enum Request {
    /// An event to handle.
    Call {
        /// Who is asking.
        build: Build,
        /// The event.
        call: Box<Call>,
    },
    /// How are you?
    Status,
}

/// What the daemon says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// What the agent hears; nothing if empty.
    Answer(Vec<u8>),
    /// Do it yourself: this daemon is making room for a newer one, or does not understand.
    Declined,
    /// How it is, as JSON.
    Status(Vec<u8>),
}

impl Request {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut parts = Parts::default();
        match self {
            Self::Status => parts.add(b"status"),
            Self::Call { build, call } => {
                let Call { id, at, agent, raw, caller, deadline } = call.as_ref();
                let micros = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
                let Caller { cwd, env, pid, wire } = caller;
                parts.add(b"call");
                parts.add(&build.to_bytes());
                parts.add(id.as_bytes());
                parts.add(&at.micros().to_be_bytes());
                parts.add(agent.as_str().as_bytes());
                parts.add(wire.as_str().as_bytes());
                parts.add(&micros.to_be_bytes());
                parts.add(&pid.unwrap_or(0).to_be_bytes());
                parts.add(cwd.as_os_str().as_bytes());
                parts.add(raw);
                for (key, value) in env {
                    parts.add(key.as_bytes());
                    parts.add(value.as_bytes());
                }
            }
        }
        parts.framed(PROTOCOL)
    }

    /// Whether these bytes are in the words of a later version.
    pub(super) fn is_of_a_newer_client(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|protocol| *protocol > PROTOCOL)
    }

    /// Reads a request; none if it is not one of ours.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (protocol, mut rest) = bytes.split_first()?;
        if *protocol != PROTOCOL {
            return None;
        }
        match next(&mut rest)? {
            b"status" => Some(Self::Status),
            b"call" => {
                let build = Build::from_bytes(next(&mut rest)?)?;
                let id = EventId::from_bytes(next(&mut rest)?.try_into().ok()?);
                let at = i64::from_be_bytes(next(&mut rest)?.try_into().ok()?);
                let agent = std::str::from_utf8(next(&mut rest)?).ok()?.parse::<Agent>().ok()?;
                let wire = Wire::parse(std::str::from_utf8(next(&mut rest)?).ok()?)?;
                let deadline = u64::from_be_bytes(next(&mut rest)?.try_into().ok()?);
                let pid = u32::from_be_bytes(next(&mut rest)?.try_into().ok()?);
                let cwd = PathBuf::from(os(next(&mut rest)?));
                let raw = next(&mut rest)?.to_vec();
                let mut env = Vec::new();
                while !rest.is_empty() {
                    env.push((os(next(&mut rest)?), os(next(&mut rest)?)));
                }
                let pid = (pid != 0).then_some(pid);
                let caller = Caller { cwd, env, pid, wire };
                let deadline = Duration::from_micros(deadline);
                let at = Time::from_micros(at);
                let call = Call { id, at, agent, raw, caller, deadline };
                Some(Self::Call { build, call: Box::new(call) })
            }
            _ => None,
        }
    }
}

impl Reply {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut parts = Parts::default();
        match self {
            Self::Answer(text) => {
                parts.add(b"answer");
                parts.add(text);
            }
            Self::Declined => parts.add(b"declined"),
            Self::Status(json) => {
                parts.add(b"status");
                parts.add(json);
            }
        }
        parts.framed(PROTOCOL)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (_, mut rest) = bytes.split_first()?;
        match next(&mut rest)? {
            b"answer" => Some(Self::Answer(next(&mut rest)?.to_vec())),
            b"declined" => Some(Self::Declined),
            b"status" => Some(Self::Status(next(&mut rest)?.to_vec())),
            _ => None,
        }
    }
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[derive(Default)]
struct Parts(Vec<u8>);

impl Parts {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// The whole message: its length, the protocol, the parts.
    fn framed(self, protocol: u8) -> Vec<u8> {
        let mut message = Vec::with_capacity(self.0.len() + 9);
        message.extend_from_slice(&(self.0.len() as u64 + 1).to_be_bytes());
        message.push(protocol);
        message.extend_from_slice(&self.0);
        message
    }
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_arrives_as_it_was_sent() {
        let at = Time::from_micros(1_700_000_000_000_000);
        let caller = Caller {
            cwd: PathBuf::from("/somewhere"),
            env: vec![("A".into(), os(b"not \xff text")), ("EMPTY".into(), OsString::new())],
            pid: Some(7),
            wire: Wire::Bridge,
        };
        let call = Call {
            id: EventId::mint(at),
            at,
            agent: Agent::Gemini,
            raw: vec![0, 255, b'{'],
            caller,
            deadline: Duration::from_millis(1500),
        };
        let request = Request::Call { build: Build::current(), call: Box::new(call.clone()) };
        let bytes = request.to_bytes();
        let Some(Request::Call { call: heard, .. }) = Request::from_bytes(&bytes[8..]) else {
            panic!("a call");
        };
        assert_eq!(format!("{heard:?}"), format!("{call:?}"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(Request::from_bytes(&bytes));
            drop(Reply::from_bytes(&bytes));
        }
    }
}
